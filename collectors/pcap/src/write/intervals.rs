// SPDX-License-Identifier: Apache-2.0
//! The table `intervals`. `docs/pcap.md` "Records" describes it.
#![forbid(unsafe_code)]

use crate::measure::interval::Interval;
use crate::write::columns::{Column, Field, Kind, field};
use crate::write::label::FlowName;
use crate::write::words::Words;

pub const INTERVALS: &[Field] = &[
    field("time_ns", Kind::I64),
    field("t_s", Kind::F64),
    field("flow", Kind::Text),
    field("width_s", Kind::F64),
    field("packets", Kind::I64),
    field("wire_bytes", Kind::I64),
    field("payload_bytes", Kind::I64),
    field("retransmitted_bytes", Kind::I64),
    field("delivered_bytes", Kind::I64),
    field("throughput_mbps", Kind::F64),
    field("goodput_mbps", Kind::F64),
    field("in_flight_bytes", Kind::I64),
    field("forward", Kind::Bool),
];

#[derive(Debug, Default)]
pub struct Intervals {
    words: Words,
    flow: Vec<u32>,
    numbers: [Vec<i64>; 7],
    fractions: [Vec<f64>; 4],
    forward: Vec<bool>,
}

impl Intervals {
    pub fn push(&mut self, flow: &mut FlowName, origin: i64, interval: &Interval, forward: bool) {
        let width_s = (interval.end_ns - interval.start_ns) as f64 / 1e9;
        let mbps = |bytes: u64| bytes as f64 * 8e-6 / width_s;
        let i = interval;
        let counts = [i.packets, i.wire, i.payload, i.retransmitted, i.delivered].map(|n| n as i64);
        let [packets, wire, payload, retransmitted, delivered] = counts;
        let numbers = [i.start_ns, packets, wire, payload, retransmitted, delivered, i.in_flight];
        for (column, value) in self.numbers.iter_mut().zip(numbers) {
            column.push(value);
        }
        let start_s = (i.start_ns - origin) as f64 / 1e9;
        for (column, value) in self.fractions.iter_mut().zip([start_s, width_s, mbps(i.wire), mbps(i.delivered)]) {
            column.push(value);
        }
        self.flow.push(self.words.word(&mut flow.in_intervals, &flow.text));
        self.forward.push(forward);
    }

    pub fn rows(&self) -> usize {
        self.flow.len()
    }

    pub fn take(&mut self) -> Vec<Column> {
        let words = self.words.take();
        let next = Intervals { words: std::mem::take(&mut self.words), ..Intervals::default() };
        let batch = std::mem::replace(self, next);
        let number = |values| Column::I64 { values, levels: Vec::new() };
        let fraction = |values| Column::F64 { values, levels: Vec::new() };
        let [time, packets, wire, payload, retransmitted, delivered, in_flight] = batch.numbers;
        let [start, width, throughput, goodput] = batch.fractions;
        vec![
            number(time),
            fraction(start),
            Column::Text { ids: batch.flow, words, levels: Vec::new() },
            fraction(width),
            number(packets),
            number(wire),
            number(payload),
            number(retransmitted),
            number(delivered),
            fraction(throughput),
            fraction(goodput),
            number(in_flight),
            Column::Bool { values: batch.forward, levels: Vec::new() },
        ]
    }
}
