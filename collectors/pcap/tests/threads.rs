// SPDX-License-Identifier: Apache-2.0
//! Every way of dividing the work gives the same tables, also where flows are named, end, make room and share shards.

use std::fs;
use std::path::{Path, PathBuf};

use warpbed_pcap::analyze::{Options, Rehearse, analyze};
use warpbed_pcap::generate::{Settings, Simulation};
use warpbed_pcap::write::label::Wanted;

/// Removed at the end, also of a test that fails.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("warpbed-pcap-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn tables(capture: &Path, out: PathBuf, options: &Options) -> Vec<Vec<u8>> {
    let options = Options { out: Some(out.clone()), ..options.clone() };
    let summary = analyze(&[capture.to_owned(), capture.to_owned()], &options).expect("analyses");
    assert!(summary.errors.is_empty() && summary.packets >= 2 * 40_000, "{summary:?}");
    let mut files: Vec<Vec<u8>> = ["acks", "intervals", "flows", "directions"]
        .map(|table| fs::read(out.join(format!("{table}.parquet"))).expect("a table"))
        .into();
    files.push(format!("{} {} {}", summary.flows, summary.evicted_flows, summary.forgotten_segments).into());
    files
}

fn compare(name: &str, options: Options) {
    let folder = Folder::new(name);
    let capture = folder.0.join("x.pcap");
    let file = fs::File::create(&capture).expect("a capture");
    let settings =
        Settings { flows: 60, packets: 40_000, loss_ppm: 10_000, flow_bytes: 600_000, ..Settings::default() };
    Simulation::run(settings, std::io::BufWriter::new(file)).expect("writes");
    let alone = tables(&capture, folder.0.join("alone"), &options);
    assert!(alone[0].len() > 100_000);
    for threads in [1, 2, 3, 7] {
        let rehearse = Rehearse { queue: true, ..options.rehearse };
        let many = Options { threads, rehearse, ..options.clone() };
        assert!(alone == tables(&capture, folder.0.join("many"), &many), "{threads} threads");
    }
}

#[test]
fn threads_do_not_change_a_byte() {
    compare("plain", Options::default());
}

#[test]
fn threads_do_not_change_a_byte_of_named_flows() {
    let wanted = |src_addr: Option<&str>, skip| Wanted {
        name: format!("skip {skip}"),
        src_addr: src_addr.map(str::to_owned),
        dst_port: Some(5201),
        size_bytes: Some(600_000),
        skip,
        ..Wanted::default()
    };
    let some = [Some("10.0.0.7"), Some("10.0.0.8"), Some("10.0.0.9")].map(|address| wanted(address, 0));
    compare("named", Options { wanted: [some.as_slice(), &[wanted(None, 5)]].concat(), ..Options::default() });
}

#[test]
fn threads_do_not_change_a_byte_where_flows_make_room() {
    let rehearse = Rehearse { shards: true, queue: false };
    compare("room", Options { max_flows: 8, rehearse, interval_ns: 1_000_000, ..Options::default() });
}
