// SPDX-License-Identifier: Apache-2.0
//! The tables of a run, and the rows that the analysis has for them. `docs/pcap.md` "Records" describes them.
#![forbid(unsafe_code)]

use std::sync::Arc;

use crate::measure::interval::Interval;
use crate::write::acks::{ACKS, AckRow, Acks};
use crate::write::columns::{Batch, Column, Field, ROWS, Value};
use crate::write::intervals::{INTERVALS, Intervals};
use crate::write::label::FlowName;
use crate::write::{flows, path};

/// `warpbed.schema` in the Parquet metadata.
pub const SCHEMA_VERSION: &str = "2";
/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Acks,
    Intervals,
    Flows,
    Directions,
    /// Of two captures of a path (`compare`).
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

/// What rows need to know of their capture.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Time 0 of `t_s`.
    pub origin_ns: i64,
    /// Width of an interval, above 0.
    pub width_ns: i64,
    /// The capture's name.
    pub capture: Arc<str>,
}

/// The columns under way of one shard; the rows of a connection come in the order of its packets.
#[derive(Debug)]
pub struct Rows {
    acks: Acks,
    intervals: Intervals,
    flows: Batch,
    directions: Batch,
    pub scale: Scale,
    /// Where the packet at hand stands in the capture; rises with every packet.
    pub place: u64,
}

/// Rows of a table to be written.
#[derive(Debug)]
pub struct Full {
    pub name: Name,
    pub columns: Vec<Column>,
}

/// Batches so far, per table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers([u64; TABLES.len()]);

impl Numbers {
    /// The place of the next batch in its file.
    pub fn next(&mut self, name: Name) -> u64 {
        let count = TABLES.iter().zip(&mut self.0).find(|(table, _)| **table == name);
        count.map_or(0, |(_, count)| std::mem::replace(count, *count + 1))
    }
}

impl Rows {
    pub fn new(scale: Scale) -> Self {
        let (acks, intervals) = (Acks::default(), Intervals::default());
        Rows { acks, intervals, flows: Batch::default(), directions: Batch::default(), scale, place: 0 }
    }

    #[inline(always)]
    pub fn ack(&mut self, flow: &mut FlowName, row: &AckRow) {
        self.acks.push(flow, self.scale.origin_ns, row);
    }

    pub fn interval(&mut self, flow: &mut FlowName, interval: &Interval, forward: bool) {
        self.intervals.push(flow, self.scale.origin_ns, interval, forward);
    }

    /// One direction of a connection that is over, for `directions`, and for `flows` where its data go that way.
    pub fn direction(&mut self, row: Vec<Value>, of_data: bool) {
        if of_data {
            self.flows.push(flows::FIELDS, row.clone());
        }
        self.directions.push(flows::FIELDS, row);
    }

    /// Batches that are full, or all with `end`.
    pub fn take(&mut self, end: bool) -> Vec<Full> {
        // Rows of many columns: fewer of them.
        let rows = [self.acks.rows(), self.intervals.rows(), self.flows.rows() * 16, self.directions.rows() * 16];
        let mut ready = Vec::new();
        for (name, rows) in TABLES.into_iter().zip(rows) {
            if rows < ROWS && !(end && rows > 0) {
                continue;
            }
            let columns = match name {
                Name::Acks => self.acks.take(),
                Name::Intervals => self.intervals.take(),
                Name::Flows => self.flows.take(),
                _ => self.directions.take(),
            };
            ready.push(Full { name, columns });
        }
        ready
    }
}
