// SPDX-License-Identifier: Apache-2.0
//! Finds the packets of one point of a path at the other.
#![forbid(unsafe_code)]

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;

use crate::measure::rtt::Rtt;
use crate::read::packet::Whole;
use crate::write::columns::{Batch, Value};
use crate::write::label::Namer;
use crate::write::path::PACKETS;

/// Packets under way between the points that are kept (about 60 bytes each); the oldest go first.
const MAX_PENDING: usize = 1 << 20;
/// Packets of the same contents that are told apart.
const MAX_EQUAL: u64 = 4;

/// One direction of a connection on the path.
struct Flow {
    name: String,
    forward: bool,
    /// Which point its packets pass first, from the first packet found at both.
    a_to_b: Option<bool>,
    /// Packets seen only at A, only at B.
    only: [u64; 2],
    delay: Rtt,
}

struct Pending {
    time_ns: i64,
    id: u64,
    at_b: bool,
    flow: u32,
    wire: u32,
    payload: u32,
}

#[derive(Default)]
pub struct Matcher {
    state: foldhash::fast::RandomState,
    /// By identity, the number of the pending packet since the start.
    index: HashMap<u64, u64, foldhash::fast::RandomState>,
    pending: VecDeque<Option<Pending>>,
    /// Number of `pending[0]`.
    first: u64,
    flows: Vec<Flow>,
    flow_index: HashMap<(u128, u128, u64, bool), u32, foldhash::fast::RandomState>,
    namer: Namer,
    max_flows: usize,
    max_delay_ns: i64,
    forward_from_a: Option<bool>,
    pub origin_ns: i64,
    /// Smallest delay from A to B and from B to A; of the first pass, for the second.
    pub base_ns: [Option<i64>; 2],
    pub rows: Option<Batch>,
    pub delivered: u64,
    pub lost: u64,
}

impl Matcher {
    /// `base_ns` as an earlier pass left it.
    pub fn new(
        namer: Namer,
        max_flows: usize,
        max_delay_ns: i64,
        forward_from_a: Option<bool>,
        base_ns: [Option<i64>; 2],
    ) -> Self {
        Matcher { namer, max_flows, max_delay_ns, forward_from_a, base_ns, ..Matcher::default() }
    }

    fn identity(&self, whole: &Whole) -> u64 {
        let p = &whole.packet;
        let numbers = (p.seq, p.ack, p.payload, p.flags, p.window, p.ip_id, p.timestamps, p.from_high);
        self.state.hash_one((whole.key.words(), numbers, whole.sack()))
    }

    fn flow(&mut self, Whole { packet, key, .. }: &Whole) -> Option<u32> {
        let (low, high, ports) = key.words();
        let place = (low, high, ports, packet.from_high);
        if let Some(at) = self.flow_index.get(&place) {
            return Some(*at);
        }
        if self.flows.len() + 2 > 2 * self.max_flows {
            return None;
        }
        let (label, _) = self.namer.label(key, packet.from_high);
        let at = self.flows.len() as u32;
        for (from_high, forward) in [(packet.from_high, true), (!packet.from_high, false)] {
            let name = label.flow.text.clone();
            let forward = label.data.map_or(forward, |data| data == usize::from(from_high));
            // Where it is known, clocks that are wrong by more than the delay do not turn the path round.
            let a_to_b = self.forward_from_a.map(|from_a| forward == from_a);
            self.flow_index.insert((low, high, ports, from_high), self.flows.len() as u32);
            self.flows.push(Flow { name, forward, a_to_b, only: [0, 0], delay: Rtt::default() });
        }
        Some(at)
    }

    pub fn on_packet(&mut self, whole: &Whole, at_b: bool) {
        let packet = &whole.packet;
        let now = packet.time_ns;
        self.expire(now.saturating_sub(self.max_delay_ns));
        let Some(flow) = self.flow(whole) else { return };
        let id = self.identity(whole);
        for id in (0..MAX_EQUAL).map(|n| id.wrapping_add(n)) {
            let Some(number) = self.index.get(&id).copied() else { continue };
            let Some(place) = number.checked_sub(self.first).and_then(|n| self.pending.get_mut(n as usize)) else {
                continue;
            };
            if place.as_ref().is_some_and(|p| p.at_b != at_b) {
                if let Some(sent) = place.take() {
                    self.index.remove(&id);
                    self.arrived(&sent, now);
                    return;
                }
            }
        }
        let Some(id) = (0..MAX_EQUAL).map(|n| id.wrapping_add(n)).find(|id| !self.index.contains_key(id)) else {
            return;
        };
        self.index.insert(id, self.first + self.pending.len() as u64);
        self.pending.push_back(Some(Pending {
            time_ns: now,
            id,
            at_b,
            flow,
            wire: packet.wire,
            payload: packet.payload,
        }));
        if self.pending.len() > MAX_PENDING {
            self.drop_first();
        }
    }

