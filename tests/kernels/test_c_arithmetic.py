# SPDX-License-Identifier: Apache-2.0
"""The modules' integers at the bounds that their comments state, against exact arithmetic."""

from __future__ import annotations

import ctypes
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernels.reference import group
from tests.kernels.c_arithmetic import library

FILTER = """
s64 rate(u32 packets, u32 dt_us) { return astart_rate(packets, dt_us); }
s64 moved(s64 estimate, s64 last, s64 sample, u32 dt_us, u32 tau_us)
{
	struct astart_filter filter = { .estimate = estimate, .sample = last };

	astart_filter_add(&filter, sample, dt_us, tau_us);
	return filter.estimate;
}
u32 window(s64 estimate, u32 rtt_us)
{
	struct astart_filter filter = { .estimate = estimate };

	return astart_window(&filter, rtt_us);
}
u32 raised(s64 estimate, u32 rtt_us, u32 ssthresh)
{
	struct astart_filter filter = { .estimate = estimate };

	return astart_raised(&filter, rtt_us, ssthresh);
}
"""
DROPS = """
void add(struct cc_drops *drops, u64 now_us) { cc_drops_add(drops, now_us); }
u32 room(struct cc_drops *shared, struct cc_drops *oldest, struct cc_drops *next, u64 now_us, u32 rtt_us)
{
	return cc_drops_room(shared, oldest, next, now_us, rtt_us);
}
"""
MOST_RATE = (2**24 * 10**6) << 16
rates = st.integers(0, MOST_RATE)


class Drops(ctypes.Structure):
    _fields_ = (("last_us", ctypes.c_uint64), ("gap_us", ctypes.c_uint32))


@pytest.fixture(scope="module")
def astart(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    built = library(tmp_path_factory.mktemp("astart"), "cc_astart.h", FILTER)
    built.rate.restype = built.moved.restype = ctypes.c_int64
    built.moved.argtypes = [ctypes.c_int64] * 3 + [ctypes.c_uint32] * 2
    built.window.argtypes, built.window.restype = [ctypes.c_int64, ctypes.c_uint32], ctypes.c_uint32
    built.raised.argtypes, built.raised.restype = [ctypes.c_int64, ctypes.c_uint32, ctypes.c_uint32], ctypes.c_uint32
    return built


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    built = library(tmp_path_factory.mktemp("drops"), "cc_drops.h", DROPS)
    built.add.argtypes = [ctypes.POINTER(Drops), ctypes.c_uint64]
    built.room.argtypes = [ctypes.POINTER(Drops)] * 3 + [ctypes.c_uint64, ctypes.c_uint32]
    built.room.restype = ctypes.c_uint32
    return built


@given(estimate=rates, last=rates, sample=rates, dt=st.integers(1, 2**32 - 1), tau_ms=st.integers(10, 100_000))
@example(
    estimate=0, last=0, sample=64 * 10**6 << 16, dt=4_300_000, tau_ms=10
)  # 64 packets in 1 us, then a long silence
def test_westwoods_filter_is_its_equation_at_any_rate_and_after_any_silence(
    astart: ctypes.CDLL, estimate: int, last: int, sample: int, dt: int, tau_ms: int
) -> None:
    """e = a e + (1 - a) (b + b_last) / 2 with a = (2 tau - dt) / (2 tau + dt), Yu 2009 page 98; dt is cut at 2^24 us."""
    cut, tau = min(dt, 2**24 - 1), tau_ms * 1000
    a = Fraction(2 * tau - cut, 2 * tau + cut)
    exact = a * estimate + (1 - a) * Fraction(last + sample, 2)
    assert abs(astart.moved(estimate, last, sample, dt, tau_ms * 1000) - exact) <= 2


@given(packets=st.integers(0, 2**32 - 1), dt=st.integers(1, 2**24 - 1))
def test_rates_stay_below_their_bound(astart: ctypes.CDLL, packets: int, dt: int) -> None:
    assert astart.rate(packets, dt) == (min(packets, 2**24) * 10**6 << 16) // dt <= MOST_RATE


@given(estimate=st.integers(-(2**61), MOST_RATE), rtt=st.integers(0, 2**24 - 1))
def test_the_window_of_an_estimate_is_whole_packets_and_never_wraps(
    astart: ctypes.CDLL, estimate: int, rtt: int
) -> None:
    assert astart.window(estimate, rtt) == min(max(estimate, 0) * rtt // 10**6 >> 16, 2**31 - 1)


@given(estimate=st.integers(-(2**61), MOST_RATE), rtt=st.integers(0, 2**24 - 1), ssthresh=st.integers(2, 2**31 - 1))
@example(estimate=2**38 - 1, rtt=2**24 - 1, ssthresh=2**27 - 1)
@example(estimate=2**38, rtt=2**24 - 1, ssthresh=2)
@example(estimate=10**6 << 16, rtt=100, ssthresh=99)  # exactly 100 packets
@example(estimate=(10**6 << 16) - 1, rtt=100, ssthresh=99)
def test_the_threshold_rises_to_the_window_and_never_falls(
    astart: ctypes.CDLL, estimate: int, rtt: int, ssthresh: int
) -> None:
    assert astart.raised(estimate, rtt, ssthresh) == max(ssthresh, astart.window(estimate, rtt))


@given(st.integers(0, 40), st.integers(0, 24), st.integers(2, 2**20))
def test_the_threshold_is_exact_where_one_packet_decides(
    astart: ctypes.CDLL, rate_bits: int, rtt_bits: int, ssthresh: int
) -> None:
    for estimate in (2**rate_bits - 1, 2**rate_bits):
        for rtt in (max(1, 2**rtt_bits - 1), min(2**rtt_bits, 2**24 - 1)):
            exact = estimate * rtt // 10**6 >> 16
            for at in {max(2, exact - 1), max(2, exact), ssthresh}:
                assert astart.raised(estimate, rtt, min(at, 2**31 - 1)) == max(
                    min(at, 2**31 - 1), min(exact, 2**31 - 1)
                )


@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=50))
@example([10_000_000, 10_000_000, 9_999_999])  # two CPUs: the later stamp enters first
def test_drops_of_two_cpus_that_enter_out_of_order_are_no_gap_of_half_an_hour(
    drops: ctypes.CDLL, times: list[int]
) -> None:
    seen, spec = Drops(), group.Gap()
    latest = 0
    for now_us in times:
        drops.add(seen, now_us)
        latest = max(latest, now_us)
        spec.drop(latest / 1e6)
        assert seen.last_us == latest
    assert seen.gap_us <= max(times) + 1
    assert seen.gap_us == pytest.approx((spec.mean_s or 0) * 1e6, abs=10)


def test_the_room_of_miss_in_both_readings(drops: ctypes.CDLL) -> None:
    """Two connections that drop in turn every 4 s, 1 s after the last drop, R = 0.1 s: m = 2, and 2 (2 - 1) / 0.1 = 20 packets
    until the path's next drop, 2 (4 - 1) / 0.1 = 60 until the oldest connection's (Yu 2009 pages 27 and 28)."""
    shared, oldest = Drops(76_000_000, 2_000_000), Drops(76_000_000, 4_000_000)
    assert drops.room(shared, oldest, shared, 77_000_000, 100_000) == 20
    assert drops.room(shared, oldest, oldest, 77_000_000, 100_000) == 60
    assert drops.room(shared, oldest, shared, 78_000_001, 100_000) == 0, "overdue"
    assert drops.room(shared, oldest, shared, 75_999_999, 100_000) == 40, "the stamp of a CPU that is behind"
