// SPDX-License-Identifier: Apache-2.0
//! Sums over the interval under way of one direction.
#![forbid(unsafe_code)]

use crate::read::packet::Packet;

#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// Start and end of the interval under way; both 0 before the first packet.
    pub start_ns: i64,
    pub end_ns: i64,
    pub packets: u64,
    pub wire: u64,
    pub payload: u64,
    pub retransmitted: u64,
    pub delivered: u64,
    pub in_flight: i64,
}

impl Interval {
    #[inline(always)]
    pub fn sent(&mut self, packet: &Packet) {
        self.packets += 1;
        self.wire += u64::from(packet.wire);
        self.payload += u64::from(packet.payload);
    }

    /// Whether a row is due: something of the data happened, not only ACKs for the other direction.
    pub fn of_data(&self) -> bool {
        self.payload > 0 || self.delivered > 0 || self.retransmitted > 0
    }

    /// Begins the interval that holds `now`; intervals are counted from `origin`.
    pub fn begin(&mut self, now: i64, origin: i64, width: i64) {
        let start_ns = origin.saturating_add((now.saturating_sub(origin)).div_euclid(width).saturating_mul(width));
        let in_flight = self.in_flight;
        *self = Interval { start_ns, end_ns: start_ns.saturating_add(width), in_flight, ..Interval::default() };
    }
}
