// SPDX-License-Identifier: Apache-2.0
//! The tables `acks` and `intervals`, and all tables of a run together. `docs/pcap.md` "Records" describes them.
#![forbid(unsafe_code)]

use crate::columns::{Batch, Column, Field, Kind, field, nullable};
use crate::connection::Connection;
use crate::feedback::Feedback;
use crate::interval::Interval;
use crate::{flows, path};

/// `warpbed.schema` in the Parquet metadata.
pub const SCHEMA_VERSION: &str = "2";
/// Rows after which a batch is written.
pub const ROWS: usize = 32_768;

pub const ACKS: &[Field] = &[
    field("time_ns", Kind::I64),
    field("t_s", Kind::F64),
    field("flow", Kind::Text),
    field("ack", Kind::I64),
    nullable("rtt_us", Kind::F64),
    field("sacked_bytes", Kind::I64),
    field("duplicate", Kind::Bool),
    field("forward", Kind::Bool),
    nullable("rtt_timestamps_us", Kind::F64),
    nullable("window_bytes", Kind::I64),
    field("in_flight_bytes", Kind::I64),
];

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

/// Names in a batch, so that memory does not grow with the number of flows.
#[derive(Debug, Default)]
struct Words {
    /// Counts batches from 1, so that (0, 0) is nobody's word.
    batch: u64,
    list: Vec<String>,
}

impl Words {
    #[inline(always)]
    fn word(&mut self, known: &mut (u64, u32), text: &str) -> u32 {
        if known.0 != self.batch + 1 {
            *known = (self.batch + 1, self.list.len() as u32);
            self.list.push(text.to_owned());
        }
        known.1
    }

    fn take(&mut self) -> Vec<String> {
        self.batch += 1;
        std::mem::take(&mut self.list)
    }
}

pub struct AckRow {
    pub now: i64,
    pub origin: i64,
    pub word: u32,
    pub forward: bool,
    pub feedback: Feedback,
}

#[derive(Debug, Default)]
pub struct Acks {
    words: Words,
    time_ns: Vec<i64>,
    t_s: Vec<f64>,
    flow: Vec<u32>,
    ack: Vec<i64>,
    rtt_us: Vec<f64>,
    rtt_levels: Vec<i16>,
    sacked: Vec<i64>,
    duplicate: Vec<bool>,
    forward: Vec<bool>,
    rtt_timestamps_us: Vec<f64>,
    rtt_timestamps_levels: Vec<i16>,
    window: Vec<i64>,
    window_levels: Vec<i16>,
    in_flight: Vec<i64>,
}

#[inline(always)]
fn optional<T>(values: &mut Vec<T>, levels: &mut Vec<i16>, value: Option<T>) {
    levels.push(i16::from(value.is_some()));
    values.extend(value);
}

impl Acks {
    #[inline(always)]
    pub fn word(&mut self, known: &mut (u64, u32), text: &str) -> u32 {
        self.words.word(known, text)
    }

    #[inline(always)]
    pub fn push(&mut self, row: AckRow) {
        let f = row.feedback;
        self.time_ns.push(row.now);
        self.t_s.push((row.now - row.origin) as f64 / 1e9);
        self.flow.push(row.word);
        self.ack.push(f.ack);
        optional(&mut self.rtt_us, &mut self.rtt_levels, f.rtt_ns.map(|ns| ns as f64 / 1e3));
        self.sacked.push(f.sacked);
        self.duplicate.push(f.duplicate);
        self.forward.push(row.forward);
        let by_timestamps = f.rtt_by_timestamps_ns.map(|ns| ns as f64 / 1e3);
        optional(&mut self.rtt_timestamps_us, &mut self.rtt_timestamps_levels, by_timestamps);
        optional(&mut self.window, &mut self.window_levels, f.window);
        self.in_flight.push(f.in_flight);
    }

    pub fn rows(&self) -> usize {
        self.time_ns.len()
    }

    fn with_room() -> Self {
        fn room<T>() -> Vec<T> {
            Vec::with_capacity(ROWS + ROWS / 16)
        }
        Acks {
            words: Words::default(),
            time_ns: room(),
            t_s: room(),
            flow: room(),
            ack: room(),
            rtt_us: room(),
            rtt_levels: room(),
            sacked: room(),
            duplicate: room(),
            forward: room(),
            rtt_timestamps_us: room(),
            rtt_timestamps_levels: room(),
            window: room(),
            window_levels: room(),
            in_flight: room(),
        }
    }

