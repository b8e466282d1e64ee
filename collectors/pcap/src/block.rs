// SPDX-License-Identifier: Apache-2.0
//! Consecutive packets of a capture, decoded.
#![forbid(unsafe_code)]

use crate::capture::Chunk;
use crate::clock::Clock;
use crate::decode::decode;
use crate::packet::Packet;
use crate::route::{Router, SHARDS};
use crate::summary::Summary;

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
    /// All in the order of the capture, or those of a shard.
    packets: [Vec<Packet>; SHARDS],
    /// Where the packets of a shard stand in the block.
    places: [Vec<u32>; SHARDS],
}

impl Block {
    /// Decodes `chunk`, in the order of the capture.
    pub fn decode(&mut self, chunk: &mut Chunk, router: &mut Router, clock: Clock) {
        let Block { packets: [packets, ..], counts, .. } = self;
        // Decoded in place; what is left over of an earlier chunk is not looked at.
        if packets.len() < chunk.records.len() {
            packets.resize(chunk.records.len(), Packet::default());
        }
        *counts = begin(chunk, clock);
        let mut places = packets.iter_mut();
        let mut place = places.next();
        for record in &chunk.records {
            let Some(packet) = place.as_deref_mut() else { break };
            if counts.is_tcp(decode(&chunk.data, record, chunk.offset, packet)) {
                router.place(packet);
                place = places.next();
            }
        }
    }

    /// Decodes `chunk`, by shards.
    pub fn decode_by_shards(&mut self, chunk: &mut Chunk, router: &mut Router, clock: Clock) {
        let Block { packets, places, counts, .. } = self;
        packets.iter_mut().for_each(Vec::clear);
        places.iter_mut().for_each(Vec::clear);
        *counts = begin(chunk, clock);
        let mut packet = Packet::default();
        for record in &chunk.records {
            let place = counts.tcp_packets as u32;
            if counts.is_tcp(decode(&chunk.data, record, chunk.offset, &mut packet)) {
                router.place(&mut packet);
                let shard = usize::from(packet.shard);
                if let (Some(packets), Some(places)) = (packets.get_mut(shard), places.get_mut(shard)) {
                    packets.push(packet);
                    places.push(place);
                }
            }
        }
    }

    /// Of `decode`: each packet and its place in the capture.
    pub fn packets(&self) -> impl Iterator<Item = (u64, &Packet)> {
        let [packets, ..] = &self.packets;
        (self.number << 32..).zip(packets.iter().take(self.counts.tcp_packets as usize))
    }

    /// Of `decode_by_shards`: each packet of a shard and its place in the capture.
    pub fn of_shard(&self, shard: usize) -> impl Iterator<Item = (u64, &Packet)> {
        let places = self.places.get(shard).into_iter().flatten();
        places.map(|place| self.number << 32 | u64::from(*place)).zip(self.packets.get(shard).into_iter().flatten())
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
