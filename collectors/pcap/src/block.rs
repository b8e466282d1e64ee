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
    /// Room for all in the order of the capture, or for those of a shard.
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
        places.iter_mut().for_each(Vec::clear);
        *counts = begin(chunk, clock);
        // Packets come in trains: decoded in place where the one before was, and moved if that was wrong.
        let mut guess = 0;
        for record in &chunk.records {
            let place = counts.tcp_packets as u32;
            let Some(packet) = room(packets, places, guess) else { break };
            if !counts.is_tcp(decode(&chunk.data, record, chunk.offset, packet)) {
                continue;
            }
            router.place(packet);
            let shard = usize::from(packet.shard);
            if shard != guess {
                let packet = *packet;
                let Some(right) = room(packets, places, shard) else { break };
                *right = packet;
                guess = shard;
            }
            if let Some(places) = places.get_mut(shard) {
                places.push(place);
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

/// Room for the next packet of a shard, of which those in `places` are there.
#[inline(always)]
fn room<'a>(
    packets: &'a mut [Vec<Packet>; SHARDS],
    places: &[Vec<u32>; SHARDS],
    shard: usize,
) -> Option<&'a mut Packet> {
    let (packets, used) = (packets.get_mut(shard)?, places.get(shard)?.len());
    if packets.len() == used {
        packets.push(Packet::default());
    }
    packets.get_mut(used)
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
