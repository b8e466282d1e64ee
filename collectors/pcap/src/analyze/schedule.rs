// SPDX-License-Identifier: Apache-2.0
//! What the threads of a pipeline have to do, and which of it comes first.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::analyze::block::Block;
use crate::analyze::route::SHARDS;
use crate::analyze::shard::Shard;
use crate::analyze::summary::Summary;
use crate::error::Error;
use crate::write::columns::Column;
use crate::write::records::{Full, Name, Numbers};
use crate::write::tables::EncodedColumn;

/// Blocks under way, per thread: enough to go on reading while a batch is encoded.
const AHEAD: usize = 4;

/// Batches that are being encoded, or wait for blocks before them (some MB each); with more, nothing is added to them.
const WAITING: usize = 4;

/// A column of a full batch.
pub struct Encode {
    pub name: Name,
    pub number: u64,
    pub at: usize,
    pub column: Column,
}

pub enum Task {
    Read,
    Analyse { at: usize, shard: Box<Shard>, block: Arc<Block> },
    Finish(Vec<Shard>),
    Encode(Encode),
}

/// A block under way.
#[derive(Default)]
struct Slot {
    /// `None` until it is decoded.
    block: Option<Arc<Block>>,
    /// Batches that it has filled, by shard.
    full: [Vec<Full>; SHARDS],
    /// Shards that are through with it.
    done: usize,
}

/// A batch of which columns are being encoded.
struct Assembly {
    columns: Vec<Option<EncodedColumn>>,
    missing: usize,
}

pub struct State {
    threads: usize,
    slots: VecDeque<Slot>,
    /// Number of the block in `slots[0]`.
    first: u64,
    /// The shards that no thread is at, and the next block of each.
    shards: [Option<Box<Shard>>; SHARDS],
    next: [u64; SHARDS],
    columns: VecDeque<Encode>,
    /// Batches of which columns are being encoded.
    assembly: BTreeMap<(&'static str, u64), Assembly>,
    blocks: Vec<Block>,
    finished: bool,
    pub reading: bool,
    pub ended: bool,
    /// Tasks that threads are at.
    pub running: usize,
    /// Threads that sleep.
    pub waiting: usize,
    pub counts: Summary,
    pub numbers: Numbers,
    pub origin_ns: Option<i64>,
    /// Why the capture could not be read to its end.
    pub failed: Option<Error>,
    /// Why all has to stop.
    pub error: Option<Error>,
}

impl State {
    pub fn new(threads: usize, shards: [Shard; SHARDS], numbers: Numbers, origin_ns: Option<i64>) -> Self {
        State {
            threads,
            slots: VecDeque::new(),
            first: 0,
            shards: shards.map(|shard| Some(Box::new(shard))),
            next: [0; SHARDS],
            columns: VecDeque::new(),
            assembly: BTreeMap::new(),
            blocks: Vec::new(),
            finished: false,
            reading: false,
            ended: false,
            running: 0,
            waiting: 0,
            counts: Summary::default(),
            numbers,
            origin_ns,
            failed: None,
            error: None,
        }
    }

    pub fn over(&self) -> bool {
        self.error.is_some() || (self.finished && self.running == 0 && self.columns.is_empty())
    }

    /// The most urgent task that can be done now.
    pub fn pick(&mut self, thread: usize) -> Option<Task> {
        let task = self.task(thread);
        self.running += usize::from(task.is_some());
        task
    }

    fn task(&mut self, thread: usize) -> Option<Task> {
        let mut ready = [false; SHARDS];
        for (at, ready) in ready.iter_mut().enumerate() {
            *ready = self.is_ready(at);
        }
        // Blocks of a shard have to be analysed one after the other, which anything else can wait for; only reading takes
        // more memory, and comes after what gives it back.
        let of = |own| ready.iter().enumerate().position(|(at, ready)| *ready && (at % self.threads == thread) == own);
        if let Some(at) = of(true) {
            return self.analyse(at);
        }
        if let Some(encode) = self.columns.pop_front() {
            return Some(Task::Encode(encode));
        }
        if !self.reading && !self.ended && self.slots.len() < AHEAD * self.threads {
            self.reading = true;
            return Some(Task::Read);
        }
        if let Some(at) = of(false) {
            return self.analyse(at);
        }
        if self.ended && !self.finished && self.slots.is_empty() {
            self.finished = true;
            return Some(Task::Finish(self.shards.iter_mut().filter_map(Option::take).map(|shard| *shard).collect()));
        }
        None
    }

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        self.slots.get_mut(number.checked_sub(self.first)? as usize)
    }

