// SPDX-License-Identifier: Apache-2.0
//! What an analysis is told.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use crate::clock::Clock;
use crate::connections::table::DEFAULT_MAX_FLOWS;
use crate::write::label::Wanted;

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