    /// The batch, in the order of `ACKS`; room for the next one is made at once.
    pub fn take(&mut self) -> Vec<Column> {
        let words = self.words.take();
        let next = Acks { words: std::mem::take(&mut self.words), ..Acks::with_room() };
        let a = std::mem::replace(self, next);
        let all = Vec::new;
        vec![
            Column::I64 { values: a.time_ns, levels: all() },
            Column::F64 { values: a.t_s, levels: all() },
            Column::Text { ids: a.flow, words, levels: all() },
            Column::I64 { values: a.ack, levels: all() },
            Column::F64 { values: a.rtt_us, levels: a.rtt_levels },
            Column::I64 { values: a.sacked, levels: all() },
            Column::Bool { values: a.duplicate, levels: all() },
            Column::Bool { values: a.forward, levels: all() },
            Column::F64 { values: a.rtt_timestamps_us, levels: a.rtt_timestamps_levels },
            Column::I64 { values: a.window, levels: a.window_levels },
            Column::I64 { values: a.in_flight, levels: all() },
        ]
    }
}

#[derive(Debug, Default)]
pub struct Intervals {
    words: Words,
    flow: Vec<u32>,
    numbers: [Vec<i64>; 7],
    fractions: [Vec<f64>; 4],
    forward: Vec<bool>,
}

impl Intervals {
    pub fn word(&mut self, known: &mut (u64, u32), text: &str) -> u32 {
        self.words.word(known, text)
    }

    pub fn push(&mut self, interval: &Interval, origin: i64, word: u32, forward: bool) {
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
        self.flow.push(word);
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

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Acks,
    Intervals,
    Flows,
    Directions,
    /// Of two captures of a path (`path.rs`).
    Path,
    PathFlows,
}

/// The tables of one capture.
pub const TABLES: [Name; 4] = [Name::Acks, Name::Intervals, Name::Flows, Name::Directions];

impl Name {
    pub fn text(self) -> &'static str {
        match self {
            Name::Acks => "acks",
            Name::Intervals => "intervals",
            Name::Flows => "flows",
            Name::Directions => "directions",
            Name::Path => "path",
            Name::PathFlows => "path_flows",
        }
    }

    pub fn fields(self) -> &'static [Field] {
        match self {
            Name::Acks => ACKS,
            Name::Intervals => INTERVALS,
            Name::Flows | Name::Directions => flows::FIELDS,
            Name::Path => path::PACKETS,
            Name::PathFlows => path::FLOWS,
        }
    }
}

/// What the analysis has to say and has not been written yet.
#[derive(Debug, Default)]
pub struct Rows {
    pub acks: Acks,
    pub intervals: Intervals,
    flows: Batch,
    directions: Batch,
    /// Time 0 of `t_s`.
    pub origin_ns: i64,
    /// Width of an interval.
    pub width_ns: i64,
    pub capture: String,
}

impl Rows {
    pub fn new(width_ns: i64) -> Self {
        Rows { width_ns: width_ns.max(1), ..Rows::default() }
    }

    /// Writes a connection that is over.
    pub fn finish(&mut self, connection: &mut Connection) {
        let data = connection.data_side();
        for side in [connection.initiator, 1 - connection.initiator] {
            connection.flush_interval(side, self);
            let row = flows::row(connection, side, self);
            if side == data {
                self.flows.push(flows::FIELDS, row.clone());
            }
            self.directions.push(flows::FIELDS, row);
        }
    }

    /// Batches that are full, or all with `end`.
    pub fn take(&mut self, end: bool) -> Vec<(Name, Vec<Column>)> {
        let mut ready = Vec::new();
        let due = |rows: usize| rows >= ROWS || (end && rows > 0);
        if due(self.acks.rows()) {
            ready.push((Name::Acks, self.acks.take()));
        }
        if due(self.intervals.rows()) {
            ready.push((Name::Intervals, self.intervals.take()));
        }
        // Rows of many columns: fewer of them.
        if due(self.flows.rows() * 16) {
            ready.push((Name::Flows, self.flows.take()));
        }
        if due(self.directions.rows() * 16) {
            ready.push((Name::Directions, self.directions.take()));
        }
        ready
    }
}
