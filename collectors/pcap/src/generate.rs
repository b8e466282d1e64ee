// SPDX-License-Identifier: Apache-2.0
//! Captures of simulated TCP, for benchmarks and tests: Reno with SACK over one bottleneck with a drop-tail queue and
//! random loss, delayed ACKs, captured at the senders. The same settings give the same bytes.
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use crate::packet::{ACK, FIN, SYN};
use crate::ranges::Ranges;

#[derive(Clone, Debug)]
pub struct Settings {
    pub flows: u32,
    /// Packets after which the capture ends.
    pub packets: u64,
    pub seed: u64,
    /// Captured bytes per packet; 0 for all.
    pub snap: u32,
    pub rate_bps: u64,
    /// RTT without queue; flow i has up to half as much more.
    pub rtt_ns: u64,
    pub queue_bytes: u64,
    /// Random losses per million packets.
    pub loss_ppm: u64,
    /// Bytes per flow, 0 for no end.
    pub flow_bytes: u64,
    pub mss: u32,
    pub nanoseconds: bool,
    /// Every how many segments the receiver acknowledges.
    pub ack_every: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            flows: 1,
            packets: 1_200_000,
            seed: 1,
            snap: 96,
            rate_bps: 1_000_000_000,
            rtt_ns: 40_000_000,
            queue_bytes: 2_500_000,
            loss_ppm: 20,
            flow_bytes: 0,
            mss: 1448,
            nanoseconds: true,
            ack_every: 2,
        }
    }
}

/// Linux's lower bound.
const RTO_NS: u64 = 200_000_000;
const START_NS: u64 = 1_700_000_000_000_000_000;
const WINDOW_SHIFT: u8 = 10;
const WINDOW_BYTES: u64 = 48 << 20;

/// xorshift64*, good enough to drop packets by.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % limit
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Open,
    Data {
        seq: i64,
        len: u32,
        tsval: u32,
    },
    Ack {
        ack: i64,
        sack: [(i64, i64); 3],
        tsecr: u32,
    },
    Timer,
    /// A packet of the opening or the end, when it passes the capture.
    Passes(Sent),
}

#[derive(Default)]
struct Flow {
    isn: u32,
    rtt_ns: u64,
    una: i64,
    nxt: i64,
    resend: i64,
    cwnd: u64,
    ssthresh: u64,
    credit: u64,
    duplicates: u32,
    recovery: i64,
    lost: bool,
    sacked: Ranges,
    deadline: u64,
    timer_set: bool,
    finished: bool,
    // The receiver.
    received: i64,
    early: Ranges,
    recent: [(i64, i64); 3],
    unacked: u32,
    echo: u32,
    ip_id: u16,
}

pub struct Simulation<W: Write> {
    settings: Settings,
    out: W,
    flows: Vec<Flow>,
    events: BinaryHeap<Reverse<(u64, u64, u32, Event)>>,
    order: u64,
    random: Random,
    /// When the bottleneck has sent all that is queued.
    busy_until: u64,
    written: u64,
    frame: Vec<u8>,
}

