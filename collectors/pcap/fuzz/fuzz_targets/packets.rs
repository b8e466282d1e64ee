// SPDX-License-Identifier: Apache-2.0
//! Any bytes as a sequence of TCP packets of a few connections, past all framing, for the analysis itself.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    warpbed_pcap::fuzzing::packets(data);
});
