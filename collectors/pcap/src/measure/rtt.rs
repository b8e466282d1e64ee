// SPDX-License-Identifier: Apache-2.0
//! RTT statistics in constant memory, and the sender's likely retransmission timeout.
#![forbid(unsafe_code)]

/// Buckets per octave: a quantile is off by at most 1/128 of its value.
const PER_OCTAVE: u32 = 64;
const SHIFT: u32 = PER_OCTAVE.trailing_zeros();
/// RFC 6298 s2.1: before the first sample.
const INITIAL_RTO_NS: i64 = 1_000_000_000;
/// Linux TCP_RTO_MIN, the lower bound of the variance term.
const RTO_MIN_NS: i64 = 200_000_000;

/// An hour: longer is a broken clock, not a path.
const MAX_NS: i64 = 3_600_000_000_000;

#[derive(Debug, Default)]
pub struct Rtt {
    pub samples: u64,
    pub min_ns: i64,
    pub max_ns: i64,
    sum_ns: i128,
    srtt_ns: i64,
    rttvar_ns: i64,
    /// Counts from bucket `first` on; grows to the range that really occurs.
    buckets: Vec<u32>,
    first: u32,
}

fn bucket(ns: i64) -> u32 {
    let ns = ns.max(1) as u64;
    let octave = 63 - ns.leading_zeros();
    let part = if octave >= SHIFT { ns >> (octave - SHIFT) } else { ns << (SHIFT - octave) } as u32 - PER_OCTAVE;
    octave * PER_OCTAVE + part
}

/// The middle of a bucket.
fn value(bucket: u32) -> f64 {
    let (octave, part) = (bucket / PER_OCTAVE, bucket % PER_OCTAVE);
    (f64::from(part) + 0.5 + f64::from(PER_OCTAVE)) / f64::from(PER_OCTAVE) * 2f64.powi(octave as i32)
}

impl Rtt {
    #[inline]
    pub fn add(&mut self, ns: i64) {
        if !(0..=MAX_NS).contains(&ns) {
            return;
        }
        if self.samples == 0 {
            (self.min_ns, self.max_ns) = (ns, ns);
            (self.srtt_ns, self.rttvar_ns) = (ns, ns / 2);
            self.first = bucket(ns);
        } else {
            self.min_ns = self.min_ns.min(ns);
            self.max_ns = self.max_ns.max(ns);
            // RFC 6298 s2.3.
            self.rttvar_ns += ((self.srtt_ns - ns).abs() - self.rttvar_ns) / 4;
            self.srtt_ns += (ns - self.srtt_ns) / 8;
        }
        self.samples += 1;
        self.sum_ns += i128::from(ns);
        let index = bucket(ns);
        if index < self.first {
            let more = (self.first - index) as usize;
            self.buckets.splice(0..0, std::iter::repeat_n(0, more));
            self.first = index;
        }
        let at = (index - self.first) as usize;
        if at >= self.buckets.len() {
            self.buckets.resize(at + 1, 0);
        }
        if let Some(count) = self.buckets.get_mut(at) {
            *count = count.saturating_add(1);
        }
    }

    pub fn mean_ns(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum_ns as f64 / self.samples as f64)
    }

    pub fn srtt_ns(&self) -> Option<i64> {
        (self.samples > 0).then_some(self.srtt_ns)
    }

    /// RFC 6298 with Linux's lower bound.
    pub fn rto_ns(&self) -> i64 {
        if self.samples == 0 { INITIAL_RTO_NS } else { self.srtt_ns + (4 * self.rttvar_ns).max(RTO_MIN_NS) }
    }

    pub fn quantile_ns(&self, part: f64) -> Option<f64> {
        let mut left = (part * self.samples as f64).ceil().max(1.0) as u64;
        for (at, count) in self.buckets.iter().enumerate() {
            let count = u64::from(*count);
            if left <= count {
                return Some(value(self.first + at as u32).clamp(self.min_ns as f64, self.max_ns as f64));
            }
            left -= count;
        }
        (self.samples > 0).then_some(self.max_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_hundredth() {
        let mut rtt = Rtt::default();
        for ms in (1..=1000).rev() {
            rtt.add(ms * 1_000_000);
        }
        assert_eq!((rtt.samples, rtt.min_ns, rtt.max_ns), (1000, 1_000_000, 1_000_000_000));
        let p95 = rtt.quantile_ns(0.95).unwrap_or(0.0);
        assert!((p95 / 950e6 - 1.0).abs() < 0.01, "{p95}");
        assert_eq!(rtt.mean_ns(), Some(500_500_000.0));
    }

    #[test]
    fn extremes_fit() {
        let mut rtt = Rtt::default();
        for ns in [i64::MAX, 0, 1, i64::MIN, MAX_NS] {
            rtt.add(ns);
        }
        assert_eq!((rtt.samples, rtt.min_ns, rtt.max_ns), (3, 0, MAX_NS));
    }
}
