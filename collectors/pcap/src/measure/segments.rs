// SPDX-License-Identifier: Apache-2.0
//! What has been sent and not yet acknowledged, for RTT samples; and recent retransmissions, for judging them.
#![forbid(unsafe_code)]

use std::collections::VecDeque;

/// Segments that all flows together may keep (24 bytes each): with the flow table this keeps within 200 MB.
pub const BUDGET: usize = 3 << 20;
/// How far from the newest segment one may be filed in between; further ones are not kept.
const MAX_SHIFT: usize = 4096;
/// 4 KB per direction: with 1024, 10 000 lossy flows took 218 MiB.
const MAX_RETRANSMISSIONS: usize = 128;

/// Segments left that the flows of a capture may keep.
#[derive(Debug)]
pub struct Budget {
    pub left: usize,
    /// Segments forgotten because the budget was used up: that many RTT samples less.
    pub forgotten: u64,
}

impl Budget {
    pub fn new(segments: usize) -> Self {
        Budget { left: segments, forgotten: 0 }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub end: i64,
    /// When it was last sent.
    pub sent_ns: i64,
    /// TSval when it was last sent, 0 without timestamps.
    pub tsval: u32,
    /// Length in the low 31 bits, retransmitted in the highest.
    packed: u32,
}

const RETRANSMITTED: u32 = 1 << 31;

impl Segment {
    pub fn new(start: i64, end: i64, sent_ns: i64, tsval: u32) -> Self {
        Segment { end, sent_ns, tsval, packed: (end - start).clamp(0, i64::from(RETRANSMITTED - 1)) as u32 }
    }

    pub fn start(&self) -> i64 {
        self.end - i64::from(self.packed & !RETRANSMITTED)
    }

    pub fn retransmitted(&self) -> bool {
        self.packed & RETRANSMITTED != 0
    }

    pub fn again(&mut self, sent_ns: i64, tsval: u32) {
        self.packed |= RETRANSMITTED;
        self.sent_ns = sent_ns;
        self.tsval = tsval;
    }
}

/// Unacknowledged segments in the order of their bytes.
#[derive(Debug, Default)]
pub struct Segments {
    list: VecDeque<Segment>,
}

impl Segments {
    #[inline]
    pub fn push(&mut self, segment: Segment, budget: &mut Budget) {
        if self.list.len() == self.list.capacity() {
            self.grow(budget);
        }
        if self.list.len() < self.list.capacity() {
            self.list.push_back(segment);
        } else {
            budget.forgotten += 1;
        }
    }

    #[cold]
    fn grow(&mut self, budget: &mut Budget) {
        let more = self.list.capacity().max(8);
        if budget.left >= more {
            budget.left -= more;
            self.list.reserve_exact(more);
        } else {
            let half = self.list.len().div_ceil(2);
            self.list.drain(..half);
            budget.forgotten += half as u64;
        }
    }

    /// Files a segment that came late.
    pub fn insert(&mut self, segment: Segment, budget: &mut Budget) {
        let at = self.list.partition_point(|s| s.end <= segment.start());
        if self.list.len() - at > MAX_SHIFT || self.list.len() == self.list.capacity() {
            budget.forgotten += 1;
        } else {
            self.list.insert(at, segment);
        }
    }

    #[inline]
    pub fn front(&self) -> Option<&Segment> {
        self.list.front()
    }

    #[inline]
    pub fn pop(&mut self) {
        self.list.pop_front();
    }

    /// The segments that share bytes with a range.
    pub fn overlapping(&mut self, start: i64, end: i64) -> impl Iterator<Item = &mut Segment> {
        let first = self.list.partition_point(|s| s.end <= start);
        self.list.range_mut(first..).take_while(move |s| s.start() < end)
    }

    pub fn release(&mut self, budget: &mut Budget) {
        budget.left += self.list.capacity();
        self.list = VecDeque::new();
    }
}

/// Why a segment was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Fast,
    Timeout,
    TailProbe,
    /// Neither duplicate ACKs, SACK nor time explain it.
    Other,
}

#[derive(Clone, Copy, Debug)]
pub struct Retransmission {
    pub start: i64,
    pub end: i64,
    pub tsval: Option<u32>,
}

/// Retransmissions that may still turn out to have been needless.
#[derive(Debug, Default)]
pub struct Recent {
    list: VecDeque<Retransmission>,
}

impl Recent {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn push(&mut self, retransmission: Retransmission) {
        if self.list.len() >= MAX_RETRANSMISSIONS {
            self.list.pop_front();
        }
        self.list.push_back(retransmission);
    }

    /// Takes out those for which `test` holds; how many.
    pub fn take(&mut self, mut test: impl FnMut(&Retransmission) -> bool) -> u64 {
        let before = self.list.len();
        self.list.retain(|r| !test(r));
        (before - self.list.len()) as u64
    }

    pub fn release(&mut self) {
        self.list = VecDeque::new();
    }
}
