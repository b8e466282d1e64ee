// SPDX-License-Identifier: Apache-2.0
//! One direction of a connection: what its sender sent (here) and what the other end acknowledged (`feedback.rs`).
//!
//! Bytes are counted from the initial sequence number + 1, unwrapped to 64 bits; the SYN is byte -1, the FIN the one
//! after the last.
#![forbid(unsafe_code)]

use crate::measure::interval::Interval;
use crate::measure::ranges::{Hole, Holes, Ranges};
use crate::measure::rtt::Rtt;
use crate::measure::segments::{Budget, Cause, Recent, Retransmission, Segment, Segments};
use crate::measure::totals::Totals;
use crate::read::packet::{ACK, CWR, ECE, FIN, Packet, RST, SYN, SynOptions};

/// Half of what a window can be (RFC 7323 s2.3): a jump further than this is not of this connection.
const MAX_JUMP: i64 = 1 << 30;
/// Without a known RTT, a hole filled later than this is a retransmission (tshark's rule too).
const REORDERING_NS: i64 = 3_000_000;

#[derive(Debug, Default)]
pub struct Direction {
    started: bool,
    /// Sequence number of byte 0.
    base: u32,
    /// One past the highest byte sent.
    pub nxt: i64,
    /// The lowest byte not acknowledged.
    pub una: i64,
    pub segments: Segments,
    pub sacked: Ranges,
    pub(crate) holes: Holes,
    pub(crate) recent: Recent,
    /// Where the FIN was, i.e. the number of bytes of the stream.
    pub fin: Option<i64>,
    pub syn: Option<SynOptions>,
    pub syn_flags: u8,
    /// Some packet had the timestamps option.
    pub timestamps: bool,
    pub max_payload: u32,
    /// As last advertised by the receiver, raw and scaled (`None` when the scale is not known).
    pub(crate) raw_window: u16,
    pub(crate) window: Option<i64>,
    pub(crate) duplicates: u32,
    /// Recovery lasts until this byte is acknowledged, after duplicate ACKs and after a timeout.
    fast_until: i64,
    timeout_until: i64,
    pub(crate) advanced_ns: i64,
    /// When an ongoing zero window and an ongoing limit by the window began.
    pub(crate) zero_since: Option<i64>,
    pub(crate) limited_since: Option<i64>,
    pub rtt: Rtt,
    pub rtt_by_timestamps: Rtt,
    pub totals: Totals,
    pub interval: Interval,
    pub first_ns: Option<i64>,
    pub last_ns: i64,
    pub first_data_ns: Option<i64>,
    pub last_data_ns: Option<i64>,
    /// Bytes that the flow was to carry, where that is known.
    pub size: Option<i64>,
    /// When the receiver had reported everything up to the flow's size, or else the FIN.
    pub complete_ns: Option<i64>,
}

/// What the connection knows that a direction needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    /// SYN to the third packet of the handshake: the RTT wherever the capture is.
    pub rtt_ns: Option<i64>,
    /// The capture is at the receiver of this direction: first arrivals are deliveries.
    pub at_receiver: bool,
}

impl Direction {
    pub fn started(&self) -> bool {
        self.started
    }

    pub(crate) fn start(&mut self, base: u32, at: i64) {
        (self.started, self.base, self.nxt, self.una) = (true, base, at, at);
    }

    /// A sequence number near byte `near` as a byte.
    #[inline(always)]
    pub(crate) fn unwrap(&self, seq: u32, near: i64) -> i64 {
        near + i64::from(seq.wrapping_sub(self.base.wrapping_add(near as u32)) as i32)
    }

    /// The initial sequence number, for telling a new connection on the same ports from this one.
    pub fn initial_seq(&self) -> u32 {
        self.base.wrapping_sub(1)
    }

    /// Bytes sent, neither acknowledged nor reported by SACK.
    #[inline(always)]
    pub fn in_flight(&self) -> i64 {
        (self.nxt - self.una.max(0) - self.sacked.total()).max(0)
    }

    /// Payload bytes below `at`: without SYN and FIN.
    #[inline(always)]
    pub(crate) fn stream(&self, at: i64) -> i64 {
        self.fin.map_or(at, |fin| at.min(fin)).max(0)
    }

