// SPDX-License-Identifier: Apache-2.0
//! The analysis of one capture: what goes into it, what comes out, and how one thread does it.
#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::Arc;

use crate::analyze::Options;
use crate::block::{Block, corrected};
use crate::capture::{Capture, Chunk};
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::label::Namer;
use crate::records::{Full, Rows, Scale, Sink, TABLES};
use crate::route::{Router, SHARDS};
use crate::segments::{BUDGET, Budget};
use crate::summary::Summary;
use crate::table::Table;
use crate::tables::Files;

/// With fewer flows than this per shard, all are in one.
const LEAST_FLOWS: usize = 256;

/// One capture to be analysed.
pub struct Work<'a> {
    pub capture: Capture,
    pub options: &'a Options,
    pub files: Option<&'a Files>,
    pub router: Router,
    pub tables: [Table; SHARDS],
    pub rows: Rows,
    /// `None` until the first packet has been seen.
    pub origin_ns: Option<i64>,
}

/// What came of it.
pub struct Done {
    pub counts: Summary,
    pub origin_ns: Option<i64>,
    pub numbers: [u64; TABLES.len()],
    /// Why the capture could not be read to its end.
    pub failed: Option<Error>,
}

impl<'a> Work<'a> {
    pub fn new(
        capture: Capture,
        path: &Path,
        options: &'a Options,
        files: Option<&'a Files>,
        origin_ns: Option<i64>,
        numbers: [u64; TABLES.len()],
    ) -> Self {
        let name = path.file_name().map_or_else(|| "-".into(), |name| name.to_string_lossy());
        let scale = Scale {
            origin_ns: origin_ns.unwrap_or(0),
            width_ns: options.interval_ns.max(1),
            capture: Arc::from(name.as_ref()),
        };
        let shards = if options.rehearse.shards || options.max_flows >= LEAST_FLOWS * SHARDS { SHARDS } else { 1 };
        let table = |_| {
            let namer = Namer::new(options.wanted.clone());
            Table::new(options.max_flows.div_ceil(shards), Budget::new(BUDGET / shards), namer)
        };
        let router = Router::new(shards, &options.wanted);
        let (tables, rows) = (std::array::from_fn(table), Rows::new(scale, numbers));
        Work { capture, options, files, router, tables, rows, origin_ns }
    }

    /// Time 0 of `t_s`, once there is a packet.
    pub fn origin(options: &Options, known: &mut Option<i64>, chunk: &Chunk) -> i64 {
        let first = || chunk.records.first().map_or(0, |record| corrected(options.clock, record.time_ns));
        *known.get_or_insert_with(first)
    }

    /// All of it on this thread.
    pub fn alone(mut self) -> Result<Done> {
        let (mut chunk, mut block, mut counts) = (Chunk::default(), Block::default(), Summary::default());
        let failed = loop {
            match self.capture.next_chunk(&mut chunk) {
                Ok(true) => {}
                end => break end.err(),
            }
            self.rows.scale.origin_ns = Work::origin(self.options, &mut self.origin_ns, &chunk);
            block.decode(&mut chunk, &mut self.router, self.options.clock);
            for (place, packet) in block.packets() {
                self.rows.place = place;
                if let Some(table) = self.tables.get_mut(usize::from(packet.shard)) {
                    table.on_packet(packet, &mut self.rows);
                }
            }
            block.number += 1;
            counts.add_block(&block.counts);
            write(self.files, self.rows.take(false))?;
        };
        finish(self.tables, &mut self.rows, &mut counts);
        write(self.files, self.rows.take(true))?;
        Ok(Done { counts, origin_ns: self.origin_ns, numbers: self.rows.numbers(), failed })
    }
}

fn write(files: Option<&Files>, batches: Vec<Full>) -> Result<()> {
    batches.into_iter().try_for_each(|full| files.map_or(Ok(()), |files| files.write(full)))
}

/// Writes the connections that are left, in the order of their first packets.
pub fn finish(tables: impl IntoIterator<Item = Table>, rows: &mut Rows, counts: &mut Summary) {
    let mut left: Vec<Box<Connection>> = Vec::new();
    for table in tables {
        counts.flows += table.flows;
        counts.evicted_flows += table.evicted;
        counts.forgotten_segments += table.budget.forgotten;
        left.extend(table.into_connections());
    }
    left.sort_unstable_by_key(|connection| connection.place);
    left.into_iter().for_each(|connection| rows.over(connection));
}
