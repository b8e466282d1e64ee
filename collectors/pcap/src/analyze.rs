// SPDX-License-Identifier: Apache-2.0
//! Captures to tables. The result does not depend on the number of threads.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::time::Instant;

use crate::capture::Capture;
use crate::clock::Clock;
use crate::error::{Error, Layer, Result};
use crate::label::Wanted;
use crate::pipeline;
use crate::records::{Numbers, TABLES};
use crate::summary::Summary;
use crate::table::DEFAULT_MAX_FLOWS;
use crate::tables::Files;
use crate::work::Work;

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
    #[doc(hidden)]
    pub rehearse: Rehearse,
}

/// For tests and fuzzing: what only large captures or several threads bring about.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Rehearse {
    /// Shards, however few flows there may be.
    pub shards: bool,
    /// The way of several threads, also with one.
    pub queue: bool,
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
            rehearse: Rehearse::default(),
        }
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
    let result = all(captures, options, files.as_ref());
    match (result, files) {
        (Ok(mut total), files) => {
            files.map_or(Ok(()), Files::finish)?;
            total.seconds = begun.elapsed().as_secs_f64();
            Ok(total)
        }
        (Err(error), files) => {
            if let Some(files) = files {
                files.abandon();
            }
            Err(error)
        }
    }
}

fn all(captures: Vec<(PathBuf, Capture)>, options: &Options, files: Option<&Files>) -> Result<Summary> {
    let mut total = Summary::default();
    let mut origin_ns = options.start_ns;
    let mut numbers = Numbers::default();
    for (path, capture) in captures {
        let work = Work::new(capture, &path, options, files, origin_ns, numbers);
        let alone = options.threads <= 1 && !options.rehearse.queue;
        let done = if alone { work.alone() } else { pipeline::run(work) }?;
        let (counts, failed) = (done.counts, done.failed);
        (numbers, origin_ns) = (done.numbers, done.origin_ns);
        // Nothing at all came out of the file: it is no capture.
        if let Some(error) = failed.as_ref().filter(|e| counts.packets == 0 && e.offset() < 24) {
            return Err(error.clone());
        }
        total.add(&counts);
        total.errors.extend(failed.map(|error| (path, error)));
    }
    Ok(total)
}
