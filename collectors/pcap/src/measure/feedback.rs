// SPDX-License-Identifier: Apache-2.0
//! What the receiver of a direction reports: ACK, SACK, DSACK, window; and the RTT samples that follow.
#![forbid(unsafe_code)]

use crate::measure::direction::{Direction, Path};
use crate::read::packet::{FIN, Packet, RST, SYN, SackBlocks};

/// What one ACK said, for the records.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    pub ack: i64,
    pub rtt_ns: Option<i64>,
    pub rtt_by_timestamps_ns: Option<i64>,
    pub sacked: i64,
    pub window: Option<i64>,
    pub in_flight: i64,
    pub duplicate: bool,
}

/// Segments that an ACK took off the list.
#[derive(Default)]
struct Popped {
    rtt_ns: Option<i64>,
    rtt_by_timestamps_ns: Option<i64>,
    spurious: bool,
}

impl Direction {
    /// An ACK by the receiver of this direction. `shift` is the receiver's window scale, where it is known.
    #[inline]
    pub fn on_ack(&mut self, packet: &Packet, sack: &SackBlocks, shift: Option<u8>, path: Path) -> Option<Feedback> {
        let now = packet.time_ns;
        if !self.started() {
            self.start(packet.ack, 0);
        }
        let ack = self.unwrap(packet.ack, self.una);
        if ack - self.nxt > 1 << 30 {
            self.totals.out_of_window += 1;
            return None;
        }
        self.totals.acks += 1;
        let mut delivered = 0;
        if !sack.is_empty() {
            delivered += self.on_sack(sack, ack);
        }
        if ack < self.una {
            return None;
        }
        let window = if packet.flags & SYN != 0 { Some(0) } else { shift }.map(|s| i64::from(packet.window) << s);
        let plain = packet.payload == 0 && packet.flags & (SYN | FIN | RST) == 0;
        let duplicate = plain
            && ack == self.una
            && self.nxt > self.una
            && packet.window != 0
            && (packet.window == self.raw_window || delivered > 0);
        let mut popped = Popped::default();
        let advanced = ack > self.una;
        if advanced {
            popped = self.advance(packet, ack, &mut delivered);
        } else if duplicate {
            self.duplicates += 1;
            self.totals.duplicate_acks += 1;
        }
        self.on_window(packet, window, now);
        let delivered = delivered.max(0) as u64;
        self.totals.acked_bytes += delivered;
        if !path.at_receiver {
            self.interval.delivered += delivered;
        }
        let in_flight = self.in_flight();
        self.interval.in_flight = in_flight;
        let sent_data = self.nxt > 0;
        (sent_data && (advanced || plain)).then(|| Feedback {
            ack: self.stream(ack),
            rtt_ns: popped.rtt_ns,
            rtt_by_timestamps_ns: popped.rtt_by_timestamps_ns,
            sacked: self.sacked.total(),
            window: self.window,
            in_flight,
            duplicate,
        })
    }

    fn advance(&mut self, packet: &Packet, ack: i64, delivered: &mut i64) -> Popped {
        let now = packet.time_ns;
        let from = self.stream(self.una);
        if ack > self.nxt {
            self.totals.unseen_bytes += (self.stream(ack) - self.stream(self.nxt)) as u64;
            self.nxt = ack;
        }
        let popped = self.pop(packet, ack);
        *delivered += self.stream(ack) - from - self.sacked.remove_below(ack);
        // The receiver acknowledges up to bytes that it had reported to have: it has thrown them away
        // (RFC 2018 s8; Linux looks for the same in tcp_check_sack_reneging).
        if self.sacked.contains(ack) {
            self.totals.reneged += 1;
            self.totals.acked_bytes = self.totals.acked_bytes.saturating_sub(self.sacked.total() as u64);
            self.sacked.clear();
        }
        self.una = ack;
        self.duplicates = 0;
        self.advanced_ns = now;
        if !self.holes.is_empty() {
            self.holes.fill(i64::MIN, ack);
        }
        if popped.spurious {
            self.totals.spurious_timestamps += self.recent.take(|r| {
                let older = |sent: u32, echoed: u32| (echoed.wrapping_sub(sent) as i32) < 0;
                r.end <= ack && r.tsval.zip(packet.timestamps).is_some_and(|(sent, (_, echoed))| older(sent, echoed))
            });
        }
        if let Some(ns) = popped.rtt_ns {
            self.rtt.add(ns);
        }
        if let Some(ns) = popped.rtt_by_timestamps_ns {
            self.rtt_by_timestamps.add(ns);
        }
        if self.size.or(self.fin).is_some_and(|all| ack >= all) && self.complete_ns.is_none() {
            self.complete_ns = Some(now);
        }
        popped
    }

