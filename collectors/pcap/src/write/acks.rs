// SPDX-License-Identifier: Apache-2.0
//! The table `acks`. `docs/pcap.md` "Records" describes it.
#![forbid(unsafe_code)]

use crate::measure::feedback::Feedback;
use crate::write::columns::{Column, Field, Kind, ROWS, field, nullable};
use crate::write::label::FlowName;
use crate::write::words::Words;

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

/// What one ACK said, when, and about which direction.
#[derive(Clone, Copy, Debug)]
pub struct AckRow {
    pub now: i64,
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
    pub fn push(&mut self, flow: &mut FlowName, origin: i64, row: &AckRow) {
        let f = row.feedback;
        self.time_ns.push(row.now);
        self.t_s.push((row.now - origin) as f64 / 1e9);
        self.flow.push(self.words.word(&mut flow.in_acks, &flow.text));
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