    /// A packet of this direction's sender.
    pub fn on_sent(&mut self, packet: &Packet, path: Path, budget: &mut Budget) {
        let now = packet.time_ns;
        self.first_ns.get_or_insert(now);
        self.last_ns = now;
        let t = &mut self.totals;
        t.packets += 1;
        t.wire_bytes += u64::from(packet.wire);
        t.payload_bytes += u64::from(packet.payload);
        t.ect += u64::from(matches!(packet.ecn, 1 | 2));
        t.ce += u64::from(packet.ecn == 3);
        if packet.flags & (SYN | FIN | RST | ECE | CWR) != 0 {
            self.on_flags(packet);
        }
        self.timestamps |= packet.timestamps.is_some();
        self.interval.sent(packet);
        let occupied = i64::from(packet.payload)
            + i64::from(packet.flags & SYN != 0)
            + i64::from(packet.flags & FIN != 0 && packet.flags & RST == 0);
        if packet.flags & RST != 0 {
            return;
        }
        if !self.started {
            let syn = packet.flags & SYN != 0;
            self.start(if syn { packet.seq.wrapping_add(1) } else { packet.seq }, if syn { -1 } else { 0 });
        }
        let start = self.unwrap(packet.seq, self.nxt);
        if occupied > 0 {
            self.on_data(packet, start, start + occupied, path, budget);
        } else if start == self.nxt - 1 && packet.flags & ACK != 0 {
            self.probe();
        }
        self.limit(now);
        let in_flight = self.in_flight();
        self.totals.max_in_flight = self.totals.max_in_flight.max(in_flight);
        self.interval.in_flight = in_flight;
    }

    #[cold]
    fn on_flags(&mut self, packet: &Packet) {
        let syn = packet.flags & SYN != 0;
        if syn && self.syn.is_none() {
            self.syn = Some(packet.syn);
            self.syn_flags = packet.flags;
        }
        self.totals.fins += u64::from(packet.flags & FIN != 0);
        self.totals.resets += u64::from(packet.flags & RST != 0);
        self.totals.ece += u64::from(packet.flags & ECE != 0 && !syn);
        self.totals.cwr += u64::from(packet.flags & CWR != 0 && !syn);
    }

    /// A packet that only asks for an ACK.
    fn probe(&mut self) {
        if self.zero_since.is_some() {
            self.totals.zero_window_probes += 1;
        } else {
            self.totals.keep_alives += 1;
        }
    }

    #[inline]
    fn on_data(&mut self, packet: &Packet, start: i64, end: i64, path: Path, budget: &mut Budget) {
        let now = packet.time_ns;
        if (start - self.nxt).abs() > MAX_JUMP {
            self.totals.out_of_window += 1;
            return;
        }
        if packet.payload == 1 && packet.flags & (SYN | FIN) == 0 {
            let acknowledged = end <= self.una;
            if (start == self.nxt - 1 && acknowledged) || (start == self.nxt && self.zero_since.is_some()) {
                return self.probe();
            }
        }
        self.totals.data_packets += u64::from(packet.payload > 0);
        self.max_payload = self.max_payload.max(packet.payload);
        if packet.flags & FIN != 0 {
            self.fin.get_or_insert(end - 1);
        }
        let tsval = packet.timestamps.map_or(0, |t| t.0);
        let mut first_arrivals = end - start.max(self.nxt);
        if start == self.nxt {
            self.segments.push(Segment::new(start, end, now, tsval), budget);
            self.nxt = end;
        } else {
            first_arrivals = first_arrivals.max(0);
            if start > self.nxt {
                self.totals.gaps += 1;
                let tsval = packet.timestamps.map(|t| t.0);
                self.holes.push(Hole { start: self.nxt, end: start, since_ns: now, tsval });
            } else {
                first_arrivals += self.on_old(packet, start, end.min(self.nxt), path, budget);
            }
            if end > self.nxt {
                self.segments.push(Segment::new(start.max(self.nxt), end, now, tsval), budget);
                self.nxt = end;
            }
        }
        if packet.payload > 0 {
            self.first_data_ns.get_or_insert(now);
            self.last_data_ns = Some(now);
            let unique = first_arrivals.min(i64::from(packet.payload)) as u64;
            self.totals.unique_bytes += unique;
            if path.at_receiver {
                self.interval.delivered += unique;
            }
        }
    }