    /// Takes acknowledged segments off the list. Karn: no sample when anything acknowledged was sent more than once,
    /// nor when the last segment had been reported by SACK before (its ACK waited for another segment).
    #[inline]
    fn pop(&mut self, packet: &Packet, ack: i64) -> Popped {
        let mut popped = Popped::default();
        let mut ambiguous = false;
        let mut last = None;
        while let Some(segment) = self.segments.front().copied() {
            if segment.end > ack {
                // Acknowledged in part: what follows it has not been delivered alone.
                last = last.filter(|_| segment.start() >= ack);
                break;
            }
            if segment.retransmitted() {
                ambiguous = true;
                // RFC 3522: the ACK echoes a time before the retransmission, so the original had arrived.
                let early = |(_, echoed): (u32, u32)| (echoed.wrapping_sub(segment.tsval) as i32) < 0;
                popped.spurious |= !self.recent.is_empty() && packet.timestamps.is_some_and(early);
            }
            if popped.rtt_by_timestamps_ns.is_none()
                && packet.timestamps.is_some_and(|(_, echoed)| echoed == segment.tsval && echoed != 0)
            {
                popped.rtt_by_timestamps_ns = Some(packet.time_ns - segment.sent_ns);
            }
            last = Some(segment);
            self.segments.pop();
        }
        let sample =
            last.filter(|s| !ambiguous && s.end == ack && (self.sacked.is_empty() || !self.sacked.contains(ack - 1)));
        popped.rtt_ns = sample.map(|s| packet.time_ns - s.sent_ns);
        popped
    }

    /// SACK blocks; gives the bytes reported for the first time.
    #[cold]
    fn on_sack(&mut self, blocks: &SackBlocks, ack: i64) -> i64 {
        let mut fresh = 0;
        let second = blocks.get(1).map(|b| (self.unwrap(b.0, ack), self.unwrap(b.1, ack)));
        for (at, block) in blocks.iter().enumerate() {
            let (left, right) = (self.unwrap(block.0, ack), self.unwrap(block.1, ack));
            // RFC 2883 s4: the first block reports bytes received twice when below the ACK or inside the second.
            let twice = at == 0 && (left < ack || second.is_some_and(|(l, r)| l <= left && right <= r));
            if left >= right || right > self.nxt {
                continue;
            }
            if twice {
                self.totals.dsack_blocks += 1;
                if !self.recent.is_empty() {
                    self.totals.spurious_dsack += self.recent.take(|r| r.start >= left && r.end <= right);
                }
                continue;
            }
            self.totals.sack_blocks += 1;
            fresh += self.sacked.insert(left.max(ack).max(self.una), right);
        }
        fresh
    }

    /// The window advertised, and since when it is closed.
    #[inline(always)]
    fn on_window(&mut self, packet: &Packet, window: Option<i64>, now: i64) {
        let closed = packet.window == 0 && packet.flags & (SYN | FIN | RST) == 0;
        if closed && self.zero_since.is_none() {
            self.totals.zero_windows += 1;
            self.zero_since = Some(now);
        } else if !closed {
            if let Some(since) = self.zero_since.take() {
                self.totals.zero_window_ns += (now - since).max(0);
            }
        }
        self.raw_window = packet.window;
        self.window = window;
        self.limit(now);
    }

    /// Accounts for the time in which the next full segment does not fit into the receiver's window.
    #[inline(always)]
    pub(crate) fn limit(&mut self, now: i64) {
        let room = |window: i64| self.una + window - self.nxt < i64::from(self.max_payload.max(1));
        let limited = self.window.is_some_and(room) && self.max_payload > 0;
        match (limited, self.limited_since) {
            (true, None) => self.limited_since = Some(now),
            (false, Some(since)) => {
                self.totals.window_limited_ns += (now - since).max(0);
                self.limited_since = None;
            }
            _ => {}
        }
    }
}