    /// Whether the shard's next block can be analysed; passes blocks in which it has no packets.
    fn is_ready(&mut self, at: usize) -> bool {
        let (Some(Some(_)), Some(next)) = (self.shards.get(at), self.next.get(at)) else { return false };
        let mut number = self.first.max(*next);
        let mut ready = false;
        while let Some(Slot { block: Some(block), .. }) = self.slot(number) {
            ready = block.has(at);
            if ready {
                break;
            }
            number += 1;
        }
        if let Some(next) = self.next.get_mut(at) {
            *next = number;
        }
        // The first block can always go on, because what the others hold waits for it.
        ready && self.assembly.len() < WAITING && (number == self.first || self.held() < WAITING)
    }

    /// Batches that wait for blocks before theirs.
    fn held(&self) -> usize {
        self.slots.iter().flat_map(|slot| &slot.full).map(Vec::len).sum()
    }

    fn analyse(&mut self, at: usize) -> Option<Task> {
        let number = *self.next.get(at)?;
        let block = self.slot(number)?.block.clone()?;
        let shard = self.shards.get_mut(at)?.take()?;
        Some(Task::Analyse { at, shard, block })
    }

    /// Room for a block that has been read.
    pub fn add(&mut self) -> Block {
        let mut block = self.blocks.pop().unwrap_or_default();
        block.number = self.first + self.slots.len() as u64;
        self.slots.push_back(Slot::default());
        block
    }

    pub fn decoded(&mut self, block: Block) {
        if let Some(slot) = self.slot(block.number) {
            slot.done = (0..SHARDS).filter(|at| !block.has(*at)).count();
            slot.block = Some(Arc::new(block));
        }
        self.retire();
    }

    /// Takes back a shard that is through with a block, and what it has filled.
    pub fn analysed(&mut self, at: usize, shard: Box<Shard>, block: Arc<Block>, full: Vec<Full>) {
        let number = block.number;
        drop(block);
        if let Some(slot) = self.slot(number) {
            slot.done += 1;
            if let Some(place) = slot.full.get_mut(at) {
                *place = full;
            }
        }
        if let (Some(next), Some(place)) = (self.next.get_mut(at), self.shards.get_mut(at)) {
            (*next, *place) = (number + 1, Some(shard));
        }
        self.retire();
    }

    /// Blocks that all shards are through with, in their order.
    fn retire(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.done == SHARDS && slot.block.is_some()) {
            let Some(Slot { block: Some(block), full, .. }) = self.slots.pop_front() else { return };
            self.first += 1;
            self.counts.add_block(&block.counts);
            self.blocks.extend(Arc::into_inner(block));
            full.into_iter().flatten().for_each(|full| self.full(full));
        }
    }

    /// Columns to be encoded.
    pub fn full(&mut self, full: Full) {
        let Full { name, columns } = full;
        let number = self.numbers.next(name);
        let assembly = Assembly { columns: columns.iter().map(|_| None).collect(), missing: columns.len() };
        self.assembly.insert((name.text(), number), assembly);
        let encode = |(at, column)| Encode { name, number, at, column };
        self.columns.extend(columns.into_iter().enumerate().map(encode));
    }

    /// Gives the columns of the batch when this was the last one.
    pub fn encoded(&mut self, name: Name, number: u64, at: usize, column: EncodedColumn) -> Option<Vec<EncodedColumn>> {
        let key = (name.text(), number);
        let assembly = self.assembly.get_mut(&key)?;
        *assembly.columns.get_mut(at)? = Some(column);
        assembly.missing -= 1;
        if assembly.missing > 0 {
            return None;
        }
        Some(self.assembly.remove(&key)?.columns.into_iter().flatten().collect())
    }
}
