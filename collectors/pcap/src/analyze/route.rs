// SPDX-License-Identifier: Apache-2.0
//! Which shard of the analysis a packet belongs to.
//!
//! Both directions of a connection go to one shard, and all connections that fit the same flow of the experiment
//! file, because those are numbered in their order. Nothing else that the analysis keeps is shared by shards, so
//! that threads can work on them at the same time. The number of threads plays no part in it.
#![forbid(unsafe_code)]

use std::hash::BuildHasher;

use hashbrown::HashTable;

use crate::read::packet::{Ends, Key};
use crate::write::label::{Wanted, first_fit};

/// Enough for two threads to share the load of many flows evenly, few enough for each to have room for a large one.
pub const SHARDS: usize = 4;
/// Keys of which the fit is remembered.
const KNOWN: usize = 4096;

/// Keyed by a random seed per process, so that nobody can craft addresses that collide.
#[derive(Clone, Default)]
pub struct Hasher(foldhash::fast::RandomState);

#[derive(Clone)]
pub struct Router {
    hasher: Hasher,
    shards: usize,
    wanted: Vec<Wanted>,
    /// By hash, keys with their shards.
    known: Vec<Option<(Key, u8)>>,
    /// Of the block at hand: places in its list of ends, and the one of the packet before: packets come in trains.
    index: HashTable<u32>,
    last: u32,
}

impl Router {
    /// For at most `SHARDS` shards.
    pub fn new(shards: usize, wanted: &[Wanted]) -> Self {
        let known = if wanted.is_empty() { Vec::new() } else { vec![None; KNOWN] };
        let shards = shards.clamp(1, SHARDS);
        Router { hasher: Hasher::default(), shards, wanted: wanted.to_vec(), known, index: HashTable::new(), last: 0 }
    }

    /// Begins a block, of which no ends are known.
    pub fn begin(&mut self) {
        self.index.clear();
    }

    /// The place of a connection in its block's list of ends.
    #[inline(always)]
    pub fn place(&mut self, key: &Key, ends: &mut Vec<Ends>) -> u32 {
        if ends.get(self.last as usize).is_none_or(|last| last.key != *key) {
            self.last = self.find(key, ends);
        }
        self.last
    }

    fn find(&mut self, key: &Key, ends: &mut Vec<Ends>) -> u32 {
        let hash = self.hasher.0.hash_one(key.words());
        let of = |at: &u32| ends.get(*at as usize);
        if let Some(at) = self.index.find(hash, |at| of(at).is_some_and(|ends| ends.key == *key)) {
            return *at;
        }
        let at = ends.len() as u32;
        self.index.insert_unique(hash, at, |at| of(at).map_or(0, |ends| ends.hash));
        let shard = if self.wanted.is_empty() { spread(key, self.shards) } else { self.fit(key, hash) };
        ends.push(Ends { key: *key, hash, shard });
        at
    }

    fn fit(&mut self, key: &Key, hash: u64) -> u8 {
        let at = hash as usize % KNOWN;
        if let Some(Some((_, shard))) = self.known.get(at).filter(|k| k.is_some_and(|(known, _)| known == *key)) {
            return *shard;
        }
        let shard = first_fit(&self.wanted, key).map_or_else(|| spread(key, self.shards), |n| (n % self.shards) as u8);
        if let Some(place) = self.known.get_mut(at) {
            *place = Some((*key, shard));
        }
        shard
    }
}

/// By a fixed hash: the shard decides which flows make room for each other, so every process has to choose alike.
#[inline(always)]
fn spread(key: &Key, shards: usize) -> u8 {
    let (low, high, ports) = key.words();
    let fold = |address: u128| (address as u64 ^ (address >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = fold(low) ^ fold(high).rotate_left(23) ^ ports.wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (((mixed >> 32) * shards as u64) >> 32) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(client: u32, port: u16) -> Key {
        Key { low: client.into(), high: 0x0a01_0001, low_port: port, high_port: 5201, v4: true }
    }

    fn shard(router: &mut Router, key: Key) -> u8 {
        let mut ends = Vec::new();
        router.begin();
        let at = router.place(&key, &mut ends);
        ends[at as usize].shard
    }

    #[test]
    fn a_block_keeps_each_pair_of_ends_once() {
        let (mut router, mut ends) = (Router::new(SHARDS, &[]), Vec::new());
        router.begin();
        let places: Vec<u32> = [1, 1, 2, 3, 2, 1, 3].map(|client| router.place(&key(client, 80), &mut ends)).into();
        assert_eq!(places, [0, 0, 1, 2, 1, 0, 2]);
        assert_eq!(ends.len(), 3);
        ends.clear();
        router.begin();
        assert_eq!(router.place(&key(3, 80), &mut ends), 0);
    }

    #[test]
    fn connections_spread_alike_in_every_process() {
        let mut counts = [0; SHARDS];
        let (mut one, mut other) = (Router::new(SHARDS, &[]), Router::new(SHARDS, &[]));
        for client in 0..1000 {
            let at = shard(&mut one, key(0x0a00_0001 + client, 40_000));
            assert_eq!(at, shard(&mut other, key(0x0a00_0001 + client, 40_000)));
            counts[usize::from(at)] += 1;
        }
        assert!(counts.iter().all(|n| (200..300).contains(n)), "{counts:?}");
    }

    #[test]
    fn what_fits_one_wanted_flow_stays_together() {
        let wanted = |port| Wanted { dst_port: Some(port), ..Wanted::default() };
        let mut router = Router::new(SHARDS, &[wanted(80), wanted(5201)]);
        let shards: Vec<u8> =
            (0..100).map(|n| shard(&mut router, key(0x0a00_0001 + n % 7, 40_000 + n as u16))).collect();
        assert!(shards.iter().all(|s| *s == 1), "{shards:?}");
        assert_eq!(shard(&mut router, key(1, 80)), 0);
    }
}
