// SPDX-License-Identifier: Apache-2.0
//! TCP time series from packet captures: `analyze` is the way in, `docs/pcap.md` says what comes out.

pub mod analyze;
mod bytes_at;
pub mod capture;
pub mod columns;
pub mod connection;
pub mod direction;
pub mod error;
mod feedback;
mod flows;
pub mod generate;
mod interval;
pub mod packet;
mod pcap;
mod pcapng;
mod ranges;
pub mod records;
mod rtt;
mod segments;
mod table;
mod tables;
mod zstd;
