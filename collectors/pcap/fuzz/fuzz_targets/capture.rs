// SPDX-License-Identifier: Apache-2.0
//! Any bytes as a capture file: plain, gzip or zstd, pcap or pcapng.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    warpbed_pcap::fuzzing::capture(data);
});
