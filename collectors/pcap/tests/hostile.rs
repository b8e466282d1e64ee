// SPDX-License-Identifier: Apache-2.0
//! Hostile captures without libFuzzer: mutations of good ones, for WARPBED_FUZZ_SECONDS (default 5) per test.
//! Debug builds check every overflow; a panic fails the test and names the seed that makes it again.

use std::io::Write;
use std::time::{Duration, Instant};

use warpbed_pcap::fuzzing;
use warpbed_pcap::generate::{Settings, Simulation};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

fn seconds() -> Duration {
    Duration::from_secs(std::env::var("WARPBED_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(5))
}

fn good(seed: u64) -> Vec<u8> {
    let mut file = Vec::new();
    let settings =
        Settings { flows: 3, packets: 300, seed, loss_ppm: 30_000, flow_bytes: 60_000, ..Settings::default() };
    Simulation::run(settings, &mut file).expect("writing to memory");
    file
}

/// The same packets as a pcapng.
fn pcapng(pcap: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(pcap[at..at + 4].try_into().expect("4 bytes"));
    let mut out = Vec::new();
    let block = |out: &mut Vec<u8>, kind: u32, body: &[u8]| {
        let length = (12 + body.len().next_multiple_of(4)) as u32;
        out.extend(kind.to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend(body);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend(length.to_le_bytes());
    };
    block(&mut out, 0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    block(&mut out, 1, &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    let mut at = 24;
    while at + 16 <= pcap.len() {
        let ns = u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4));
        let length = word(at + 8);
        let mut body = Vec::new();
        for value in [0, (ns >> 32) as u32, ns as u32, length, word(at + 12)] {
            body.extend(value.to_le_bytes());
        }
        body.extend(&pcap[at + 16..at + 16 + length as usize]);
        block(&mut out, 6, &body);
        at += 16 + length as usize;
    }
    out
}

fn mutate(data: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(8) {
        let at = random.below(data.len());
        match random.below(7) {
            0 => data.truncate(at),
            1 => data.insert(at, random.next() as u8),
            2 => {
                let end = (at + random.below(64)).min(data.len());
                data.drain(at..end);
            }
            3 => {
                let end = (at + random.below(400)).min(data.len());
                let again = data[at..end].to_vec();
                let to = random.below(data.len());
                data.splice(to..to, again);
            }
            4 if at + 4 <= data.len() => {
                let edge = [0u32, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 65_535, 4][random.below(7)];
                let bytes = if random.below(2) == 0 { edge.to_le_bytes() } else { edge.to_be_bytes() };
                data[at..at + 4].copy_from_slice(&bytes);
            }
            _ => {
                if let Some(byte) = data.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
        if data.is_empty() {
            data.push(0);
        }
    }
}

fn torture(name: &str, seeds: &[Vec<u8>], run: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let begun = Instant::now();
    let mut runs = 0u64;
    while begun.elapsed() < seconds() {
        let seed = runs + 1;
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut data = seeds[random.below(seeds.len())].clone();
        mutate(&mut data, &mut random);
        let result = std::panic::catch_unwind(|| run(&data));
        assert!(result.is_ok(), "{name}: seed {seed} panics");
        runs += 1;
    }
    println!("{name}: {runs} runs");
}

#[test]
fn mutated_captures_never_panic() {
    let mut seeds: Vec<Vec<u8>> = (1..4).map(good).collect();
    seeds.extend(seeds.clone().iter().map(|s| pcapng(s)));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&seeds[0]).expect("compressing in memory");
    seeds.push(gzip.finish().expect("compressing in memory"));
    torture("captures", &seeds, |data| {
        fuzzing::capture(data);
    });
}

#[test]
fn arbitrary_packets_never_panic() {
    let mut random = Random(7);
    let seeds: Vec<Vec<u8>> = (0..16)
        .map(|_| {
            (0..160)
                .flat_map(|_| {
                    let mut step = random.next().to_le_bytes().to_vec();
                    step.extend(random.next().to_le_bytes());
                    // Mostly plain data and ACKs close to each other.
                    if random.below(4) > 0 {
                        (step[1], step[3], step[5], step[7]) = (0x10, 10, 0, 0);
                    }
                    step
                })
                .collect()
        })
        .collect();
    torture("packets", &seeds, |data| {
        fuzzing::packets(data);
    });
}

#[test]
fn the_pcapng_of_a_pcap_says_the_same() {
    let file = good(1);
    let classic = fuzzing::capture(&file).expect("opens").expect("reads");
    let modern = fuzzing::capture(&pcapng(&file)).expect("opens").expect("reads");
    assert_eq!((classic.packets, classic.flows, classic.errors.len()), (modern.packets, 3, 0));
    assert!(classic.packets > 200);
    assert_eq!(
        (classic.tcp_packets, classic.first_ns, classic.last_ns),
        (modern.tcp_packets, modern.first_ns, modern.last_ns)
    );
}
