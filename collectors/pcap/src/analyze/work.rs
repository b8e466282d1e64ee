// SPDX-License-Identifier: Apache-2.0
//! The analysis of one capture: what goes into it, what comes out, and how one thread does it.
#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::Arc;

use crate::analyze::block::{Block, corrected};
use crate::analyze::options::Options;
use crate::analyze::route::{Router, SHARDS};
use crate::analyze::shard::{Shard, finish};
use crate::analyze::summary::Summary;
use crate::connections::table::Table;
use crate::error::{Error, Result};
use crate::measure::segments::{BUDGET, Budget};
use crate::read::capture::Capture;
use crate::read::chunk::Chunk;
use crate::write::label::Namer;
use crate::write::records::{Full, Numbers, Rows, Scale};
use crate::write::tables::Files;

/// With fewer flows than this per shard, all are in one.
const LEAST_FLOWS: usize = 256;

/// One capture to be analysed.
pub struct Work<'a> {
    pub capture: Capture,
    pub options: &'a Options,
    pub files: Option<&'a Files>,
    pub router: Router,
    pub shards: [Shard; SHARDS],
    /// Batches that earlier captures have written.
    pub numbers: Numbers,
    /// `None` until the first packet has been seen.
    pub origin_ns: Option<i64>,
}

/// What came of it.
pub struct Done {
    pub counts: Summary,
    pub origin_ns: Option<i64>,
    pub numbers: Numbers,
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
        numbers: Numbers,
    ) -> Self {
        let name = path.file_name().map_or_else(|| "-".into(), |name| name.to_string_lossy());
        let scale = Scale {
            origin_ns: origin_ns.unwrap_or(0),
            width_ns: options.interval_ns.max(1),
            capture: Arc::from(name.as_ref()),
        };
        let shards = if options.rehearse.shards || options.max_flows >= LEAST_FLOWS * SHARDS { SHARDS } else { 1 };
        let shard = |_| {
            let namer = Namer::new(options.wanted.clone());
            let table = Table::new(options.max_flows.div_ceil(shards), Budget::new(BUDGET / shards), namer);
            Shard { table, rows: Rows::new(scale.clone()) }
        };
        let (router, shards) = (Router::new(shards, &options.wanted), std::array::from_fn(shard));
        Work { capture, options, files, router, shards, numbers, origin_ns }
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
            let origin_ns = Work::origin(self.options, &mut self.origin_ns, &chunk);
            block.decode(&mut chunk, &mut self.router, self.options.clock);
            for (at, shard) in self.shards.iter_mut().enumerate() {
                shard.rows.scale.origin_ns = origin_ns;
                shard.analyse(block.of_shard(at));
            }
            block.number += 1;
            counts.add_block(&block.counts);
            let full: Vec<Full> = self.shards.iter_mut().flat_map(|shard| shard.rows.take(false)).collect();
            write(self.files, &mut self.numbers, full)?;
        };
        write(self.files, &mut self.numbers, finish(self.shards, &mut counts))?;
        Ok(Done { counts, origin_ns: self.origin_ns, numbers: self.numbers, failed })
    }
}

fn write(files: Option<&Files>, numbers: &mut Numbers, full: Vec<Full>) -> Result<()> {
    full.into_iter().try_for_each(|full| files.map_or(Ok(()), |files| files.write(numbers.next(full.name), full)))
}
