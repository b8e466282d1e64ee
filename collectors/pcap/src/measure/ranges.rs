// SPDX-License-Identifier: Apache-2.0
//! Sets of bytes in sequence space as sorted, disjoint ranges, bounded in number: what SACK reported, what is missing.
#![forbid(unsafe_code)]

/// More separate holes in one window than any receiver reports; further ranges are left out and counted by the caller.
const MAX_RANGES: usize = 1024;

#[derive(Debug, Default)]
pub struct Ranges {
    list: Vec<(i64, i64)>,
    total: i64,
}

impl Ranges {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Bytes in the set.
    pub fn total(&self) -> i64 {
        self.total
    }

    pub fn end(&self) -> Option<i64> {
        self.list.last().map(|r| r.1)
    }

    pub fn clear(&mut self) {
        self.list.clear();
        self.total = 0;
    }

    pub fn contains(&self, at: i64) -> bool {
        let after = self.list.partition_point(|r| r.0 <= at);
        after.checked_sub(1).and_then(|i| self.list.get(i)).is_some_and(|r| at < r.1)
    }

    /// Adds a range; how many of its bytes were new.
    pub fn insert(&mut self, start: i64, end: i64) -> i64 {
        if start >= end {
            return 0;
        }
        let first = self.list.partition_point(|r| r.1 < start);
        let last = self.list.partition_point(|r| r.0 <= end);
        let before = self.total;
        if first == last {
            if self.list.len() >= MAX_RANGES {
                return 0;
            }
            self.list.insert(first, (start, end));
            self.total += end - start;
            return end - start;
        }
        let mut merged = (start, end);
        for range in self.list.drain(first..last) {
            merged = (merged.0.min(range.0), merged.1.max(range.1));
            self.total -= range.1 - range.0;
        }
        self.total += merged.1 - merged.0;
        self.list.insert(first, merged);
        self.total - before
    }

    /// Forgets everything below `at`; how many bytes that were.
    pub fn remove_below(&mut self, at: i64) -> i64 {
        let gone = self.list.partition_point(|r| r.1 <= at);
        let mut removed: i64 = self.list.drain(..gone).map(|r| r.1 - r.0).sum();
        if let Some(first) = self.list.first_mut().filter(|r| r.0 < at) {
            removed += at - first.0;
            first.0 = at;
        }
        self.total -= removed;
        removed
    }
}

/// Bytes skipped over by a packet that came early, and what is known of that packet.
#[derive(Clone, Copy, Debug)]
pub struct Hole {
    pub start: i64,
    pub end: i64,
    pub since_ns: i64,
    /// TSval of the packet that skipped it.
    pub tsval: Option<u32>,
}

const MAX_HOLES: usize = 1024;

/// Holes in ascending order.
#[derive(Debug, Default)]
pub struct Holes {
    list: Vec<Hole>,
}

impl Holes {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A hole above all others.
    pub fn push(&mut self, hole: Hole) {
        if self.list.len() >= MAX_HOLES {
            self.list.remove(0);
        }
        self.list.push(hole);
    }

    /// Fills a range; how many bytes were missing and the oldest hole touched.
    pub fn fill(&mut self, start: i64, end: i64) -> (i64, Option<Hole>) {
        let mut bytes = 0;
        let mut oldest: Option<Hole> = None;
        let mut at = self.list.partition_point(|h| h.end <= start);
        while let Some(hole) = self.list.get(at).copied().filter(|h| h.start < end) {
            bytes += hole.end.min(end) - hole.start.max(start);
            oldest = oldest.or(Some(hole));
            let (left, right) = (Hole { end: start, ..hole }, Hole { start: end, ..hole });
            match (left.start < left.end, right.start < right.end) {
                (false, false) => {
                    self.list.remove(at);
                }
                (true, false) => {
                    self.replace(at, left);
                    at += 1;
                }
                (false, true) => {
                    self.replace(at, right);
                    break;
                }
                (true, true) => {
                    self.replace(at, left);
                    if self.list.len() < MAX_HOLES {
                        self.list.insert(at + 1, right);
                    }
                    break;
                }
            }
        }
        (bytes, oldest)
    }

    fn replace(&mut self, at: usize, hole: Hole) {
        if let Some(place) = self.list.get_mut(at) {
            *place = hole;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserting_counts_only_new_bytes() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.insert(10, 20), 10);
        assert_eq!(ranges.insert(30, 40), 10);
        assert_eq!(ranges.insert(15, 35), 10);
        assert_eq!((ranges.total(), ranges.end()), (30, Some(40)));
        assert!(ranges.contains(25) && !ranges.contains(40) && !ranges.contains(9));
        assert_eq!(ranges.remove_below(25), 15);
        assert_eq!(ranges.total(), 15);
    }

    #[test]
    fn filling_splits_a_hole() {
        let mut holes = Holes::default();
        holes.push(Hole { start: 0, end: 100, since_ns: 7, tsval: None });
        let (bytes, hole) = holes.fill(40, 60);
        assert_eq!((bytes, hole.map(|h| h.since_ns)), (20, Some(7)));
        assert_eq!(holes.fill(0, 100).0, 80);
        assert!(holes.is_empty());
    }
}
