// SPDX-License-Identifier: Apache-2.0
//! A connection: both directions, its handshake, and where on its path the capture was taken.
#![forbid(unsafe_code)]

use crate::measure::direction::{Direction, Path};
use crate::measure::segments::Budget;
use crate::read::packet::{ACK, CWR, ECE, Key, Packet, RST, SYN, Seen, address_text};
use crate::write::acks::AckRow;
use crate::write::label::Label;
use crate::write::records::Rows;

/// How a connection ended, as far as the capture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The capture ended first.
    Open,
    Fin,
    Reset,
    /// A new connection on the same ports.
    Reused,
    /// Given up for lack of room in the flow table.
    Evicted,
}

#[derive(Debug)]
pub struct Connection {
    pub key: Key,
    pub hash: u64,
    /// From `key.low` and from `key.high`.
    pub directions: [Direction; 2],
    /// Index of the direction that the initiator sends.
    pub initiator: usize,
    pub label: Label,
    pub last_ns: i64,
    pub end: End,
    /// Since the eviction hand came by last.
    pub touched: bool,
    /// Where its first packet stands in the capture.
    pub place: u64,
    handshake: Handshake,
    /// What the handshake says for each direction.
    paths: [Path; 2],
    released: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    syn_ns: Option<i64>,
    syn_ack_ns: Option<i64>,
    done_ns: Option<i64>,
    /// A SYN or SYN-ACK was sent again: the times say nothing.
    ambiguous: bool,
}

impl Connection {
    pub fn new(seen: Seen<'_>, place: u64, label: Label, size: Option<u64>) -> Self {
        let Seen { packet, ends, .. } = seen;
        let mut directions = [Direction::default(), Direction::default()];
        if let Some(direction) = label.data.and_then(|data| directions.get_mut(data)) {
            direction.size = size.map(|bytes| bytes.min(1 << 62) as i64);
        }
        let from = usize::from(packet.from_high);
        // A SYN-ACK comes from the responder; without handshake the first sender counts as the initiator.
        let initiator = if packet.flags & (SYN | ACK) == SYN | ACK { 1 - from } else { from };
        Connection {
            key: ends.key,
            hash: ends.hash,
            directions,
            initiator,
            label,
            last_ns: packet.time_ns,
            end: End::Open,
            touched: true,
            place,
            handshake: Handshake::default(),
            paths: [Path::default(); 2],
            released: false,
        }
    }

    /// Whether a SYN begins another connection than this one.
    #[cold]
    pub fn replaced_by(&self, packet: &Packet) -> bool {
        let [low, high] = &self.directions;
        let mine = if packet.from_high { high } else { low };
        packet.flags & ACK == 0
            && ((mine.started() && mine.initial_seq() != packet.seq) || matches!(self.end, End::Fin | End::Reset))
    }

    #[inline]
    pub fn on_packet(&mut self, seen: Seen<'_>, budget: &mut Budget, rows: &mut Rows) {
        let packet = seen.packet;
        let now = packet.time_ns;
        let from = usize::from(packet.from_high);
        self.last_ns = now;
        self.touched = true;
        if packet.flags & (SYN | RST) != 0 || self.handshake.done_ns.is_none() {
            self.on_handshake(packet, from);
        }
        for side in [from, 1 - from] {
            let due = self.directions.get(side).is_some_and(|d| now >= d.interval.end_ns);
            if due {
                self.turn_interval(side, now, rows);
            }
        }
        let shift = self.shift(from);
        let [from_low, from_high] = self.paths;
        let (forward, back) = if packet.from_high { (from_high, from_low) } else { (from_low, from_high) };
        let [low, high] = &mut self.directions;
        let (mine, theirs) = if packet.from_high { (high, low) } else { (low, high) };
        mine.on_sent(packet, forward, budget);
        if packet.flags & (ACK | RST) == ACK {
            let closing = mine.fin.is_some() && theirs.fin.is_some();
            let feedback = theirs.on_ack(packet, seen.sack, shift, back);
            if let Some(feedback) = feedback.filter(|_| self.label.data.is_none_or(|data| data != from)) {
                let forward = 1 - from == self.initiator;
                rows.ack(&mut self.label.flow, &AckRow { now, forward, feedback });
            }
            if closing {
                self.close(budget);
            }
        }
    }

    /// Both FINs acknowledged: what is kept for the analysis can go.
    #[cold]
    fn close(&mut self, budget: &mut Budget) {
        let done = |d: &Direction| d.fin.is_some_and(|fin| d.una > fin);
        if self.directions.iter().all(done) && !self.released {
            self.release(budget);
            if self.end == End::Open {
                self.end = End::Fin;
            }
        }
    }

    pub fn release(&mut self, budget: &mut Budget) {
        self.released = true;
        for direction in &mut self.directions {
            direction.segments.release(budget);
            direction.recent.release();
        }
    }

    /// Writes the interval that is over and begins the one that holds `now`.
    #[cold]
    fn turn_interval(&mut self, side: usize, now: i64, rows: &mut Rows) {
        self.flush_interval(side, rows);
        let (origin, width) = (rows.scale.origin_ns, rows.scale.width_ns);
        if let Some(direction) = self.directions.get_mut(side) {
            direction.interval.begin(now, origin, width);
        }
    }

