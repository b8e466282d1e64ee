// SPDX-License-Identifier: Apache-2.0
//! Captures to tables. Threads share the work: reading and TCP analysis go on in the order of the packets, one thread
//! at a time in each; decoding and Parquet encoding go on anywhere. The result does not depend on the threads.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use crate::capture::{Capture, Chunk};
use crate::clock::Clock;
use crate::columns::Column;
use crate::connection::{Namer, Wanted};
use crate::error::{Error, Layer, Result};
use crate::packet::{Decoded, Packet, decode};
use crate::records::{Name, Rows, TABLES};
use crate::table::{DEFAULT_MAX_FLOWS, Hasher, Table};
use crate::tables::Files;

/// The latest time that is taken as it is (2^62 ns, the year 2116), so that differences cannot overflow.
pub const MAX_TIME_NS: i64 = 1 << 62;
/// Chunks decoded ahead of the analysis, per thread.
const AHEAD: usize = 8;

#[derive(Clone, Debug)]
pub struct Options {
    /// `None` analyses without writing.
    pub out: Option<PathBuf>,
    pub interval_ns: i64,
    /// Time 0 of `t_s`; the first packet of the first capture if `None`.
    pub start_ns: Option<i64>,
    pub threads: usize,
    pub max_flows: usize,
    pub wanted: Vec<Wanted>,
    /// Take what a pipe gives at once instead of waiting for full chunks.
    pub live: bool,
    /// What comes off the captures' times.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            out: None,
            interval_ns: 100_000_000,
            start_ns: None,
            threads: 1,
            max_flows: DEFAULT_MAX_FLOWS,
            wanted: Vec::new(),
            live: false,
            clock: Clock::default(),
        }
    }
}

/// What was read, and how far.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub packets: u64,
    pub tcp_packets: u64,
    pub other_packets: u64,
    pub fragments: u64,
    /// Packets whose headers are cut short or make no sense; the first such error is kept.
    pub bad_packets: u64,
    pub first_bad: Option<Error>,
    pub flows: u64,
    pub evicted_flows: u64,
    pub forgotten_segments: u64,
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
    /// Bytes of the (decompressed) captures that were used.
    pub bytes: u64,
    pub seconds: f64,
    /// Per capture that could not be read to its end.
    pub errors: Vec<(PathBuf, Error)>,
}

impl Summary {
    fn add(&mut self, counts: &Summary) {
        self.packets += counts.packets;
        self.tcp_packets += counts.tcp_packets;
        self.other_packets += counts.other_packets;
        self.fragments += counts.fragments;
        self.bad_packets += counts.bad_packets;
        self.bytes += counts.bytes;
        if self.first_bad.is_none() {
            self.first_bad.clone_from(&counts.first_bad);
        }
        self.first_ns = [self.first_ns, counts.first_ns].into_iter().flatten().min();
        self.last_ns = [self.last_ns, counts.last_ns].into_iter().flatten().max();
    }
}

/// Analyses captures, each with its own flow table, into one set of files.
pub fn analyze(paths: &[PathBuf], options: &Options) -> Result<Summary> {
    let inputs = paths.iter().map(|path| Ok((path.clone(), Capture::open(path, options.live)?)));
    analyze_captures(inputs.collect::<Result<Vec<_>>>()?, options)
}

pub fn analyze_captures(captures: Vec<(PathBuf, Capture)>, options: &Options) -> Result<Summary> {
    if options.interval_ns <= 0 {
        let what = format!("interval width must be above 0 ns, is {}", options.interval_ns);
        return Err(Error::outside(0, Layer::Arguments, what));
    }
    let begun = Instant::now();
    let files = options.out.as_deref().map(|out| Files::create(out, &TABLES)).transpose()?;
    let mut total = Summary::default();
    let mut origin = options.start_ns;
    let mut numbers = [0; 4];
    for (path, capture) in captures {
        let run = Run::new(capture, &path, options, files.as_ref(), origin, numbers);
        run.work();
        let result = run.result();
        match result {
            Ok(done) => {
                numbers = done.numbers;
                origin = done.origin.or(origin);
                total.add(&done.counts);
                total.flows += done.table.flows;
                total.evicted_flows += done.table.evicted;
                total.forgotten_segments += done.table.budget.forgotten;
                total.errors.extend(done.failed.map(|error| (path, error)));
            }
            Err(error) => {
                if let Some(files) = files {
                    files.abandon();
                }
                return Err(error);
            }
        }
    }
    if let Some(files) = files {
        files.finish()?;
    }
    total.seconds = begun.elapsed().as_secs_f64();
    Ok(total)
}

