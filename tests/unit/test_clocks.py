# SPDX-License-Identifier: Apache-2.0
"""Clocks of two captures: offset and drift are found, their uncertainty holds, and records come out as if there were one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import wire
from collectors.clock import Estimate, compose, estimate
from collectors.clocks import inverse
from collectors.pcap import THE_SAME, Clock
from collectors.two_points import clock_between
from tests.pcap_craft import Conversation, pcap
from tests.unit.test_collectors import START_NS, at_receiver, connections, plan, raw

pytestmark = pytest.mark.real_host
EPOCH_NS = 1_700_000_000_000_000_000
PACKETS, SPAN_S = 4000, 60.0

Integers = npt.NDArray[np.int64]


def path(seed: int, offset_ns: float, drift_ppm: float, there_ns: float, back_ns: float, queue_ns: float) -> Estimate:
    """Packets both ways with a smallest delay each and a queue of exponential length; B's clock is ahead by a line."""
    random = np.random.default_rng(seed)
    sent_s = np.sort(random.uniform(0, SPAN_S, PACKETS))
    a_to_b = random.random(PACKETS) < 0.5
    delay = np.where(a_to_b, there_ns, back_ns) + random.exponential(queue_ns + 1, PACKETS)
    ahead = offset_ns + drift_ppm * 1e3 * sent_s
    measured = delay + np.where(a_to_b, ahead, -ahead)
    # times are those of the first point that the packet passed, by that point's clock
    time_ns = EPOCH_NS + np.rint(sent_s * 1e9).astype(np.int64)
    estimated = estimate(time_ns, np.rint(measured).astype(np.int64), a_to_b, THE_SAME)
    assert estimated is not None
    return estimated


def error_ns(estimated: Estimate, offset_ns: float, drift_ppm: float, at_s: float) -> float:
    """What is left of B's clock at a time after the correction."""
    shown = EPOCH_NS + at_s * 1e9
    taken_off = estimated.clock.offset_ns + (shown - estimated.clock.reference_ns) * estimated.clock.drift_ppm / 1e6
    return offset_ns + drift_ppm * 1e3 * at_s - taken_off


@given(st.integers(0, 2**32), st.floats(-3e9, 3e9), st.floats(-300, 300), st.floats(1e4, 3e8), st.floats(0, 2e6))
def test_equal_smallest_delays_give_the_clock_within_its_uncertainty(
    seed: int, offset_ns: float, drift_ppm: float, delay_ns: float, queue_ns: float
) -> None:
    clock = path(seed, offset_ns, drift_ppm, delay_ns, delay_ns, queue_ns)
    # the smallest of some hundred queues in each part of the time is what is left to be wrong by
    allowed_ns = 4 * clock.offset_uncertainty_us * 1e3 + queue_ns / 20 + 1000
    for at_s in (0.0, SPAN_S / 2, SPAN_S):
        slope_ns = 4 * clock.drift_uncertainty_ppm * 1e3 * at_s
        assert abs(error_ns(clock, offset_ns, drift_ppm, at_s)) <= allowed_ns + slope_ns
    assert abs(clock.clock.drift_ppm - drift_ppm) <= 4 * clock.drift_uncertainty_ppm + queue_ns / 1e6 + 1e-3
    assert clock.unsteady_us * 1e3 <= queue_ns + 1000


@given(
    st.integers(0, 2**32),
    st.floats(-3e9, 3e9),
    st.floats(-300, 300),
    st.floats(1e4, 3e8),
    st.floats(1e4, 3e8),
    st.floats(0, 1e8),
)
def test_the_bound_holds_whatever_the_delays_are(
    seed: int, offset_ns: float, drift_ppm: float, there_ns: float, back_ns: float, queue_ns: float
) -> None:
    clock = path(seed, offset_ns, drift_ppm, there_ns, back_ns, queue_ns)
    for at_s in (0.1, SPAN_S / 2, SPAN_S - 0.1):
        assert abs(error_ns(clock, offset_ns, drift_ppm, at_s)) <= clock.offset_bound_us * 1e3 * 1.01 + 1000


