// SPDX-License-Identifier: Apache-2.0
//! What one direction of a connection shows: segments, losses, round-trip times, reports of the receiver.
#![forbid(unsafe_code)]

pub mod direction;
pub mod feedback;
pub mod interval;
pub mod ranges;
pub mod rtt;
pub mod segments;
pub mod totals;
