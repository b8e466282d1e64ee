// SPDX-License-Identifier: Apache-2.0
//! Captures of simulated TCP, for benchmarks and tests: Reno with SACK over one bottleneck with a drop-tail queue and
//! random loss, delayed ACKs, captured at the senders. The same settings give the same bytes.
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use crate::read::packet::{ACK, FIN, SYN};
use flow::{Ack, Flow};
use frame::{Sent, WINDOW_BYTES, write_frame};
pub use settings::Settings;

mod flow;
mod frame;
mod settings;

/// Linux's lower bound.
const RTO_NS: u64 = 200_000_000;

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
    Ack(Ack),
    Timer,
    /// A packet of the opening or the end, when it passes the capture.
    Passes(Sent),
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
        let mut simulation = Simulation {
            settings,
            out,
            flows,
            events: BinaryHeap::new(),
            order: 0,
            random,
            busy_until: 0,
            written: 0,
            frame: Vec::new(),
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
                self.at(now + rtt + 2000, flow, Event::Ack(Ack { ack: 0, sack: [(0, 0); 3], tsecr: 0 }));
            }
            Event::Passes(sent) => self.packet(now, flow, f, sent)?,
            Event::Data { seq, len, tsval } => {
                if let Some(ack) = f.receive(seq, len, tsval, self.settings.ack_every) {
                    self.at(now + f.rtt_ns / 2, flow, Event::Ack(ack));
                }
            }
            Event::Ack(ack) => self.on_ack(now, flow, f, ack)?,
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

    fn on_ack(&mut self, now: u64, flow: u32, f: &mut Flow, Ack { ack, sack, tsecr }: Ack) -> io::Result<()> {
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
        write_frame(&mut self.frame, &self.settings, now, (flow, f.isn, f.ip_id), &sent);
        self.out.write_all(&self.frame)
    }
}
