// SPDX-License-Identifier: Apache-2.0
//! A simulated connection: its sender's state, and its receiver.
#![forbid(unsafe_code)]

use crate::measure::ranges::Ranges;

#[derive(Default)]
pub struct Flow {
    pub isn: u32,
    pub rtt_ns: u64,
    pub una: i64,
    pub nxt: i64,
    pub resend: i64,
    pub cwnd: u64,
    pub ssthresh: u64,
    pub credit: u64,
    pub duplicates: u32,
    pub recovery: i64,
    pub lost: bool,
    pub sacked: Ranges,
    pub deadline: u64,
    pub timer_set: bool,
    pub finished: bool,
    // The receiver.
    pub received: i64,
    pub early: Ranges,
    pub recent: [(i64, i64); 3],
    pub unacked: u32,
    pub echo: u32,
    pub ip_id: u16,
}

/// What an ACK of the receiver says: bytes received, SACK blocks and TSecr.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ack {
    pub ack: i64,
    pub sack: [(i64, i64); 3],
    pub tsecr: u32,
}

impl Flow {
    /// A segment reaches the receiver; gives the ACK if one is due.
    pub fn receive(&mut self, seq: i64, len: u32, tsval: u32, ack_every: u32) -> Option<Ack> {
        let end = seq + i64::from(len);
        let in_order = seq <= self.received;
        if in_order {
            if self.unacked == 0 {
                self.echo = tsval;
            }
            self.received = self.received.max(end);
            while self.early.contains(self.received) {
                self.received += 1;
                let at = self.received;
                self.received = self.recent.iter().filter(|b| b.0 < at && at <= b.1).map(|b| b.1).max().unwrap_or(at);
            }
            self.early.remove_below(self.received);
        } else {
            self.early.insert(seq, end);
            let mut block = (seq, end);
            for old in &self.recent {
                if old.0 <= block.1 && block.0 <= old.1 {
                    block = (block.0.min(old.0), block.1.max(old.1));
                }
            }
            let keep = self.recent.iter().copied().filter(|b| b.1 < block.0 || b.0 > block.1);
            let mut next = [(0, 0); 3];
            for (place, value) in next.iter_mut().zip(std::iter::once(block).chain(keep)) {
                *place = value;
            }
            self.recent = next;
        }
        let received = self.received;
        for block in &mut self.recent {
            if block.1 <= received {
                *block = (0, 0);
            }
        }
        self.unacked += 1;
        if in_order && self.early.is_empty() && self.unacked < ack_every {
            return None;
        }
        self.unacked = 0;
        Some(Ack { ack: self.received, sack: self.recent, tsecr: self.echo })
    }
}