/// A decoded chunk.
#[derive(Default)]
struct Decode {
    packets: Vec<(Packet, u64)>,
    counts: Summary,
    chunk: Chunk,
}

struct Source {
    capture: Capture,
    next: u64,
    done: bool,
    failed: Option<Error>,
}

/// Everything that goes on in the order of the packets.
struct Analysis {
    table: Table,
    rows: Rows,
    counts: Summary,
    origin: Option<i64>,
    next: u64,
    numbers: [u64; 4],
}

struct Run<'a> {
    source: Mutex<Source>,
    ready: Mutex<BTreeMap<u64, Decode>>,
    spare: Mutex<Vec<Decode>>,
    /// Batches to encode: table, number, columns.
    batches: Mutex<VecDeque<(Name, u64, Vec<Column>)>>,
    analysis: Mutex<Analysis>,
    /// Signalled when chunks were analysed.
    progress: Condvar,
    stop: AtomicBool,
    error: Mutex<Option<Error>>,
    files: Option<&'a Files>,
    hasher: Hasher,
    clock: Clock,
    threads: usize,
}

struct Done {
    table: Table,
    counts: Summary,
    origin: Option<i64>,
    numbers: [u64; 4],
    failed: Option<Error>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Run<'a> {
    fn new(
        capture: Capture,
        path: &Path,
        options: &Options,
        files: Option<&'a Files>,
        origin: Option<i64>,
        numbers: [u64; 4],
    ) -> Self {
        let mut rows = Rows::new(options.interval_ns);
        rows.capture = path.file_name().map_or_else(|| "-".to_owned(), |name| name.to_string_lossy().into_owned());
        rows.origin_ns = origin.unwrap_or(0);
        let table = Table::new(options.max_flows, Namer::new(options.wanted.clone()));
        Run {
            source: Mutex::new(Source { capture, next: 0, done: false, failed: None }),
            ready: Mutex::default(),
            spare: Mutex::default(),
            batches: Mutex::default(),
            analysis: Mutex::new(Analysis { table, rows, counts: Summary::default(), origin, next: 0, numbers }),
            progress: Condvar::new(),
            stop: AtomicBool::new(false),
            error: Mutex::default(),
            files,
            hasher: Hasher::default(),
            clock: options.clock,
            threads: options.threads.max(1),
        }
    }

