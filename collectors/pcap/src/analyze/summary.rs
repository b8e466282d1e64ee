// SPDX-License-Identifier: Apache-2.0
//! What was read, and how far.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::read::decode::Decoded;

#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub packets: u64,
    pub tcp_packets: u64,
    pub other_packets: u64,
    pub fragments: u64,
    /// Packets whose headers are cut short or make no sense; the first such error is kept.
    pub bad_packets: u64,
    pub first_bad: Option<Error>,
    pub flows: u64,
    pub evicted_flows: u64,
    pub forgotten_segments: u64,
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
    /// Bytes of the (decompressed) captures that were used.
    pub bytes: u64,
    pub seconds: f64,
    /// Per capture that could not be read to its end.
    pub errors: Vec<(PathBuf, Error)>,
}

impl Summary {
    /// Counts a packet; `false` if it is not for the TCP analysis.
    #[inline(always)]
    pub fn is_tcp(&mut self, decoded: Result<Decoded>) -> bool {
        match decoded {
            Ok(Decoded::Tcp { fragment }) => {
                self.fragments += u64::from(fragment);
                self.tcp_packets += 1;
                return true;
            }
            Ok(Decoded::Other) => self.other_packets += 1,
            Ok(Decoded::Fragment) => self.fragments += 1,
            Err(error) => {
                self.bad_packets += 1;
                self.first_bad.get_or_insert(error);
            }
        }
        false
    }

    /// Adds the counts of later packets.
    pub fn add(&mut self, later: &Summary) {
        self.packets += later.packets;
        self.tcp_packets += later.tcp_packets;
        self.other_packets += later.other_packets;
        self.fragments += later.fragments;
        self.bad_packets += later.bad_packets;
        self.flows += later.flows;
        self.evicted_flows += later.evicted_flows;
        self.forgotten_segments += later.forgotten_segments;
        self.bytes += later.bytes;
        if self.first_bad.is_none() {
            self.first_bad.clone_from(&later.first_bad);
        }
        self.first_ns = [self.first_ns, later.first_ns].into_iter().flatten().min();
        self.last_ns = [self.last_ns, later.last_ns].into_iter().flatten().max();
    }

    /// Adds those of the next block of the same capture, whose `bytes` count from the capture's start.
    pub fn add_block(&mut self, block: &Summary) {
        let before = self.bytes;
        self.add(block);
        self.bytes = before.max(block.bytes);
    }
}
