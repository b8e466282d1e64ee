// SPDX-License-Identifier: Apache-2.0
//! The analysis of one capture by several threads.
//!
//! Blocks of packets are read one after the other and decoded anywhere. Each shard (`route.rs`, `shard.rs`) analyses
//! its packets of each block in the order of the blocks, whichever thread does it, and fills batches of its own. Batches
//! are numbered in the order of blocks and shards, and their columns are encoded anywhere. A thread takes what is most
//! urgent (`schedule.rs`), so that nothing piles up, and keeps to its own shards as long as it can, so that
//! connections stay in its cache.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::analyze::options::Options;
use crate::analyze::route::Router;
use crate::analyze::schedule::{Encode, State, Task};
use crate::analyze::shard::finish;
use crate::analyze::summary::Summary;
use crate::analyze::work::{Done, Work};
use crate::error::{Error, Layer, Result};
use crate::read::capture::Capture;
use crate::read::chunk::Chunk;
use crate::write::records::Full;
use crate::write::tables::Files;

/// Looks for work for half a millisecond, about a task, before a thread sleeps: a virtual machine takes long to wake it.
const SPINS: u32 = 50_000;

struct Pipeline<'a> {
    options: &'a Options,
    files: Option<&'a Files>,
    source: Mutex<Capture>,
    state: Mutex<State>,
    /// Counts changes of `state`.
    version: AtomicU64,
    changed: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn run(work: Work<'_>) -> Result<Done> {
    let threads = work.options.threads.max(1);
    keep_freed_memory();
    let pipeline = Pipeline {
        options: work.options,
        files: work.files,
        source: Mutex::new(work.capture),
        state: Mutex::new(State::new(threads, work.shards, work.numbers, work.origin_ns)),
        version: AtomicU64::new(0),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        let (pipeline, router) = (&pipeline, &work.router);
        for thread in 1..threads {
            scope.spawn(move || pipeline.thread(thread, router.clone()));
        }
        pipeline.thread(0, router.clone());
    });
    let state = pipeline.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let State { counts, origin_ns, numbers, failed, .. } = state;
    state.error.map_or(Ok(Done { counts, origin_ns, numbers, failed }), Err)
}

/// Memory that one thread fills and another gives back would go to the kernel and come from it again, page by page, a
/// tenth of the time. The C library stops that for blocks up to the largest that it has ever taken back, 32 MiB at
/// most (mallopt(3), M_MMAP_THRESHOLD "dynamic"); other allocators lose nothing by it.
fn keep_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity((32 << 20) - (64 << 10))));
}

/// Stops the other threads if this one panics, instead of letting them wait for it.
struct Guard<'a, 'b>(&'a Pipeline<'b>);

impl Drop for Guard<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Error::outside(0, Layer::Arguments, "a thread of the analysis panicked"));
        }
    }
}

impl Pipeline<'_> {
    fn thread(&self, thread: usize, mut router: Router) {
        let _guard = Guard(self);
        let mut chunk = Chunk::default();
        let mut state = lock(&self.state);
        while !state.over() {
            let Some(task) = state.pick(thread) else {
                state = self.wait(state);
                continue;
            };
            drop(state);
            let done = self.task(task, &mut chunk, &mut router);
            if let Err(error) = done {
                self.fail(error);
            }
            state = lock(&self.state);
            state.running -= 1;
            self.tell(&state);
        }
    }

    fn fail(&self, error: Error) {
        let mut state = lock(&self.state);
        state.error.get_or_insert(error);
        self.tell(&state);
    }

    /// Lets other threads know that `state` has changed.
    fn tell(&self, state: &State) {
        self.version.fetch_add(1, Ordering::Release);
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }

    fn wait<'s>(&'s self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let seen = self.version.load(Ordering::Acquire);
        let same = || self.version.load(Ordering::Acquire) == seen;
        drop(state);
        for _ in 0..SPINS {
            if !same() {
                return lock(&self.state);
            }
            std::hint::spin_loop();
        }
        let mut state = lock(&self.state);
        if same() {
            state.waiting += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state
    }

    fn task(&self, task: Task, chunk: &mut Chunk, router: &mut Router) -> Result<()> {
        match task {
            Task::Read => self.read(chunk, router),
            Task::Analyse { at, mut shard, block } => {
                shard.rows.scale.origin_ns = block.origin_ns;
                shard.analyse(block.of_shard(at));
                let full = self.kept(shard.rows.take(false));
                lock(&self.state).analysed(at, shard, block, full);
            }
            Task::Finish(shards) => {
                let mut counts = Summary::default();
                let full = self.kept(finish(shards, &mut counts));
                let mut state = lock(&self.state);
                state.counts.add(&counts);
                full.into_iter().for_each(|full| state.full(full));
            }
            Task::Encode(Encode { name, number, at, column }) => {
                let Some(files) = self.files else { return Ok(()) };
                let encoded = files.encode(name, at, column)?;
                let complete = lock(&self.state).encoded(name, number, at, encoded);
                if let Some(columns) = complete {
                    files.append(name, number, columns)?;
                }
            }
        }
        Ok(())
    }

    /// Batches that are to be written.
    fn kept(&self, full: Vec<Full>) -> Vec<Full> {
        if self.files.is_some() { full } else { Vec::new() }
    }

    fn read(&self, chunk: &mut Chunk, router: &mut Router) {
        let got = lock(&self.source).next_chunk(chunk);
        let mut state = lock(&self.state);
        state.reading = false;
        match got {
            Ok(true) => {}
            end => {
                state.ended = true;
                state.failed = end.err();
                return;
            }
        }
        let mut block = state.add();
        block.origin_ns = Work::origin(self.options, &mut state.origin_ns, chunk);
        self.tell(&state);
        drop(state);
        block.decode(chunk, router, self.options.clock);
        lock(&self.state).decoded(block);
    }
}