    fn work(&self) {
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(|| self.thread());
            }
            self.thread();
        });
    }

    fn thread(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            if self.encode() {
                continue;
            }
            let more = self.read();
            self.analyse(false);
            if !more {
                break;
            }
        }
        self.analyse(true);
        while self.encode() {}
    }

    fn fail(&self, error: Error) {
        self.stop.store(true, Ordering::Relaxed);
        lock(&self.error).get_or_insert(error);
        self.progress.notify_all();
    }

    /// Reads and decodes the next chunk; `false` at the end.
    fn read(&self) -> bool {
        let mut decode = lock(&self.spare).pop().unwrap_or_default();
        let number = {
            let mut source = lock(&self.source);
            if source.done {
                return false;
            }
            match source.capture.next_chunk(&mut decode.chunk) {
                Ok(true) => {}
                end => {
                    source.done = true;
                    source.failed = end.err();
                    return false;
                }
            }
            source.next += 1;
            source.next - 1
        };
        decode.run(&self.hasher, self.clock);
        let mut ready = lock(&self.ready);
        ready.insert(number, decode);
        // The other threads are behind: wait rather than fill the memory.
        while ready.len() > AHEAD * self.threads && !self.stop.load(Ordering::Relaxed) {
            match self.analysis.try_lock() {
                Ok(_) => break,
                Err(TryLockError::Poisoned(_)) => break,
                Err(TryLockError::WouldBlock) => {}
            }
            ready = self.progress.wait(ready).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    /// Analyses the chunks whose turn it is, unless another thread is at it.
    fn analyse(&self, wait: bool) {
        let mut analysis = match self.analysis.try_lock() {
            Ok(analysis) => analysis,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if wait => lock(&self.analysis),
            Err(TryLockError::WouldBlock) => return,
        };
        loop {
            let next = lock(&self.ready).remove(&analysis.next);
            let Some(mut decode) = next else { return };
            analysis.next += 1;
            analysis.chunk(&mut decode);
            lock(&self.spare).push(decode);
            self.progress.notify_all();
            let batches = analysis.batches(false);
            if !batches.is_empty() && self.files.is_some() {
                // Encoding goes first, so that batches do not pile up.
                lock(&self.batches).extend(batches);
                if !wait {
                    return;
                }
                drop(analysis);
                while self.encode() {}
                analysis = lock(&self.analysis);
            }
        }
    }

    /// Encodes and writes a batch; `false` if there is none.
    fn encode(&self) -> bool {
        let Some((name, number, columns)) = lock(&self.batches).pop_front() else { return false };
        if let Some(Err(error)) = self.files.map(|files| files.write(name, number, columns)) {
            self.fail(error);
        }
        true
    }

    fn result(self) -> Result<Done> {
        if let Some(error) = inner(self.error) {
            return Err(error);
        }
        let mut analysis = inner(self.analysis);
        let source = inner(self.source);
        let Analysis { table, rows, .. } = &mut analysis;
        table.finish(rows);
        for (name, number, columns) in analysis.batches(true) {
            if let Some(files) = self.files {
                files.write(name, number, columns)?;
            }
        }
        // Nothing at all came out of the file: it is no capture.
        if let Some(error) = source.failed.clone().filter(|e| analysis.counts.packets == 0 && e.offset() < 24) {
            return Err(error);
        }
        let Analysis { table, counts, origin, numbers, .. } = analysis;
        Ok(Done { table, counts, origin, numbers, failed: source.failed })
    }
}

impl Decode {
    fn run(&mut self, hasher: &Hasher, clock: Clock) {
        let Decode { packets, counts, chunk } = self;
        for record in &mut chunk.records {
            record.time_ns = clock.correct(record.time_ns).clamp(0, MAX_TIME_NS);
        }
        // Decoded in place; what is left over of an earlier chunk is not looked at.
        if packets.len() < chunk.records.len() {
            packets.resize(chunk.records.len(), (Packet::default(), 0));
        }
        *counts = Summary::default();
        let mut places = packets.iter_mut();
        let mut place = places.next();
        for record in &chunk.records {
            let Some((packet, hash)) = place.as_deref_mut() else { break };
            match decode(&chunk.data, record, chunk.offset, packet) {
                Ok(Decoded::Tcp) => {
                    counts.fragments += u64::from(packet.fragment);
                    *hash = hasher.hash(&packet.key);
                    counts.tcp_packets += 1;
                    place = places.next();
                }
                Ok(Decoded::Other) => counts.other_packets += 1,
                Ok(Decoded::Fragment) => counts.fragments += 1,
                Err(error) => {
                    counts.bad_packets += 1;
                    counts.first_bad.get_or_insert(error);
                }
            }
        }
        let times = || chunk.records.iter().map(|record| record.time_ns);
        counts.first_ns = times().min();
        counts.last_ns = times().max();
        counts.packets = chunk.records.len() as u64;
        counts.bytes = chunk.records.last().map_or(0, |r| chunk.offset + u64::from(r.at) + u64::from(r.captured));
    }
}

impl Analysis {
    fn chunk(&mut self, decode: &mut Decode) {
        if self.origin.is_none() {
            let first = decode.chunk.records.first().map(|r| r.time_ns);
            self.origin = first;
            self.rows.origin_ns = first.unwrap_or(0);
        }
        // Offsets count from the start of the capture already.
        let bytes = decode.counts.bytes;
        decode.counts.bytes = bytes.saturating_sub(self.counts.bytes);
        self.counts.add(&decode.counts);
        for (packet, hash) in decode.packets.iter().take(decode.counts.tcp_packets as usize) {
            self.table.on_packet(packet, *hash, &mut self.rows);
        }
    }

    fn batches(&mut self, end: bool) -> Vec<(Name, u64, Vec<Column>)> {
        let numbers = &mut self.numbers;
        let number = |(name, columns): (Name, Vec<Column>)| {
            let place = numbers.get_mut(name as usize)?;
            *place += 1;
            Some((name, *place - 1, columns))
        };
        self.rows.take(end).into_iter().filter_map(number).collect()
    }
}
