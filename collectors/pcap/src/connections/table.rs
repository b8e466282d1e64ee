// SPDX-License-Identifier: Apache-2.0
//! The connections under way, bounded in number.
#![forbid(unsafe_code)]

use hashbrown::HashTable;

use crate::connections::connection::{Connection, End};
use crate::connections::rows::ended;
use crate::measure::segments::Budget;
use crate::read::packet::{SYN, Seen};
use crate::write::label::Namer;
use crate::write::records::Rows;

/// Connections kept at once (about 2 KB each, more while they lose packets).
pub const DEFAULT_MAX_FLOWS: usize = 16_384;

pub struct Table {
    index: HashTable<u32>,
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    /// The slot of the packet before: packets come in trains.
    last: usize,
    hand: usize,
    max_flows: usize,
    namer: Namer,
    pub budget: Budget,
    pub flows: u64,
    pub evicted: u64,
}

impl Table {
    pub fn new(max_flows: usize, budget: Budget, namer: Namer) -> Self {
        Table {
            index: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            last: 0,
            hand: 0,
            max_flows: max_flows.max(1),
            namer,
            budget,
            flows: 0,
            evicted: 0,
        }
    }

    #[inline]
    pub fn on_packet(&mut self, seen: Seen<'_>, rows: &mut Rows) {
        let Seen { packet, ends, .. } = seen;
        let at = match self.slots.get(self.last) {
            Some(Some(connection)) if connection.key == ends.key => self.last,
            _ => self.find(seen, rows),
        };
        self.last = at;
        let Some(Some(connection)) = self.slots.get_mut(at) else { return };
        if packet.flags & SYN != 0 && connection.replaced_by(packet) {
            self.remove(at, Some(End::Reused), rows);
            self.last = self.add(seen, rows);
            if let Some(Some(connection)) = self.slots.get_mut(self.last) {
                connection.on_packet(seen, &mut self.budget, rows);
            }
            return;
        }
        connection.on_packet(seen, &mut self.budget, rows);
    }

    fn find(&mut self, seen: Seen<'_>, rows: &mut Rows) -> usize {
        let slots = &self.slots;
        let same = |at: &u32| matches!(slots.get(*at as usize), Some(Some(c)) if c.key == seen.ends.key);
        match self.index.find(seen.ends.hash, same) {
            Some(at) => *at as usize,
            None => self.add(seen, rows),
        }
    }

    #[cold]
    fn add(&mut self, seen: Seen<'_>, rows: &mut Rows) -> usize {
        if self.index.len() >= self.max_flows {
            self.evict(rows);
        }
        let (label, size) = self.namer.label(&seen.ends.key, seen.packet.from_high);
        let connection = Some(Box::new(Connection::new(seen, rows.place, label, size)));
        self.flows += 1;
        let at = match self.free.pop() {
            Some(at) => at as usize,
            None => {
                self.slots.push(None);
                self.slots.len() - 1
            }
        };
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = connection;
        }
        let slots = &self.slots;
        let hash_of = |at: &u32| slots.get(*at as usize).and_then(Option::as_ref).map_or(0, |c| c.hash);
        self.index.insert_unique(seen.ends.hash, at as u32, hash_of);
        at
    }

    /// Second chance: the hand passes connections with packets since its last visit.
    #[cold]
    fn evict(&mut self, rows: &mut Rows) {
        for _ in 0..=2 * self.slots.len() {
            self.hand = if self.hand + 1 >= self.slots.len() { 0 } else { self.hand + 1 };
            if let Some(Some(connection)) = self.slots.get_mut(self.hand) {
                if !std::mem::take(&mut connection.touched) {
                    let end = if connection.end == End::Open { End::Evicted } else { connection.end };
                    self.evicted += u64::from(end == End::Evicted);
                    self.remove(self.hand, Some(end), rows);
                    return;
                }
            }
        }
    }

    fn remove(&mut self, at: usize, end: Option<End>, rows: &mut Rows) {
        let Some(mut connection) = self.slots.get_mut(at).and_then(Option::take) else { return };
        if let Ok(entry) = self.index.find_entry(connection.hash, |i| *i as usize == at) {
            entry.remove();
        }
        self.free.push(at as u32);
        if let Some(end) = end.filter(|_| connection.end == End::Open) {
            connection.end = end;
        }
        connection.release(&mut self.budget);
        ended(connection, rows);
    }

    /// The connections left at the end of a capture.
    pub fn into_connections(self) -> impl Iterator<Item = Box<Connection>> {
        self.slots.into_iter().flatten()
    }
}
