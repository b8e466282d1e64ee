// SPDX-License-Identifier: Apache-2.0
//! Captures to tables. The result does not depend on the number of threads.
#![forbid(unsafe_code)]

pub mod block;
mod options;
mod pipeline;
mod route;
mod schedule;
mod shard;
pub mod summary;
mod work;

use std::path::PathBuf;
use std::time::Instant;

use crate::analyze::summary::Summary;
use crate::analyze::work::Work;
use crate::error::{Error, Layer, Result};
use crate::read::capture::Capture;
use crate::write::records::{Numbers, TABLES};
use crate::write::tables::Files;

pub use options::{Options, Rehearse};

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
