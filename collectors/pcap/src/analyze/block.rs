// SPDX-License-Identifier: Apache-2.0
//! Consecutive packets of a capture, decoded.
#![forbid(unsafe_code)]

use crate::analyze::route::{Router, SHARDS};
use crate::analyze::summary::Summary;
use crate::clock::Clock;
use crate::read::chunk::Chunk;
use crate::read::decode::decode;
use crate::read::packet::{Ends, Packet, Seen, Whole};

/// The latest time that is taken as it is (2^62 ns, the year 2116), so that differences cannot overflow.
pub const MAX_TIME_NS: i64 = 1 << 62;

/// Takes off a capture's clock.
#[inline(always)]
pub fn corrected(clock: Clock, time_ns: i64) -> i64 {
    clock.correct(time_ns).clamp(0, MAX_TIME_NS)
}

#[derive(Default)]
pub struct Block {
    /// Counts blocks of the capture.
    pub number: u64,
    pub origin_ns: i64,
    /// `bytes` counts from the start of the capture.
    pub counts: Summary,
    /// By shard, and where they stand in the block.
    packets: [Vec<Packet>; SHARDS],
    places: [Vec<u32>; SHARDS],
    /// What packets have in common with others or most have not.
    ends: Vec<Ends>,
    sack: Vec<(u32, u32)>,
}

impl Block {
    /// Decodes `chunk`.
    pub fn decode(&mut self, chunk: &mut Chunk, router: &mut Router, clock: Clock) {
        let Block { packets, places, ends, sack, counts, .. } = self;
        packets.iter_mut().for_each(Vec::clear);
        places.iter_mut().for_each(Vec::clear);
        ends.clear();
        sack.clear();
        router.begin();
        *counts = begin(chunk, clock);
        let mut whole = Whole::default();
        for record in &chunk.records {
            let place = counts.tcp_packets as u32;
            if !counts.is_tcp(decode(&chunk.data, record, chunk.offset, &mut whole)) {
                continue;
            }
            let at = router.place(&whole.key, ends);
            let shard = ends.get(at as usize).map_or(0, |ends| usize::from(ends.shard));
            let (Some(packets), Some(places)) = (packets.get_mut(shard), places.get_mut(shard)) else { break };
            packets.push(Packet { ends: at, sack_at: sack.len() as u32, ..whole.packet });
            places.push(place);
            if whole.packet.sack_count > 0 {
                sack.extend_from_slice(whole.sack());
            }
        }
    }

    /// Each packet of a shard and its place in the capture.
    pub fn of_shard(&self, shard: usize) -> impl Iterator<Item = (u64, Seen<'_>)> {
        let packets = self.packets.get(shard).into_iter().flatten();
        let places = self.places.get(shard).into_iter().flatten().map(|place| self.number << 32 | u64::from(*place));
        places.zip(packets).filter_map(|(place, packet)| Some((place, self.seen(packet)?)))
    }

    #[inline(always)]
    fn seen<'a>(&'a self, packet: &'a Packet) -> Option<Seen<'a>> {
        let sack = match packet.sack_count {
            0 => &[],
            count => self.sack.get(packet.sack_at as usize..)?.get(..usize::from(count))?,
        };
        Some(Seen { packet, ends: self.ends.get(packet.ends as usize)?, sack })
    }

    pub fn has(&self, shard: usize) -> bool {
        self.places.get(shard).is_some_and(|places| !places.is_empty())
    }
}

/// Corrects the times of `chunk` and begins its counts.
fn begin(chunk: &mut Chunk, clock: Clock) -> Summary {
    for record in &mut chunk.records {
        record.time_ns = corrected(clock, record.time_ns);
    }
    let times = || chunk.records.iter().map(|record| record.time_ns);
    Summary {
        packets: chunk.records.len() as u64,
        bytes: chunk.records.last().map_or(0, |r| chunk.offset + u64::from(r.at) + u64::from(r.captured)),
        first_ns: times().min(),
        last_ns: times().max(),
        ..Summary::default()
    }
}