    fn flush_interval(&mut self, side: usize, rows: &mut Rows) {
        let Some(interval) = self.directions.get(side).map(|d| d.interval).filter(|i| i.packets > 0 || i.delivered > 0)
        else {
            return;
        };
        if self.label.data.map_or(interval.of_data(), |data| data == side) {
            rows.interval(&mut self.label.flow, &interval, side == self.initiator);
        }
    }

    /// Writes the intervals under way.
    pub fn flush_intervals(&mut self, rows: &mut Rows) {
        for side in [self.initiator, 1 - self.initiator] {
            self.flush_interval(side, rows);
        }
    }

    #[cold]
    fn on_handshake(&mut self, packet: &Packet, from: usize) {
        let now = packet.time_ns;
        let h = &mut self.handshake;
        match packet.flags & (SYN | ACK | RST) {
            SYN => {
                h.ambiguous |= h.syn_ns.is_some();
                h.syn_ns.get_or_insert(now);
            }
            flags if flags == SYN | ACK => {
                h.ambiguous |= h.syn_ack_ns.is_some();
                h.syn_ack_ns.get_or_insert(now);
            }
            flags if flags & RST != 0 => {
                if self.end == End::Open {
                    self.end = End::Reset;
                }
            }
            _ => {
                if from == self.initiator || h.syn_ack_ns.is_none() {
                    h.done_ns = Some(now);
                    self.paths = [self.path(0), self.path(1)];
                }
            }
        }
    }

    /// SYN to the third packet of the handshake, as seen at the capture: the whole path's RTT.
    pub fn handshake_rtt_ns(&self) -> Option<i64> {
        let h = &self.handshake;
        h.syn_ack_ns.filter(|_| !h.ambiguous).and(h.done_ns.zip(h.syn_ns)).map(|(done, syn)| done - syn)
    }

    /// Which part of the handshake's RTT lay between the capture and the responder, 0 to 1.
    pub fn responder_share(&self) -> Option<f64> {
        let rtt = self.handshake_rtt_ns().filter(|rtt| *rtt > 0)?;
        let (syn_ack, syn) = self.handshake.syn_ack_ns.zip(self.handshake.syn_ns)?;
        Some((syn_ack - syn) as f64 / rtt as f64)
    }

    /// `None` unless the whole handshake was seen.
    pub fn handshake_seen(&self) -> bool {
        self.handshake.syn_ns.is_some() && self.handshake.syn_ack_ns.is_some() && self.handshake.done_ns.is_some()
    }

    fn path(&self, side: usize) -> Path {
        let rtt_ns = self.handshake_rtt_ns();
        let at_receiver = rtt_ns.is_some_and(|rtt| {
            let h = &self.handshake;
            let beyond = h.syn_ack_ns.unwrap_or(0) - h.syn_ns.unwrap_or(0);
            let to_receiver = if side == self.initiator { beyond } else { rtt - beyond };
            to_receiver < rtt / 4
        });
        Path { rtt_ns, at_receiver }
    }

    /// Whether the capture is at this direction's receiver.
    pub fn at_receiver(&self, side: usize) -> bool {
        self.path(side).at_receiver
    }

    /// The window scale of what `side` advertises; known only when both SYNs were seen (RFC 7323 s2.2).
    #[inline(always)]
    pub fn shift(&self, side: usize) -> Option<u8> {
        let [low, high] = &self.directions;
        let (mine, theirs) = if side == 0 { (low.syn?, high.syn?) } else { (high.syn?, low.syn?) };
        Some(if theirs.window_scale.is_some() { mine.window_scale.unwrap_or(0) } else { 0 })
    }

    /// Both SYNs said so: SACK, timestamps are in use, ECN was agreed.
    pub fn sack(&self) -> bool {
        self.directions.iter().all(|d| d.syn.is_some_and(|syn| syn.sack_permitted))
    }

    pub fn ecn(&self) -> bool {
        let [low, high] = &self.directions;
        let (first, second) = if self.initiator == 0 { (low, high) } else { (high, low) };
        first.syn_flags & (ECE | CWR) == ECE | CWR && second.syn_flags & (ECE | CWR) == ECE
    }

    /// Accurate ECN was agreed: all three flags in the SYN, and one of the four answers that say what its IP header
    /// carried in the SYN-ACK (RFC 9768 s3.1.1). What follows in ECE and CWR is then a counter.
    pub fn accurate_ecn(&self) -> bool {
        let [low, high] = &self.directions;
        let (first, second) = if self.initiator == 0 { (low, high) } else { (high, low) };
        let asked = first.syn_flags & (ECE | CWR) == ECE | CWR && first.syn.is_some_and(|syn| syn.accurate_ecn);
        let answer =
            (second.syn.is_some_and(|syn| syn.accurate_ecn), second.syn_flags & CWR != 0, second.syn_flags & ECE != 0);
        asked && matches!(answer, (false, true, _) | (true, _, false))
    }

    /// The direction of the flow's data: as the experiment file says, else the one with more payload.
    pub fn data_side(&self) -> usize {
        let payload = |side: usize| self.directions.get(side).map_or(0, |d| d.totals.payload_bytes);
        self.label.data.unwrap_or(if payload(1 - self.initiator) > payload(self.initiator) {
            1 - self.initiator
        } else {
            self.initiator
        })
    }

    /// Address and port of a side.
    pub fn endpoint(&self, side: usize) -> (String, u16) {
        let key = &self.key;
        let (address, port) = if side == 0 { (key.low, key.low_port) } else { (key.high, key.high_port) };
        (address_text(address, key.v4), port)
    }
}
