// SPDX-License-Identifier: Apache-2.0
//! One shard of the analysis: its connections, and the rows that they make.
//!
//! A shard shares nothing with others and fills batches of its own, so that a thread that has it needs nobody else.
//! The order of the batches in a file follows from the blocks and shards that filled them, not from who was faster.
#![forbid(unsafe_code)]

use crate::analyze::summary::Summary;
use crate::connections::connection::Connection;
use crate::connections::rows::directions_of;
use crate::connections::table::Table;
use crate::read::packet::Seen;
use crate::write::records::{Full, Rows};

pub struct Shard {
    pub table: Table,
    pub rows: Rows,
}

impl Shard {
    /// Packets and their places in the capture.
    pub fn analyse<'a>(&mut self, packets: impl Iterator<Item = (u64, Seen<'a>)>) {
        for (place, seen) in packets {
            self.rows.place = place;
            self.table.on_packet(seen, &mut self.rows);
        }
    }
}

/// Ends the connections that are left, and gives what is in no batch yet. What is counted of them comes last, in the
/// order of their first packets.
pub fn finish(shards: impl IntoIterator<Item = Shard>, counts: &mut Summary) -> Vec<Full> {
    let mut open: Vec<Rows> = Vec::new();
    let mut left: Vec<Box<Connection>> = Vec::new();
    for Shard { table, mut rows } in shards {
        counts.flows += table.flows;
        counts.evicted_flows += table.evicted;
        counts.forgotten_segments += table.budget.forgotten;
        let before = left.len();
        left.extend(table.into_connections());
        let mine = left.get_mut(before..).unwrap_or_default();
        mine.sort_unstable_by_key(|connection| connection.place);
        mine.iter_mut().for_each(|connection| connection.flush_intervals(&mut rows));
        open.push(rows);
    }
    left.sort_unstable_by_key(|connection| connection.place);
    if let Some(rows) = open.last_mut() {
        left.iter().for_each(|connection| directions_of(connection, rows));
    }
    open.iter_mut().flat_map(|rows| rows.take(true)).collect()
}
