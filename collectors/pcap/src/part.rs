// SPDX-License-Identifier: Apache-2.0
//! The rows of one shard and one block, until they are put into the order of the capture.
#![forbid(unsafe_code)]

use std::sync::Arc;

use crate::acks::AckRow;
use crate::connection::Connection;
use crate::interval::Interval;
use crate::label::{FlowName, FlowRef};
use crate::records::{Rows, Scale, Sink};
use crate::route::SHARDS;

/// A row, the place of its packet in the block, and its flow's in `names`.
#[derive(Debug)]
struct At<T> {
    place: u32,
    flow: u32,
    row: T,
}

#[derive(Debug)]
pub struct Part {
    scale: Scale,
    pub place: u64,
    /// Of the block, which tells the parts of a shard apart; from 1 on, so that (0, 0) is nobody's place.
    number: u64,
    names: Vec<Arc<FlowName>>,
    acks: Vec<At<AckRow>>,
    intervals: Vec<At<(Interval, bool)>>,
    over: Vec<At<Box<Connection>>>,
}

impl Part {
    pub fn new(scale: Scale) -> Self {
        let (acks, intervals, over) = (Vec::new(), Vec::new(), Vec::new());
        Part { scale, place: 0, number: 0, names: Vec::new(), acks, intervals, over }
    }

    /// Empties it for the rows of block `number`.
    pub fn begin(&mut self, number: u64, origin_ns: i64) {
        self.scale.origin_ns = origin_ns;
        self.number = number + 1;
        self.names.clear();
        self.acks.clear();
        self.intervals.clear();
        self.over.clear();
    }

    /// Connections that it holds.
    pub fn held(&self) -> usize {
        self.over.len()
    }

    #[inline(always)]
    fn flow(&mut self, flow: &mut FlowRef) -> u32 {
        if flow.part.0 != self.number {
            flow.part = (self.number, self.names.len() as u32);
            self.names.push(flow.name.clone());
        }
        flow.part.1
    }
}

impl Sink for Part {
    #[inline(always)]
    fn scale(&self) -> &Scale {
        &self.scale
    }

    #[inline(always)]
    fn place(&self) -> u64 {
        self.place
    }

    #[inline(always)]
    fn ack(&mut self, flow: &mut FlowRef, row: AckRow) {
        let flow = self.flow(flow);
        self.acks.push(At { place: self.place as u32, flow, row });
    }

    fn interval(&mut self, flow: &mut FlowRef, interval: &Interval, forward: bool) {
        let flow = self.flow(flow);
        self.intervals.push(At { place: self.place as u32, flow, row: (*interval, forward) });
    }

    /// Its intervals are rows now; what is counted of it becomes rows when it is its turn, which are larger than it is.
    fn over(&mut self, mut connection: Box<Connection>) {
        connection.flush_intervals(self);
        self.over.push(At { place: self.place as u32, flow: 0, row: connection });
    }
}

/// Adds the rows of a block's parts to `rows` as if the packets had been analysed one after the other.
pub fn merge(parts: &[Option<Box<Part>>; SHARDS], rows: &mut Rows) {
    let origin = rows.scale.origin_ns;
    in_order(parts.each_ref().map(|part| part.as_ref().map_or(&[][..], |part| &part.acks)), |shard, at| {
        if let Some(name) = name(parts, shard, at.flow) {
            rows.acks.push(name, origin, &at.row);
        }
    });
    in_order(parts.each_ref().map(|part| part.as_ref().map_or(&[][..], |part| &part.intervals)), |shard, at| {
        if let Some(name) = name(parts, shard, at.flow) {
            let (interval, forward) = &at.row;
            rows.intervals.push(name, origin, interval, *forward);
        }
    });
    in_order(parts.each_ref().map(|part| part.as_ref().map_or(&[][..], |part| &part.over)), |_, at| {
        rows.directions_of(&at.row);
    });
}

#[inline(always)]
fn name(parts: &[Option<Box<Part>>; SHARDS], shard: usize, flow: u32) -> Option<&FlowName> {
    parts.get(shard)?.as_ref()?.names.get(flow as usize).map(Arc::as_ref)
}

/// Rows of all lists by place. Those of one place are of one list and stay as they are.
#[inline(always)]
fn in_order<T>(mut lists: [&[At<T>]; SHARDS], mut take: impl FnMut(usize, &At<T>)) {
    loop {
        let heads = lists.map(|list| list.first().map_or(u32::MAX, |at| at.place));
        let Some((shard, first)) = heads.iter().copied().enumerate().min_by_key(|(_, place)| *place) else { return };
        if first == u32::MAX {
            return;
        }
        // Packets come in trains: up to the next row of another list.
        let others = heads.iter().enumerate().filter(|(at, _)| *at != shard);
        let until = others.map(|(_, place)| *place).min().unwrap_or(u32::MAX);
        let Some(list) = lists.get_mut(shard) else { return };
        while let Some((at, rest)) = list.split_first().filter(|(at, _)| at.place < until) {
            take(shard, at);
            *list = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_the_order_of_their_packets() {
        let at = |place, row| At { place, flow: 0, row };
        let lists = [vec![at(1, 'a'), at(1, 'b'), at(9, 'f')], vec![], vec![at(3, 'd'), at(4, 'e')], vec![at(2, 'c')]];
        let mut seen = String::new();
        in_order(lists.each_ref().map(Vec::as_slice), |_, at| seen.push(at.row));
        assert_eq!(seen, "abcdef");
    }
}
