// SPDX-License-Identifier: Apache-2.0
//! Captures to packets.
#![forbid(unsafe_code)]

pub mod capture;
pub mod chunk;
pub mod decode;
pub mod packet;
pub mod pcap;
pub mod pcapng;
