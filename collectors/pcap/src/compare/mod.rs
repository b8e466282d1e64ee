// SPDX-License-Identifier: Apache-2.0
//! Two captures of one path: one-way delay, queue delay and loss of every packet between the points A and B.
//!
//! Packets are recognised by what no router changes: addresses, ports, sequence numbers, flags, timestamps, IP
//! identification. What B's clock has more than A's comes off; what is left of it shows in the delays.
#![forbid(unsafe_code)]

mod matcher;

use std::path::{Path as FilePath, PathBuf};

use crate::analyze::Options;
use crate::analyze::block::corrected;
use crate::clock::Clock;
use crate::compare::matcher::Matcher;
use crate::error::{Error, Result};
use crate::read::capture::Capture;
use crate::read::chunk::Chunk;
use crate::read::decode::{Decoded, decode};
use crate::read::packet::Whole;
use crate::write::columns::{Batch, ROWS};
use crate::write::label::Namer;
use crate::write::path::FLOWS;
use crate::write::records::{Full, Name};
use crate::write::tables::Files;

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub packets: [u64; 2],
    pub delivered: u64,
    pub lost: u64,
    pub errors: Vec<(PathBuf, Error)>,
}

/// One capture, packet by packet.
struct Reader {
    capture: Capture,
    chunk: Chunk,
    next: usize,
    clock: Clock,
    packets: u64,
    failed: Option<Error>,
}

impl Reader {
    fn open(path: &FilePath, clock: Clock) -> Result<Self> {
        let capture = Capture::open(path, false)?;
        Ok(Reader { capture, chunk: Chunk::default(), next: 0, clock, packets: 0, failed: None })
    }

    fn next(&mut self) -> Option<Whole> {
        loop {
            let Some(record) = self.chunk.records.get(self.next) else {
                self.next = 0;
                match self.capture.next_chunk(&mut self.chunk) {
                    Ok(true) => continue,
                    end => {
                        self.failed = self.failed.take().or(end.err());
                        self.chunk.records.clear();
                        return None;
                    }
                }
            };
            self.next += 1;
            let mut packet = Whole::default();
            if matches!(decode(&self.chunk.data, record, self.chunk.offset, &mut packet), Ok(Decoded::Tcp { .. })) {
                self.packets += 1;
                packet.packet.time_ns = corrected(self.clock, packet.packet.time_ns);
                return Some(packet);
            }
        }
    }
}

/// Compares captures at the points A and B of a path. Packets not found at the other point within `max_delay_ns` are
/// lost; those of the last `max_delay_ns` are neither. `options.clock` is B's against A's. `forward_from_a`: whether the data
/// of the wanted flows, and the initiators' packets of others, pass A first, where the times are not to tell.
pub fn compare(
    a: &FilePath,
    b: &FilePath,
    options: &Options,
    max_delay_ns: i64,
    forward_from_a: Option<bool>,
) -> Result<Summary> {
    let mut base_ns = [None, None];
    let mut summary = Summary::default();
    // First the smallest delays, then the rows that are measured against them.
    for pass in 0..2 {
        let files = options.out.as_deref().filter(|_| pass == 1);
        let files = files.map(|out| Files::create(out, &[Name::Path, Name::PathFlows])).transpose()?;
        let namer = Namer::new(options.wanted.clone());
        let mut m = Matcher::new(namer, options.max_flows, max_delay_ns, forward_from_a, base_ns);
        m.rows = files.is_some().then(Batch::default);
        let mut readers = [Reader::open(a, Clock::default())?, Reader::open(b, options.clock)?];
        let mut number = 0;
        let [first, second] = &mut readers;
        let (mut at_a, mut at_b) = (first.next(), second.next());
        let starts = [&at_a, &at_b].into_iter().flatten().map(|p| p.packet.time_ns).min();
        m.origin_ns = options.start_ns.or(starts).unwrap_or(0);
        loop {
            let from_b = match (&at_a, &at_b) {
                (None, None) => break,
                (Some(a), Some(b)) => b.packet.time_ns < a.packet.time_ns,
                (a, _) => a.is_none(),
            };
            let (next, reader) = if from_b { (&mut at_b, &mut *second) } else { (&mut at_a, &mut *first) };
            if let Some(packet) = next.as_ref() {
                m.on_packet(packet, from_b);
            }
            *next = reader.next();
            if let (Some(files), Some(rows)) = (&files, m.rows.as_mut().filter(|rows| rows.rows() >= ROWS)) {
                files.write(number, Full { name: Name::Path, columns: rows.take() })?;
                number += 1;
            }
        }
        base_ns = m.base_ns;
        let counts = [first.packets, second.packets];
        let failed = |(path, reader): (&FilePath, &Reader)| reader.failed.clone().map(|e| (path.to_owned(), e));
        let errors = [(a, &*first), (b, &*second)].into_iter().filter_map(failed).collect();
        summary = Summary { packets: counts, delivered: m.delivered, lost: m.lost, errors };
        if let Some(files) = files {
            let mut flows = Batch::default();
            m.flow_rows().for_each(|row| flows.push(FLOWS, row));
            if let Some(mut rows) = m.rows.take().filter(|rows| rows.rows() > 0) {
                files.write(number, Full { name: Name::Path, columns: rows.take() })?;
            }
            if flows.rows() > 0 {
                files.write(0, Full { name: Name::PathFlows, columns: flows.take() })?;
            }
            files.finish()?;
        }
    }
    Ok(summary)
}