    /// Bytes below the highest sent: sent again, or come late. Gives the bytes that were not seen before.
    #[cold]
    fn on_old(&mut self, packet: &Packet, start: i64, end: i64, path: Path, budget: &mut Budget) -> i64 {
        let now = packet.time_ns;
        let tsval = packet.timestamps.map(|t| t.0);
        if packet.flags & (SYN | ACK) == SYN | ACK && self.syn_flags & ACK == 0 {
            // Simultaneous open: the SYN-ACK has the SYN's number (RFC 9293 s3.5), nothing was lost.
            self.syn_flags |= ACK;
            self.segments.overlapping(start, end).for_each(|s| s.again(now, tsval.unwrap_or(0)));
            return 0;
        }
        let (missing, hole) = self.holes.fill(start, end);
        let again = end - start - missing;
        let late = again == 0 && hole.is_some_and(|hole| !sent_again(&hole, now, tsval, path));
        if late {
            self.totals.out_of_order += 1;
            self.segments.insert(Segment::new(start, end, now, tsval.unwrap_or(0)), budget);
            return missing;
        }
        let bytes = (end - start).min(i64::from(packet.payload)) as u64;
        self.totals.retransmitted_packets += 1;
        self.totals.retransmitted_bytes += bytes;
        self.interval.retransmitted += bytes;
        match self.cause(start, end, now, path) {
            Cause::Fast => self.totals.fast += 1,
            Cause::Timeout => self.totals.timeout += 1,
            Cause::TailProbe => self.totals.tail_probe += 1,
            Cause::Other => self.totals.other += 1,
        }
        self.recent.push(Retransmission { start, end, tsval });
        let mut known = false;
        for segment in self.segments.overlapping(start, end) {
            segment.again(now, tsval.unwrap_or(0));
            known = true;
        }
        if !known && missing > 0 {
            let mut segment = Segment::new(start, end, now, tsval.unwrap_or(0));
            segment.again(now, tsval.unwrap_or(0));
            self.segments.insert(segment, budget);
        }
        missing
    }

    fn cause(&mut self, start: i64, end: i64, now: i64, path: Path) -> Cause {
        let last_sent = self.segments.overlapping(start, end).map(|s| s.sent_ns).max();
        let waited = now - last_sent.unwrap_or(self.advanced_ns).max(self.advanced_ns);
        // Twice the handshake's RTT: at the receiver the queue on the way here is not in the samples.
        let rto = self.rtt.rto_ns().max(path.rtt_ns.map_or(0, |rtt| 2 * rtt));
        let head = start <= self.una;
        let reported = self.duplicates >= 3 || self.sacked.end().is_some_and(|sacked| sacked > end);
        if head && waited >= rto / 10 * 9 {
            self.timeout_until = self.nxt;
            self.totals.timeouts += 1;
            return Cause::Timeout;
        }
        if self.una < self.timeout_until {
            return Cause::Timeout;
        }
        if reported || self.una < self.fast_until {
            self.fast_until = self.fast_until.max(self.nxt);
            return Cause::Fast;
        }
        if end == self.nxt && waited >= self.rtt.srtt_ns().unwrap_or(0) {
            return Cause::TailProbe;
        }
        Cause::Other
    }
}

/// Whether the filler of a hole was sent after the packet that skipped the hole, i.e. is a retransmission of a
/// packet lost before the capture, not one that came late.
fn sent_again(hole: &Hole, now: i64, tsval: Option<u32>, path: Path) -> bool {
    if let (Some(filler), Some(skipper)) = (tsval, hole.tsval) {
        match filler.wrapping_sub(skipper) as i32 {
            0 => {}
            newer => return newer > 0,
        }
    }
    // A retransmission takes a round trip from here; a little less where the path's RTT varies.
    now - hole.since_ns >= path.rtt_ns.map_or(REORDERING_NS, |rtt| rtt / 4 * 3)
}
