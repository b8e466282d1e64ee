// SPDX-License-Identifier: Apache-2.0
//! What the fuzzers call: `fuzz/` with libFuzzer, `tests/hostile.rs` without.
#![forbid(unsafe_code)]

use std::io::Cursor;
use std::path::PathBuf;

use crate::analyze::summary::Summary;
use crate::analyze::{Options, Rehearse, analyze_captures};
use crate::error::Result;
use crate::read::capture::Capture;

/// Few flows, so that eviction happens; an interval that few packets fill.
fn options(queue: bool) -> Options {
    let rehearse = Rehearse { shards: true, queue };
    Options { max_flows: 8, interval_ns: 1_000_000, rehearse, ..Options::default() }
}

/// Bytes as a capture file; every fourth by the way of several threads as well.
pub fn capture(data: &[u8]) -> Option<Result<Summary>> {
    let run = |queue: bool| {
        let capture = Capture::from_reader(Cursor::new(data.to_vec()), false).ok()?;
        Some(analyze_captures(vec![(PathBuf::from("fuzz"), capture)], &options(queue)))
    };
    let result = run(false);
    if data.last().is_some_and(|last| last & 3 == 0) {
        let text = |result: &Option<Result<Summary>>| {
            let counts = result.as_ref().map(|r| r.as_ref().map(|s| Summary { seconds: 0.0, ..s.clone() }));
            format!("{counts:?}")
        };
        assert_eq!(text(&result), text(&run(true)), "the threads' way has another result");
    }
    result
}

/// Bytes as packets, 16 each: connection and side, flags, times and small changes of the sequence numbers, so that
/// the fuzzer gets deep into the analysis; wrapped into a raw IPv4 capture.
pub fn packets(data: &[u8]) -> Option<Result<Summary>> {
    let mut file = Vec::with_capacity(24 + data.len() * 8);
    for word in [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 65535, 101] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    let mut time = 1_000_000_000u64;
    let mut next = [[0u32; 2]; 4];
    for step in data.chunks_exact(16) {
        let &[who, flags, wait, kind, a, b, c, d, e, f, g, h, window, stamp, echo, options] = step else { continue };
        time = time.wrapping_add(u64::from(wait) << (kind & 31));
        let (flow, side) = (usize::from(who >> 1 & 3), usize::from(who & 1));
        let seqs = next.get_mut(flow)?;
        let [mine, theirs] = if side == 0 { [seqs[0], seqs[1]] } else { [seqs[1], seqs[0]] };
        let near = |base: u32, low: u8, high: u8, wide: bool| {
            let step = i32::from(i16::from_le_bytes([low, high]));
            base.wrapping_add(if wide { step << 16 } else { step } as u32)
        };
        let seq = near(mine, a, b, kind & 32 != 0 && kind & 64 != 0);
        let ack = near(theirs, c, d, kind & 32 != 0 && kind & 64 == 0);
        let length = u16::from(e) << (f & 7);
        let sack = usize::from(options & 3);
        let header = 20 + 12 + if sack > 0 { 4 + 8 * sack } else { 0 };
        let total = 20 + header as u16 + length;
        seqs[side] = seq.wrapping_add(u32::from(length));
        let captured = 20 + header as u32;
        for word in [(time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32, captured, u32::from(total)] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        let ends =
            if side == 0 { [[10, 0, 0, flow as u8], [10, 1, 0, 1]] } else { [[10, 1, 0, 1], [10, 0, 0, flow as u8]] };
        file.extend_from_slice(&[0x45, g & 3]);
        file.extend_from_slice(&total.to_be_bytes());
        file.extend_from_slice(&[0, 0, h & 0x20, 0, 64, 6, 0, 0]);
        file.extend_from_slice(&ends[0]);
        file.extend_from_slice(&ends[1]);
        file.extend_from_slice(&[0, 80, 0, 80]);
        file.extend_from_slice(&seq.to_be_bytes());
        file.extend_from_slice(&ack.to_be_bytes());
        file.extend_from_slice(&[((header / 4) << 4) as u8, flags, window, 0, 0, 0, 0, 0]);
        file.extend_from_slice(&[1, 1, 8, 10, 0, 0, 0, stamp, 0, 0, 0, echo]);
        if sack > 0 {
            file.extend_from_slice(&[1, 1, 5, (2 + 8 * sack) as u8]);
            for block in 0..sack as u32 {
                let left = near(ack, options, g, false).wrapping_add(block * u32::from(h));
                file.extend_from_slice(&left.to_be_bytes());
                file.extend_from_slice(&left.wrapping_add(u32::from(e)).to_be_bytes());
            }
        }
    }
    capture(&file)
}
