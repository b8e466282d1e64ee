// SPDX-License-Identifier: Apache-2.0
//! What the threads of a pipeline have to do, and which of it comes first.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::block::Block;
use crate::columns::Column;
use crate::error::Error;
use crate::part::Part;
use crate::records::{Full, Name, Scale};
use crate::route::SHARDS;
use crate::tables::EncodedColumn;

/// Blocks under way, per thread: enough to go on reading while a batch is encoded.
const AHEAD: usize = 4;
/// Connections that are over and not written yet (some KB each); with more, only the first block is analysed.
const HELD: usize = 1024;

/// The rows of a block, by shard; `None` where it has no packets.
pub type Parts = [Option<Box<Part>>; SHARDS];

/// A column of a full batch.
pub struct Encode {
    pub name: Name,
    pub number: u64,
    pub at: usize,
    pub column: Column,
}

pub enum Task {
    Read,
    Analyse { shard: usize, block: Arc<Block>, part: Box<Part> },
    Merge { block: Arc<Block>, parts: Parts },
    Finish,
    Encode(Encode),
}

/// A block under way.
#[derive(Default)]
struct Slot {
    /// `None` until it is decoded.
    block: Option<Arc<Block>>,
    parts: Parts,
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
    scale: Scale,
    slots: VecDeque<Slot>,
    /// Number of the block in `slots[0]`.
    first: u64,
    /// The next block of each shard, and whether a thread is at it.
    next: [u64; SHARDS],
    busy: [bool; SHARDS],
    columns: VecDeque<Encode>,
    /// Batches of which columns are being encoded.
    assembly: BTreeMap<(&'static str, u64), Assembly>,
    blocks: Vec<Block>,
    #[allow(clippy::vec_box)] // Handed on as they are.
    parts: Vec<Box<Part>>,
    /// Connections in the parts of `slots`.
    held: usize,
    finished: bool,
    pub reading: bool,
    pub ended: bool,
    pub merging: bool,
    /// Tasks that threads are at.
    pub running: usize,
    /// Threads that sleep.
    pub waiting: usize,
    pub origin_ns: Option<i64>,
    /// Why the capture could not be read to its end.
    pub failed: Option<Error>,
    /// Why all has to stop.
    pub error: Option<Error>,
}

impl State {
    pub fn new(threads: usize, scale: Scale, origin_ns: Option<i64>) -> Self {
        State {
            threads,
            scale,
            slots: VecDeque::new(),
            first: 0,
            next: [0; SHARDS],
            busy: [false; SHARDS],
            columns: VecDeque::new(),
            assembly: BTreeMap::new(),
            blocks: Vec::new(),
            parts: Vec::new(),
            held: 0,
            finished: false,
            reading: false,
            ended: false,
            merging: false,
            running: 0,
            waiting: 0,
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
        // From the end of the way to its beginning, so that memory is given back before more is taken.
        if let Some(encode) = self.columns.pop_front() {
            return Some(Task::Encode(encode));
        }
        let mut ready = [false; SHARDS];
        for (shard, ready) in ready.iter_mut().enumerate() {
            *ready = self.is_ready(shard);
        }
        if !self.merging && self.slots.front().is_some_and(|slot| slot.done == SHARDS) {
            let Slot { block: Some(block), parts, .. } = self.slots.pop_front()? else { return None };
            self.first += 1;
            self.held -= parts.iter().flatten().map(|part| part.held()).sum::<usize>();
            self.merging = true;
            return Some(Task::Merge { block, parts });
        }
        let of = |own: bool| {
            ready.iter().enumerate().position(|(shard, ready)| *ready && (shard % self.threads == thread) == own)
        };
        if let Some(shard) = of(true) {
            return self.analyse(shard);
        }
        if !self.reading && !self.ended && self.slots.len() < AHEAD * self.threads {
            self.reading = true;
            return Some(Task::Read);
        }
        if let Some(shard) = of(false) {
            return self.analyse(shard);
        }
        if self.ended && !self.finished && !self.merging && self.slots.is_empty() {
            self.finished = true;
            return Some(Task::Finish);
        }
        None
    }

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        self.slots.get_mut(number.checked_sub(self.first)? as usize)
    }

    /// Whether the shard's next block can be analysed; passes blocks in which it has no packets.
    fn is_ready(&mut self, shard: usize) -> bool {
        let (Some(false), Some(mut number)) = (self.busy.get(shard), self.next.get(shard).copied()) else {
            return false;
        };
        let mut ready = false;
        while let Some(Slot { block: Some(block), done, .. }) = self.slot(number) {
            ready = block.has(shard);
            if ready {
                break;
            }
            *done += 1;
            number += 1;
        }
        if let Some(next) = self.next.get_mut(shard) {
            *next = number;
        }
        ready && (number == self.first || self.held < HELD)
    }

    fn analyse(&mut self, shard: usize) -> Option<Task> {
        let number = *self.next.get(shard)?;
        let block = self.slot(number)?.block.clone()?;
        *self.busy.get_mut(shard)? = true;
        let part = self.parts.pop().unwrap_or_else(|| Box::new(Part::new(self.scale.clone())));
        Some(Task::Analyse { shard, block, part })
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
            slot.block = Some(Arc::new(block));
        }
    }

    pub fn analysed(&mut self, number: u64, shard: usize, part: Box<Part>) {
        self.held += part.held();
        if let Some(slot) = self.slot(number) {
            slot.done += 1;
            if let Some(place) = slot.parts.get_mut(shard) {
                *place = Some(part);
            }
        }
        if let (Some(next), Some(busy)) = (self.next.get_mut(shard), self.busy.get_mut(shard)) {
            (*next, *busy) = (number + 1, false);
        }
    }

    /// Takes back the memory of a block that is over.
    pub fn recycle(&mut self, block: Option<Block>, parts: Parts) {
        self.blocks.extend(block);
        self.parts.extend(parts.into_iter().flatten());
    }

    /// Columns to be encoded.
    pub fn full(&mut self, full: Full) {
        let Full { name, number, columns } = full;
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
