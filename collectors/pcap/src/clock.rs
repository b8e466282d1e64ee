// SPDX-License-Identifier: Apache-2.0
//! The clock of a capture against another host's: an offset and a drift, taken off every time.
#![forbid(unsafe_code)]

/// `time` on this clock is `time - offset_ns - drift_ppb · (time - reference_ns) / 1e9` on the other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clock {
    pub reference_ns: i64,
    pub offset_ns: i64,
    pub drift_ppb: f64,
}

impl Clock {
    #[inline(always)]
    pub fn correct(&self, time_ns: i64) -> i64 {
        if *self == Clock::default() {
            return time_ns;
        }
        let since = time_ns.saturating_sub(self.reference_ns) as f64;
        // Casts of floating point saturate.
        time_ns.saturating_sub(self.offset_ns).saturating_sub((since * self.drift_ppb / 1e9).round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn offset_and_drift_come_off() {
        let clock = Clock { reference_ns: 1_000_000_000, offset_ns: 500, drift_ppb: 20_000.0 };
        assert_eq!(clock.correct(1_000_000_000), 999_999_500);
        assert_eq!(clock.correct(2_000_000_000), 1_999_979_500);
    }

    #[test]
    fn extremes_stay_in_range() {
        let wild = Clock { reference_ns: i64::MIN, offset_ns: i64::MIN, drift_ppb: f64::MAX };
        for time in [i64::MIN, 0, i64::MAX] {
            let _ = wild.correct(time);
        }
        assert_eq!(Clock::default().correct(i64::MAX), i64::MAX);
    }
}