def test_a_clock_that_was_stepped_shows_as_unsteady() -> None:
    random = np.random.default_rng(1)
    sent_s = np.sort(random.uniform(0, SPAN_S, PACKETS))
    a_to_b = random.random(PACKETS) < 0.5
    ahead = np.where(sent_s > SPAN_S / 2, 20e6, 0.0)
    measured = 30e6 + random.exponential(1e5, PACKETS) + np.where(a_to_b, ahead, -ahead)
    time_ns = EPOCH_NS + np.rint(sent_s * 1e9).astype(np.int64)
    estimated = estimate(time_ns, measured.astype(np.int64), a_to_b, THE_SAME)
    assert estimated is not None and estimated.unsteady_us > 2000


def test_packets_of_one_way_only_say_nothing() -> None:
    time_ns = EPOCH_NS + np.arange(100)
    assert estimate(time_ns, np.full(100, 5), np.ones(100, dtype=np.bool_), THE_SAME) is None


@given(st.integers(-(10**12), 10**12), st.floats(-300, 300), st.integers(0, 10**11))
def test_a_clock_and_its_inverse_cancel(offset_ns: int, drift_ppm: float, later_ns: int) -> None:
    clock = Clock(EPOCH_NS, offset_ns, drift_ppm)
    both = compose(clock, inverse(clock))
    time = EPOCH_NS + later_ns
    left = both.offset_ns + (time - both.reference_ns) * both.drift_ppm / 1e6
    assert abs(left) <= abs(offset_ns) * 3e-4 + 2


OFFSET_NS, DRIFT_PPM = 3_600_000_000_000, 40.0


def skewed(frames: list[tuple[int, bytes, int]]) -> list[tuple[int, bytes, int]]:
    """The same packets by a clock that is an hour ahead and fast."""
    return [(t + OFFSET_NS + round(t * DRIFT_PPM / 1e6), frame, length) for t, frame, length in frames]


def test_the_receivers_clock_does_not_show_in_the_records(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    raw(one, lost=1)
    raw(other, lost=1)
    (other / "d1-eth0.pcap").write_bytes(pcap(skewed(at_receiver(connections(1), 1))))
    expected = wire.read(one, plan(), START_NS, [])
    wire_records = wire.read(other, plan(), START_NS, [], {"d1": "elsewhere"})
    delivered = [np.cumsum(one.intervals["delivered_bytes"]) for one in (wire_records, expected)]
    # the retransmission arrives right where an interval ends: a nanosecond decides in which one it counts
    assert delivered[0][-1] == delivered[1][-1] == 6000 and np.abs(delivered[0] - delivered[1]).max() <= 1000
    assert wire_records.flows["goodput_mbps"] == pytest.approx(expected.flows["goodput_mbps"], rel=1e-3)
    (row,) = wire_records.clocks.report()
    assert (row["clock"], row["against"]) == ("elsewhere", "run")
    assert row["offset_us"] == pytest.approx(OFFSET_NS / 1e3, abs=row["offset_uncertainty_us"] * 2 + 10)
    assert row["offset_bound_us"] < 10_100, "half a round trip"


def test_a_clock_that_no_flow_ties_to_the_runs_is_reported(tmp_path: Path) -> None:
    wire_records = wire.read(raw(tmp_path), plan(), START_NS, [], {"r1": "elsewhere"})
    assert wire_records.clocks.report() == [{"clock": "elsewhere", "against": None}]


def test_captures_without_a_common_handshake_give_no_clock(tmp_path: Path) -> None:
    for name, isn in (("a", 1), ("b", 2)):
        c = Conversation(client_isn=isn)
        c.open()
        c.data(30, 0)
        (tmp_path / name).write_bytes(pcap(c.sorted()))
    assert clock_between(tmp_path / "a", tmp_path / "b") is None
