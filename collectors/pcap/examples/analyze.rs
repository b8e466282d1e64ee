// SPDX-License-Identifier: Apache-2.0
//! `analyze FILE [OUT [THREADS [REPEATS]]]`: the analysis without Python, for profiling.
#![forbid(unsafe_code)]

use warpbed_pcap::analyze::{Options, analyze};

const TABLES: [&str; 4] = ["acks", "intervals", "flows", "directions"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: analyze FILE [OUT [THREADS [REPEATS]]]")?;
    let out = arguments.next().filter(|out| !out.is_empty()).map(Into::into);
    let threads = arguments.next().map_or(Ok(1), |n| n.parse())?;
    let repeats = arguments.next().map_or(Ok(1), |n| n.parse())?;
    let options = Options { out, threads, ..Options::default() };
    for _ in 0..repeats {
        // New tables each time: file systems write a file out before another takes its name.
        for out in options.out.iter().flat_map(|out| TABLES.map(|table| out.join(format!("{table}.parquet")))) {
            if out.exists() {
                std::fs::remove_file(out)?;
            }
        }
        let summary = analyze(&[path.clone().into()], &options)?;
        println!("{:.3} million packets/s, {summary:?}", summary.packets as f64 / summary.seconds * 1e-6);
    }
    Ok(())
}