    fn arrived(&mut self, first: &Pending, now: i64) {
        self.delivered += 1;
        let Some(flow) = self.flows.get_mut(first.flow as usize) else { return };
        let a_to_b = *flow.a_to_b.get_or_insert(!first.at_b);
        let (at_a, at_b) = if first.at_b { (now, first.time_ns) } else { (first.time_ns, now) };
        let (sent_ns, delay_ns) = if a_to_b { (at_a, at_b - at_a) } else { (at_b, at_a - at_b) };
        flow.delay.add(delay_ns.max(0));
        let base = self.base_ns.get_mut(usize::from(!a_to_b));
        let queue_ns = match (base, self.rows.is_some()) {
            (Some(base), false) => {
                *base = Some(base.map_or(delay_ns, |ns| ns.min(delay_ns)));
                None
            }
            (Some(base), true) => base.map(|ns| delay_ns - ns),
            _ => None,
        };
        self.row(first, sent_ns, a_to_b, Some(delay_ns), queue_ns);
    }

    fn row(&mut self, sent: &Pending, time_ns: i64, a_to_b: bool, delay_ns: Option<i64>, queue_ns: Option<i64>) {
        let (Some(rows), Some(flow)) = (&mut self.rows, self.flows.get(sent.flow as usize)) else { return };
        let us = |ns: Option<i64>| Value::from(ns.map(|ns| ns as f64 / 1e3));
        rows.push(
            PACKETS,
            vec![
                time_ns.into(),
                ((time_ns - self.origin_ns) as f64 / 1e9).into(),
                flow.name.as_str().into(),
                a_to_b.into(),
                i64::from(sent.wire).into(),
                i64::from(sent.payload).into(),
                us(delay_ns),
                us(queue_ns),
            ],
        );
    }

    /// Gives up packets sent before `time`.
    fn expire(&mut self, time: i64) {
        while self.pending.front().is_some_and(|p| p.as_ref().is_none_or(|p| p.time_ns < time)) {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        self.first += 1;
        let Some(Some(sent)) = self.pending.pop_front() else { return };
        self.index.remove(&sent.id);
        let Some(flow) = self.flows.get_mut(sent.flow as usize) else { return };
        if let Some(count) = flow.only.get_mut(usize::from(sent.at_b)) {
            *count += 1;
        }
        // Lost on the way, unless the direction's packets pass the other point first: that one missed it.
        if flow.a_to_b.is_none_or(|a_to_b| a_to_b != sent.at_b) {
            self.lost += 1;
            self.row(&sent, sent.time_ns, !sent.at_b, None, None);
        }
    }

    /// Rows of `path_flows`.
    pub fn flow_rows(&self) -> impl Iterator<Item = Vec<Value>> {
        let seen = self.flows.iter().filter(|f| f.delay.samples > 0 || f.only != [0, 0]);
        seen.map(|flow| self.flow_row(flow))
    }

    fn flow_row(&self, flow: &Flow) -> Vec<Value> {
        let [only_a, only_b] = flow.only;
        let (lost, missed) = if flow.a_to_b.unwrap_or(true) { (only_a, only_b) } else { (only_b, only_a) };
        let d = &flow.delay;
        let sent = d.samples + lost;
        let us = |ns: Option<f64>| Value::from(ns.map(|ns| ns / 1e3));
        let some = |ns: i64| (d.samples > 0).then_some(ns as f64);
        vec![
            flow.name.as_str().into(),
            flow.forward.into(),
            flow.a_to_b.into(),
            d.samples.into(),
            lost.into(),
            missed.into(),
            (sent > 0).then(|| lost as f64 / sent as f64).into(),
            us(some(d.min_ns)),
            us(d.mean_ns()),
            us(d.quantile_ns(0.95)),
            us(some(d.max_ns)),
        ]
    }
}