impl<W: Write> Simulation<W> {
    /// Writes the whole capture.
    pub fn run(settings: Settings, mut out: W) -> io::Result<()> {
        let magic: u32 = if settings.nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
        let snap = if settings.snap == 0 { 262_144 } else { settings.snap };
        for word in [magic, 2 | 4 << 16, 0, 0, snap, 1] {
            out.write_all(&word.to_le_bytes())?;
        }
        let mut random = Random(settings.seed.max(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let flow = |_| Flow {
            isn: random.below(1 << 32) as u32,
            rtt_ns: settings.rtt_ns + random.below(settings.rtt_ns / 2 + 1),
            cwnd: 10,
            ssthresh: u64::MAX / 2,
            ..Flow::default()
        };
        let flows = (0..settings.flows).map(flow).collect();
        let frame = vec![0; settings.mss as usize + 128];
        let mut simulation = Simulation {
            settings,
            out,
            flows,
            events: BinaryHeap::new(),
            order: 0,
            random,
            busy_until: 0,
            written: 0,
            frame,
        };
        for flow in 0..simulation.settings.flows {
            simulation.at(u64::from(flow) * 1_000_000, flow, Event::Open);
        }
        while let Some(Reverse((now, _, flow, event))) = simulation.events.pop() {
            if simulation.written >= simulation.settings.packets {
                break;
            }
            let mut state = match simulation.flows.get_mut(flow as usize) {
                Some(state) => std::mem::take(state),
                None => continue,
            };
            simulation.handle(now, flow, &mut state, event)?;
            if let Some(place) = simulation.flows.get_mut(flow as usize) {
                *place = state;
            }
        }
        simulation.out.flush()
    }

    fn at(&mut self, time: u64, flow: u32, event: Event) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, flow, event)));
    }

    fn handle(&mut self, now: u64, flow: u32, f: &mut Flow, event: Event) -> io::Result<()> {
        match event {
            Event::Open => {
                let rtt = f.rtt_ns;
                self.packet(now, flow, f, Sent { forward: true, flags: SYN, seq: -1, ..Sent::default() })?;
                self.at(now + rtt, flow, Event::Passes(Sent { flags: SYN | ACK, seq: -1, ..Sent::default() }));
                let third = Sent { forward: true, flags: ACK, ..Sent::default() };
                self.at(now + rtt + 1000, flow, Event::Passes(third));
                self.at(now + rtt + 2000, flow, Event::Ack { ack: 0, sack: [(0, 0); 3], tsecr: 0 });
            }
            Event::Passes(sent) => self.packet(now, flow, f, sent)?,
            Event::Data { seq, len, tsval } => self.receive(now, flow, f, (seq, len, tsval)),
            Event::Ack { ack, sack, tsecr } => self.on_ack(now, flow, f, (ack, sack, tsecr))?,
            Event::Timer => {
                f.timer_set = false;
                if f.una < f.nxt && now >= f.deadline {
                    f.ssthresh = (f.cwnd / 2).max(2);
                    (f.cwnd, f.resend, f.recovery, f.lost, f.duplicates) = (1, f.una, f.nxt, true, 0);
                    f.sacked.clear();
                    f.deadline = now + RTO_NS + f.rtt_ns;
                    self.send_again(now, flow, f)?;
                }
                self.arm(flow, f);
            }
        }
        Ok(())
    }

    fn arm(&mut self, flow: u32, f: &mut Flow) {
        if !f.timer_set && f.una < f.nxt {
            f.timer_set = true;
            self.at(f.deadline, flow, Event::Timer);
        }
    }

    fn receive(&mut self, now: u64, flow: u32, f: &mut Flow, (seq, len, tsval): (i64, u32, u32)) {
        let end = seq + i64::from(len);
        let in_order = seq <= f.received;
        if in_order {
            if f.unacked == 0 {
                f.echo = tsval;
            }
            f.received = f.received.max(end);
            while f.early.contains(f.received) {
                f.received += 1;
                let at = f.received;
                f.received = f.recent.iter().filter(|b| b.0 < at && at <= b.1).map(|b| b.1).max().unwrap_or(at);
            }
            f.early.remove_below(f.received);
        } else {
            f.early.insert(seq, end);
            let mut block = (seq, end);
            for old in &f.recent {
                if old.0 <= block.1 && block.0 <= old.1 {
                    block = (block.0.min(old.0), block.1.max(old.1));
                }
            }
            let keep = f.recent.iter().copied().filter(|b| b.1 < block.0 || b.0 > block.1);
            let mut next = [(0, 0); 3];
            for (place, value) in next.iter_mut().zip(std::iter::once(block).chain(keep)) {
                *place = value;
            }
            f.recent = next;
        }
        let received = f.received;
        for block in &mut f.recent {
            if block.1 <= received {
                *block = (0, 0);
            }
        }
        f.unacked += 1;
        if !in_order || !f.early.is_empty() || f.unacked >= self.settings.ack_every {
            f.unacked = 0;
            let event = Event::Ack { ack: f.received, sack: f.recent, tsecr: f.echo };
            self.at(now + f.rtt_ns / 2, flow, event);
        }
    }

    fn on_ack(
        &mut self,
        now: u64,
        flow: u32,
        f: &mut Flow,
        (ack, sack, tsecr): (i64, [(i64, i64); 3], u32),
    ) -> io::Result<()> {
        if f.finished {
            return Ok(());
        }
        let opening = f.nxt == 0;
        if !opening {
            self.packet(now, flow, f, Sent { flags: ACK, ack, sack, tsecr, ..Sent::default() })?;
        }
        for block in sack {
            f.sacked.insert(block.0.max(ack), block.1);
        }
        if ack > f.una {
            let segments = ((ack - f.una) as u64).div_ceil(u64::from(self.settings.mss));
            f.una = ack;
            f.sacked.remove_below(ack);
            f.duplicates = 0;
            f.resend = f.resend.max(ack);
            f.deadline = now + RTO_NS + f.rtt_ns;
            if f.una >= f.recovery || f.lost {
                f.lost &= f.una < f.recovery;
                if f.cwnd < f.ssthresh {
                    f.cwnd += segments;
                } else {
                    f.credit += segments;
                    if f.credit >= f.cwnd {
                        (f.credit, f.cwnd) = (0, f.cwnd + 1);
                    }
                }
            }
        } else if !opening {
            f.duplicates += 1;
            if f.duplicates == 3 && f.una >= f.recovery {
                (f.recovery, f.resend) = (f.nxt, f.una);
                f.ssthresh = (f.cwnd / 2).max(2);
                f.cwnd = f.ssthresh;
            }
        }
        if f.una < f.recovery {
            // Two packets per ACK of two keep as many in flight; loss recovery goes first.
            for _ in 0..self.settings.ack_every {
                if !self.send_again(now, flow, f)? && f.lost {
                    break;
                }
            }
        }
        self.send_new(now, flow, f)?;
        self.arm(flow, f);
        let all = self.settings.flow_bytes as i64;
        if all > 0 && f.una >= all {
            f.finished = true;
            let (seq, ack) = (all, all);
            self.packet(now, flow, f, Sent { forward: true, flags: FIN | ACK, seq, ..Sent::default() })?;
            let back = now + f.rtt_ns;
            self.at(back, flow, Event::Passes(Sent { flags: FIN | ACK, ack: ack + 1, ..Sent::default() }));
            let last = Sent { forward: true, flags: ACK, seq: seq + 1, ack: 1, ..Sent::default() };
            self.at(back + 1000, flow, Event::Passes(last));
        }
        Ok(())
    }

    /// The next segment that SACK shows missing (or, after a timeout, the next that is not reported).
    fn send_again(&mut self, now: u64, flow: u32, f: &mut Flow) -> io::Result<bool> {
        let limit = if f.lost { f.recovery } else { f.sacked.end().unwrap_or(f.una + 1).min(f.recovery) };
        while f.resend < limit && f.sacked.contains(f.resend) {
            f.resend += i64::from(self.settings.mss);
        }
        if f.resend >= limit || f.resend >= f.nxt {
            return Ok(false);
        }
        let len = i64::from(self.settings.mss).min(f.nxt - f.resend);
        let seq = f.resend;
        f.resend += len;
        self.send(now, flow, f, seq, len as u32)?;
        Ok(true)
    }

    fn send_new(&mut self, now: u64, flow: u32, f: &mut Flow) -> io::Result<()> {
        let mss = i64::from(self.settings.mss);
        let all = if self.settings.flow_bytes == 0 { i64::MAX } else { self.settings.flow_bytes as i64 };
        let window = (f.cwnd as i64).saturating_mul(mss).min(WINDOW_BYTES as i64);
        while f.nxt < all && f.nxt - f.una - f.sacked.total() < window && f.nxt - f.una < WINDOW_BYTES as i64 {
            let len = mss.min(all - f.nxt);
            if f.una == f.nxt {
                f.deadline = now + RTO_NS + f.rtt_ns;
            }
            let seq = f.nxt;
            f.nxt += len;
            self.send(now, flow, f, seq, len as u32)?;
        }
        Ok(())
    }

    fn send(&mut self, now: u64, flow: u32, f: &mut Flow, seq: i64, len: u32) -> io::Result<()> {
        self.packet(now, flow, f, Sent { forward: true, flags: ACK, seq, len, ..Sent::default() })?;
        let bits = u64::from(len + 66) * 8;
        let queued_ns = self.busy_until.saturating_sub(now);
        let limit_ns = self.settings.queue_bytes * 8 * 1_000_000_000 / self.settings.rate_bps;
        if queued_ns > limit_ns || self.random.below(1_000_000) < self.settings.loss_ppm {
            return Ok(());
        }
        self.busy_until = self.busy_until.max(now) + bits * 1_000_000_000 / self.settings.rate_bps;
        let tsval = (now / 1_000_000) as u32;
        self.at(self.busy_until + f.rtt_ns / 2, flow, Event::Data { seq, len, tsval });
        Ok(())
    }

    fn packet(&mut self, now: u64, flow: u32, f: &mut Flow, sent: Sent) -> io::Result<()> {
        self.written += 1;
        f.ip_id = f.ip_id.wrapping_add(1);
        let syn = sent.flags & SYN != 0;
        let blocks = sent.sack.iter().filter(|b| b.1 > b.0).count();
        let options = if syn { 20 } else { 12 + if blocks > 0 { 4 + 8 * blocks } else { 0 } };
        let ip_length = 40 + options + sent.len as usize;
        let original = 14 + ip_length;
        let [_, _, high, low] = flow.to_be_bytes();
        let (client, server) = ([10, 0, high, low], [10, 1, high, low]);
        let (source, destination) = if sent.forward { (client, server) } else { (server, client) };
        let (source_port, destination_port) = if sent.forward { (40_000u16, 5201u16) } else { (5201, 40_000) };
        let stamp = (now / 1_000_000) as u32;
        let other_isn = f.isn.wrapping_mul(2_654_435_761).wrapping_add(1);
        let (mine, theirs) = if sent.forward { (f.isn, other_isn) } else { (other_isn, f.isn) };
        let seq = mine.wrapping_add(1).wrapping_add(sent.seq as u32);
        let ack = if sent.flags & ACK == 0 { 0 } else { theirs.wrapping_add(1).wrapping_add(sent.ack as u32) };
        let time = START_NS + now;
        let part = if self.settings.nanoseconds { time % 1_000_000_000 } else { time % 1_000_000_000 / 1000 };
        let captured = if self.settings.snap == 0 { original } else { original.min(self.settings.snap as usize) };
        let mut b = std::mem::take(&mut self.frame);
        let payload_room = b.len();
        b.clear();
        for word in [(time / 1_000_000_000) as u32, part as u32, captured as u32, original as u32] {
            b.extend_from_slice(&word.to_le_bytes());
        }
        b.extend_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0]);
        b.extend_from_slice(&(ip_length as u16).to_be_bytes());
        b.extend_from_slice(&f.ip_id.to_be_bytes());
        b.extend_from_slice(&[0x40, 0, 64, 6, 0, 0]);
        b.extend_from_slice(&source);
        b.extend_from_slice(&destination);
        b.extend_from_slice(&source_port.to_be_bytes());
        b.extend_from_slice(&destination_port.to_be_bytes());
        b.extend_from_slice(&seq.to_be_bytes());
        b.extend_from_slice(&ack.to_be_bytes());
        b.extend_from_slice(&[(((20 + options) / 4) << 4) as u8, sent.flags]);
        let window = if syn { 65_535 } else { (WINDOW_BYTES >> WINDOW_SHIFT) as u16 };
        b.extend_from_slice(&window.to_be_bytes());
        b.extend_from_slice(&[0, 0, 0, 0]);
        if syn {
            let [high, low] = (self.settings.mss as u16 + 12).to_be_bytes();
            b.extend_from_slice(&[2, 4, high, low, 4, 2, 8, 10]);
        } else {
            b.extend_from_slice(&[1, 1, 8, 10]);
        }
        b.extend_from_slice(&stamp.to_be_bytes());
        let echo = if sent.tsecr != 0 {
            sent.tsecr
        } else if sent.flags == SYN {
            0
        } else {
            stamp
        };
        b.extend_from_slice(&echo.to_be_bytes());
        if syn {
            b.extend_from_slice(&[1, 3, 3, WINDOW_SHIFT]);
        }
        if blocks > 0 {
            b.extend_from_slice(&[1, 1, 5, (2 + 8 * blocks) as u8]);
            for block in sent.sack.iter().filter(|b| b.1 > b.0) {
                b.extend_from_slice(&theirs.wrapping_add(1).wrapping_add(block.0 as u32).to_be_bytes());
                b.extend_from_slice(&theirs.wrapping_add(1).wrapping_add(block.1 as u32).to_be_bytes());
            }
        }
        b.resize(16 + captured, 0);
        let result = self.out.write_all(&b);
        b.resize(payload_room, 0);
        self.frame = b;
        result
    }
}

/// A packet to be written; sequence numbers count from the first byte of the stream.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Sent {
    forward: bool,
    flags: u8,
    seq: i64,
    ack: i64,
    len: u32,
    sack: [(i64, i64); 3],
    tsecr: u32,
}
