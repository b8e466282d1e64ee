# SPDX-License-Identifier: Apache-2.0
"""Gentle HighSpeed: RFC 3649's table, the trend test, and the module against the specification."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import ghighspeed, highspeed
from tests.harness.differential import LOSS, RECOVERY, compare
from tests.harness.harness import Flow, Hook, Scenario, run
from tests.harness.scenarios import rough, standard
from tests.kernels.test_spec_creno import PACKET_S, SINGLY
from tests.spec_runs import follows

MODULES = pathlib.Path(__file__).parents[2] / "kernels" / "modules"

# RFC 3649 appendix B, some rows: w, a(w), b(w)
RFC_ROWS = [
    (118, 2, 0.44),
    (221, 3, 0.41),
    (347, 4, 0.38),
    (495, 5, 0.37),
    (663, 6, 0.35),
    (851, 7, 0.34),
    (1058, 8, 0.33),
    (1284, 9, 0.32),
    (1529, 10, 0.31),
]


@pytest.mark.parametrize(("w", "a", "b"), RFC_ROWS)
def test_the_response_is_that_of_rfc_3649(w: int, a: int, b: float) -> None:
    """The RFC prints a(w) cut to whole packets and b(w) rounded to hundredths."""
    assert int(highspeed.RFC3649.a(w)) == a
    assert highspeed.RFC3649.b(w) == pytest.approx(b, abs=0.0101)


def test_the_header_of_the_modules_is_made_from_the_formulas() -> None:
    assert (MODULES / "cc_highspeed.h").read_text() == highspeed.header()


@given(w=st.integers(1, 10**6), response=st.sampled_from([highspeed.THESIS, highspeed.RFC3649]))
def test_growth_and_reduction_stay_in_their_ranges(w: int, response: highspeed.Response) -> None:
    assert 1 <= response.a(w) < 80
    assert 0.1 <= response.b(w) + 1e-12 <= 0.5 + 1e-9
    assert response.a(w) <= response.a(w + 1) + 1e-9
    assert response.b(w) >= response.b(w + 1)


@pytest.mark.parametrize(("level", "df", "t"), [(0.01, 30, 2.457), (0.05, 30, 1.697), (0.1, 14, 1.345)])
def test_critical_values_are_those_of_the_tables(level: float, df: int, t: float) -> None:
    assert ghighspeed.t_critical(level, df) == pytest.approx(t, rel=2e-3)


def test_without_a_trend_the_test_errs_as_often_as_its_level_says() -> None:
    """2000 tests of noise: 1 % each way would be 20; five standard deviations are 22."""
    noise = random.Random(1)
    results = [ghighspeed.trend([(i, noise.gauss(0.1, 0.01)) for i in range(32)], 0.01) for _ in range(2000)]
    assert results.count(1) < 42
    assert results.count(-1) < 42
    assert results.count(1) + results.count(-1) > 10


@settings(max_examples=50)
@given(slope=st.floats(1e-4, 1.0), seed=st.integers(0, 99))
def test_a_clear_trend_is_found_in_both_directions(slope: float, seed: int) -> None:
    noise = random.Random(seed)
    points = [(i, 0.1 + slope * i + noise.gauss(0, slope)) for i in range(32)]
    assert ghighspeed.trend(points, 0.01) == 1
    assert ghighspeed.trend([(t, -d) for t, d in points], 0.01) == -1


def test_the_initial_slow_start_ends_at_a_quarter_with_ssthresh_at_half() -> None:
    spec = ghighspeed.GentleHighSpeed(100.0)
    spec.on_loss(1.0)
    assert spec.ssthresh == 25
    spec.on_recovered(0, 0)
    assert (spec.cwnd, spec.ssthresh) == (25, 50)
    spec.on_loss(2.0)
    assert spec.ssthresh == 13  # b(25) = 1/2, w <= W_low


def reference(hook: Hook) -> ghighspeed.GentleHighSpeed:
    return ghighspeed.GentleHighSpeed(float(hook.cwnd), gentle=bool(hook.count))


def flow(seconds: float) -> tuple[Flow, ...]:
    return (Flow("ghighspeed", phases=((seconds, None),)),)


M = ("ghighspeed",)
SCENARIOS = {
    "slow start, both modes, congestion loss": Scenario(flow(60), M, seconds=60, buffer_packets=300, rate_mbit=50),
    "random loss": Scenario(flow(30), M, seconds=30, loss_percent=0.05),
    "heavy random loss": Scenario(flow(30), M, seconds=30, loss_percent=2),
    "timeout": Scenario(flow(20), M, seconds=20, blackouts=((4, 2), (12, 1))),
    "longer path": Scenario(
        flow(20),
        M,
        seconds=20,
        changes=((8, "tc -n wir qdisc change dev wir-rtr root netem delay 70ms limit 1000000"),),
    ),
    "application-limited": Scenario(
        (Flow("ghighspeed", phases=((3, None), (4, 2e5), (3, 0), (5, None))),), M, seconds=15
    ),
    "NewReno recovery": Scenario(flow(30), M, seconds=30, sack=False, loss_percent=0.3),
    "slow interface": Scenario(flow(10), M, seconds=10, sender_mbit=40),
}


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """One packet, or 0.5 %: a(w) comes from a table within 0.4 % and adds up between losses."""
    follows(kernel, SCENARIOS | rough("ghighspeed"), reference, 1, 0.005)


def test_a_sample_of_a_packet_that_was_overtaken_is_no_point_far_away(kernel: GuestKernel) -> None:
    """So many packets overtake others that some test of the trend begins with one: samples of those sent before it come after it."""
    situation = rough("ghighspeed")["reordering, undone"]
    often = dataclasses.replace(situation, flows=flow(12), seconds=12, reorder_percent=30, buffer_packets=400)
    hooks = list(run(kernel, often).flow())
    samples = [h for h in hooks if h.hook == "P" and h.rtt_us > 0]
    left_us = [h.now_us - h.rtt_us for h in samples]
    assert sum(later < before for before, later in itertools.pairwise(left_us)) > 100
    assert compare(hooks, reference, 1, 0.005).mismatches == []


def test_highspeed_of_the_thesis_follows_the_specification(kernel: GuestKernel) -> None:
    follows(kernel, standard("hstcp", "ghighspeed") | rough("hstcp", "ghighspeed"), reference, 1, 0.005)


def test_what_a_loss_in_reno_mode_costs_is_a_parameter(kernel: GuestKernel) -> None:
    """A queue that fills slowly is noticed before it overflows; at windows above W_low b(w) is less than a half."""
    scenario = Scenario(
        flow(30), M, {"ghighspeed": {"reno_loss": 1}}, seconds=30, rate_mbit=10, delay_ms=30, buffer_packets=60
    )
    hooks = list(run(kernel, scenario).flow())

    def halving(hook: Hook) -> ghighspeed.GentleHighSpeed:
        return ghighspeed.GentleHighSpeed(float(hook.cwnd), halve_in_reno_mode=True)

    assert compare(hooks, halving, 1, 0.005).mismatches == []
    assert [h for h in hooks if h.hook == "L" and h.state <= 1 and h.count == (h.cwnd + 1) // 2 and h.cwnd > 60]
    assert compare(hooks, reference, 1, 0.005).mismatches


def test_highspeeds_growth_and_reduction_are_those_that_rfc_3649_prints(kernel: GuestKernel) -> None:
    """a(w) from how many packets are ACKed while the window goes from w - 10 to w + 10, b(w) from each loss."""
    base = standard("hstcp", "ghighspeed")["single losses"]
    hooks = list(run(kernel, dataclasses.replace(base, params={"ghighspeed": {"w_low": 38}})).flow())
    reached = [(a, got) for w, a, _ in RFC_ROWS if (got := growth(hooks, w)) is not None]
    assert len(reached) >= 2
    for a, got in reached:
        assert got == pytest.approx(a, rel=0.03)
    losses = [h for h in hooks if h.hook == "L" and h.state <= 1 and RFC_ROWS[0][0] <= h.cwnd <= RFC_ROWS[-1][0]]
    assert losses
    for h in losses:
        above = next(row for row in RFC_ROWS if row[0] >= h.cwnd)
        below = [row for row in RFC_ROWS if row[0] <= h.cwnd][-1]
        assert above[2] - 0.01 <= 1 - h.count / h.cwnd <= below[2] + 0.01


def growth(hooks: list[Hook], w: int) -> float | None:
    """Packets per round at w, or None where no stretch of congestion avoidance leads through it."""
    acked, inside = 0, False
    for h in hooks:
        if h.hook == "L":
            inside = False
        elif h.hook == "A" and h.cwnd > h.ssthresh:
            if inside:
                acked += h.count
                if h.cwnd >= w + 10:
                    return 20 * w / acked
            elif h.cwnd == w - 10:
                acked, inside = 0, True
    return None


def test_the_initial_slow_start_ends_at_a_quarter_of_its_window_and_half_follows(kernel: GuestKernel) -> None:
    """Tokuda 2003 section 5.1.1: cwnd W / 4 and ssthresh W / 2, W being the window of the first duplicate ACKs."""
    hooks = list(run(kernel, rough("ghighspeed")["ECN"]).flow())
    first = next(i for i, h in enumerate(hooks) if h.hook == "L")
    assert hooks[first].ssthresh > 10**6
    over = next(h for h in hooks[first:] if h.hook == "E")
    assert (over.cwnd, over.ssthresh) == (hooks[first].cwnd // 4, hooks[first].cwnd // 2)


def test_with_classic_recovery_highspeed_pays_for_three_losses_with_a_timeout(kernel: GuestKernel) -> None:
    """Tokuda 2003 section 4.2: w (1 - b(w)) twice, half of that for ssthresh, and a window of one packet."""
    scenario = Scenario(
        (Flow("hstcp", phases=((14, None),)),),
        M,
        {"ghighspeed": {"classic": 1}},
        seconds=14,
        rate_mbit=5,
        buffer_packets=100,
        blackouts=((8.0, 3 * PACKET_S),),
        changes=((-0.5, SINGLY),),
    )
    result = run(kernel, scenario)
    hooks = [h for h in result.flow() if h.now_us > result.start_us + 8e6]
    first = next(i for i, h in enumerate(hooks) if h.hook == "L")
    w, end = hooks[first].cwnd, hooks[first].nxt
    window = [h for h in hooks[first:] if (h.una - end) % 2**32 >= 2**31]
    assert sum(h.hook == "S" and h.count == RECOVERY for h in window) == 2
    (timeout,) = [h for h in window if h.hook == "S" and h.count == LOSS]
    assert (timeout.cwnd, timeout.in_flight) == (1, 0)
    once = w * (1 - highspeed.THESIS.b(w))
    twice = once * (1 - highspeed.THESIS.b(once))
    assert window[-1].ssthresh == pytest.approx(twice / 2, rel=0.02, abs=2)


def test_slow_start_ends_where_the_senders_own_interface_is_the_slowest(kernel: GuestKernel) -> None:
    """The first packet of a window is ACKed before the window has been sent."""
    result = run(kernel, SCENARIOS["slow interface"])
    assert [h for h in result.flow() if h.hook == "A" and h.ssthresh < 10**6]
    assert compare(result.flow(), reference, 1, 0.005).losses == 0


def test_rfc_3649_and_limited_slow_start_are_parameters(kernel: GuestKernel) -> None:
    scenario = Scenario(flow(10), M, seconds=10, params={"ghighspeed": {"w_low": 38, "max_ssthresh": 50}})
    result = run(kernel, scenario)

    def rfc(hook: Hook) -> ghighspeed.GentleHighSpeed:
        response = dataclasses.replace(highspeed.RFC3649)
        return ghighspeed.GentleHighSpeed(float(hook.cwnd), response=response, max_ssthresh=50)

    assert compare(result.flow(), rfc, 1, 0.005).mismatches == []
