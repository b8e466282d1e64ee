# SPDX-License-Identifier: Apache-2.0
"""TTFWC and TFWC: the equation, the history, and the module against the specification."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import ttfwc
from kernels.reference.base import Ack
from tests.harness.differential import compare
from tests.harness.harness import Flow, Hook, Scenario, run
from tests.harness.scenarios import rough, standard
from tests.spec_runs import follows


def test_the_equation_is_that_of_the_paper() -> None:
    """p = 0.01: sqrt(0.00667) = 0.08165, 12 sqrt(0.00375) 0.01 (1.0032) = 0.00737; 1 / 0.08902 = 11.23."""
    assert ttfwc.equation(0.01) == pytest.approx(11.233, abs=0.001)
    assert ttfwc.equation(1e-6) == pytest.approx(math.sqrt(1.5e6), rel=1e-4)


@given(st.integers(3, 4000))
def test_the_inverse_inverts(cwnd: int) -> None:
    interval = ttfwc.inverse(cwnd)
    assert ttfwc.equation(1 / interval) >= cwnd
    assert ttfwc.equation(1 / (interval - 1)) < cwnd


@pytest.mark.parametrize(("n", "acks"), [(16, 5.3), (8, 2.8)])
@given(intervals=st.lists(st.integers(1, 10**6), min_size=16, max_size=16), x=st.integers(1, 10**6))
def test_the_exact_average_rises_by_one_in_as_many_acks_as_the_thesis_says(
    n: int, acks: float, intervals: list[int], x: int
) -> None:
    """Kato 2012 section 4.1: 5.3 ACKs with 16 intervals and 2.8 with 8."""
    weights = ttfwc.weights(n)
    rise = ttfwc.average([x + 1, *intervals], weights) - ttfwc.average([x, *intervals], weights)
    assert 1 / rise == pytest.approx(acks, rel=1e-4)


def test_rfc_5348_has_other_weights() -> None:
    assert ttfwc.weights(8, rfc5348=True) == pytest.approx([1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2])
    assert math.fsum(ttfwc.weights(16, rfc5348=True)) == pytest.approx(12)


@pytest.mark.parametrize(
    ("n", "rfc5348", "share"), [(16, False, 0.101), (8, False, 0.202), (16, True, 0.043), (8, True, 0.089)]
)
def test_what_one_very_short_interval_costs(n: int, rfc5348: bool, share: float) -> None:
    """1 - sqrt(1 - 1 / 5.3) = 0.099 and 1 - sqrt(1 - 1 / 2.8) = 0.198 for long intervals; here they are 1000 packets."""
    weights = ttfwc.weights(n, rfc5348=rfc5348)
    after = ttfwc.equation(1 / ttfwc.average([1, *[1000] * 15], weights))
    assert 1 - after / ttfwc.equation(1 / 1000) == pytest.approx(share, abs=0.001)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=16), st.sampled_from([8, 16]), st.booleans())
def test_the_average_lies_within_the_intervals(intervals: list[float], n: int, rfc5348: bool) -> None:
    mean = ttfwc.average(intervals, ttfwc.weights(n, rfc5348=rfc5348))
    assert min(intervals) - 1e-6 <= mean <= max(intervals) + 1e-6


@given(st.lists(st.integers(20, 10**5), min_size=1, max_size=20), st.sampled_from([0.0, 0.4, 0.9]))
def test_the_window_is_flat_until_the_open_interval_raises_the_average(losses: list[int], tp: float) -> None:
    spec = ttfwc.Ttfwc(50.0, tp=tp, exact=True)
    delivered = 0
    for interval in losses:
        delivered += interval
        spec.on_delivered(delivered)
        spec.on_loss(0.0)
        spec.on_recovered(delivered, 0)
    with_open = ttfwc.average([spec.flat, *spec.history], spec.weights)
    assert with_open <= spec.ali * (1 + 1e-9)
    assert ttfwc.average([spec.flat + 1, *spec.history], spec.weights) >= spec.ali * (1 - 1e-9)
    if not spec.reno_mode and spec.flat > 1:
        before = spec.cwnd
        spec.on_ack(Ack(1, 1.0, 0.1, delivered + spec.flat, 0))
        assert spec.cwnd == before


def test_tuning_adds_its_share_of_delta() -> None:
    """tp = 0.9 adds 0.9 delta, tp = 0.4 only 0.16 delta, tp = 0 nothing."""
    grown = {}
    for tp in (0.0, 0.4, 0.9):
        spec = ttfwc.Ttfwc(100.0, tp=tp, exact=True)
        delivered = 0
        for interval in (2000,) * 17 + (1700,):
            delivered += interval
            spec.on_delivered(delivered)
            spec.on_loss(0.0)
            spec.on_recovered(delivered, 0)
        spec.tuning = ttfwc.Tuning(tunable=True)
        flat = spec.flat
        for i in range(1, flat + 2):
            spec.on_ack(Ack(1, 1.0, 0.1, delivered + i, 0))
        grown[tp] = (spec.tuning.extra, spec.tuning.reno_cwnd - spec.ssthresh)
    assert grown[0.0][0] == 0
    assert grown[0.4][0] == math.floor(0.16 * grown[0.4][1])
    assert grown[0.9][0] == math.floor(0.9 * grown[0.9][1])
    assert grown[0.9][0] > 0


@pytest.mark.parametrize(("tp", "total"), [(0.4, 5.3), (0.9, 2.8)])
@given(last=st.integers(1, 5000), before=st.integers(20, 200))
def test_equation_3_1_as_it_stands(tp: float, total: float, last: int, before: int) -> None:
    """Kato 2012 eq 3.1: the lost share of the window is below 1 / (sum of the weights); a window that rose has lost less than nothing."""
    spec = ttfwc.Ttfwc(50.0, tp=tp, exact=True, rises=True, ratio={0.4: 81, 0.9: 64}[tp])
    delivered = 0
    for interval in (2000,) * 17:
        delivered += interval
        spec.on_delivered(delivered)
        spec.on_loss(0.0)
        spec.on_recovered(delivered, 0)
    spec.cwnd = float(before)
    spec.on_delivered(delivered + last)
    spec.on_loss(0.0)
    lost = 1 - spec.ssthresh / before
    if abs(lost - 1 / total) > 0.01:  # the percents of the parameter are whole
        assert spec.tuning.tunable is (lost < 1 / total)


@pytest.mark.parametrize(("rises", "passes"), [(False, False), (True, True)])
def test_a_loss_after_a_long_interval_passes_by_the_equation_and_not_by_the_listing(rises: bool, passes: bool) -> None:
    """With 1000 packets between losses and then 1500 the window rises, by Kato 2012 eq 2.1 from sqrt(1.5 * 1000) = 38.7 on."""
    spec = ttfwc.Ttfwc(50.0, tp=0.9, exact=True, rises=rises)
    delivered = 0
    for interval in (1000,) * 17:
        delivered += interval
        spec.on_delivered(delivered)
        spec.on_loss(0.0)
        spec.on_recovered(delivered, 0)
    before = spec.window
    for i in range(1, 1501):
        spec.on_ack(Ack(1, 1.0, 0.1, delivered + i, 0))
    spec.on_loss(0.0)
    assert spec.ssthresh > before
    assert spec.tuning.tunable is passes


@given(st.lists(st.integers(20, 5000), min_size=1, max_size=20), st.sampled_from([0.0, 0.4, 0.9]), st.integers(1, 3000))
def test_a_loss_that_was_none_leaves_everything_as_it_was(losses: list[int], tp: float, more: int) -> None:
    spec = ttfwc.Ttfwc(100.0, tp=tp, exact=True)
    delivered = 0
    for interval in losses:
        delivered += interval
        spec.on_delivered(delivered)
        spec.before_loss(reducing=False)
        spec.on_loss(0.0)
        spec.on_recovered(delivered, 0)
    delivered += more
    spec.on_ack(Ack(1, 1.0, 0.1, delivered, 0))
    before = (spec.history, spec.open, spec.ali, spec.flat, spec.tuning, spec.reno_mode, spec.cwnd, spec.ssthresh)
    spec.before_loss(reducing=False)
    spec.on_loss(2.0)
    spec.on_undo()
    after = (spec.history, spec.open, spec.ali, spec.flat, spec.tuning, spec.reno_mode, spec.cwnd)
    assert after == before[:-1]
    assert spec.ssthresh >= before[-1]


def test_what_is_acked_while_the_window_is_not_used_does_not_count() -> None:
    spec = ttfwc.Ttfwc(20.0)
    spec.on_delivered(500)
    spec.on_loss(0.0)
    spec.on_recovered(500, 0)
    begun = spec.open
    for i in range(1, 10_000):
        spec.on_ack(Ack(1, 1.0, 0.1, 500 + i, 0, limited=False))
    window = spec.window
    spec.on_ack(Ack(1, 1.0, 0.1, 10_500, 0))
    assert spec.open <= begun + 1
    assert spec.window == window


def reference(hook: Hook) -> ttfwc.Ttfwc:
    return ttfwc.Ttfwc(float(hook.cwnd), tp=hook.count / 100)


@pytest.mark.parametrize("cca", ["tfwc", "ttfwc", "ttfwc2"])
def test_the_module_follows_the_specification(kernel: GuestKernel, cca: str) -> None:
    """One packet: the ALI is cut to 1/256 packet and the equation's factors and the weights to 2^-16."""
    follows(kernel, standard(cca, "ttfwc") | rough(cca, "ttfwc"), reference, 1)


def test_rfc_5348s_weights_are_a_parameter(kernel: GuestKernel) -> None:
    scenario = dataclasses.replace(standard("ttfwc2", "ttfwc")["single losses"], params={"ttfwc": {"weights": 1}})
    follows(
        kernel,
        {"single losses": scenario},
        lambda hook: ttfwc.Ttfwc(float(hook.cwnd), tp=hook.count / 100, rfc5348=True),
        1,
    )


@pytest.mark.parametrize(("cca", "ratio"), [("ttfwc", 81), ("ttfwc2", 64)])
def test_what_eq_3_1_asks_is_a_parameter(kernel: GuestKernel, cca: str, ratio: int) -> None:
    params = {"ttfwc": {"rises": 1, "ratio_responsive": 64}}
    scenarios = {
        name: dataclasses.replace(scenario, params=params)
        for name, scenario in (standard(cca, "ttfwc") | rough(cca, "ttfwc")).items()
    }

    def as_it_stands(hook: Hook) -> ttfwc.Ttfwc:
        return ttfwc.Ttfwc(float(hook.cwnd), tp=hook.count / 100, rises=True, ratio=ratio)

    follows(kernel, scenarios, as_it_stands, 1)


RANDOM = Scenario((Flow("ttfwc2", phases=((25, None),)),), ("ttfwc",), {}, 25, 50, 10, loss_percent=0.3, seed=2)


@pytest.mark.parametrize(("rises", "other"), [(0, True), (1, False)])
def test_the_two_readings_of_eq_3_1_differ(kernel: GuestKernel, rises: int, other: bool) -> None:
    scenario = dataclasses.replace(RANDOM, params={"ttfwc": {"rises": rises}})
    hooks = list(run(kernel, scenario).flow())
    own, wrong = (
        compare(hooks, lambda hook, r=r: ttfwc.Ttfwc(float(hook.cwnd), tp=hook.count / 100, rises=r), 1)  # type: ignore[misc]
        for r in (bool(rises), other)
    )
    assert own.mismatches == []
    assert wrong.mismatches


def packets_per_interval_packet(hooks: Iterable[Hook]) -> float:
    """How many packets are delivered while the interval that the window stands for (eq 2.1) rises by one.

    From window to window, in intervals that began with a full history and after Reno's slow start; taken from
    windows and deliveries alone.
    """
    delivered = interval = losses = 0
    last: tuple[int, int] | None = None
    for h in hooks:
        if h.hook == "L":
            losses, last = losses + 1, None
        elif h.hook == "A" and losses > 16 and h.cwnd > h.ssthresh and (last is None or h.cwnd != last[0]):
            if last is not None:
                delivered += h.delivered - last[1]
                interval += ttfwc.inverse(h.cwnd) - ttfwc.inverse(last[0])
            last = (h.cwnd, h.delivered)
    assert interval > 100, interval
    return delivered / interval


@pytest.mark.parametrize(
    ("cca", "params", "acks"),
    [
        ("tfwc", {"step_smooth": 0}, 5.3),
        ("tfwc", {}, 6),
        ("ttfwc2", {"step_responsive": 0, "ratio_responsive": 99}, 2.8),
        ("ttfwc2", {"ratio_responsive": 99}, 3),
        ("tfwc", {"step_smooth": 0, "weights": 1}, 12),
    ],
)
def test_the_window_rises_by_an_average_of_one_in_as_many_acks_as_published(
    kernel: GuestKernel, cca: str, params: dict[str, int], acks: float
) -> None:
    """Kato 2012 section 4.1: 5.3 and 2.8 exactly, 6 and 3 cheaply; RFC 5348's weights have 12.

    A ratio of 99 % switches off what responsive mode adds to the equation's window.
    """
    scenario = Scenario(
        (Flow(cca, phases=((25, None),)),), ("ttfwc",), {"ttfwc": params}, 25, 50, 10, loss_percent=0.3, seed=2
    )
    assert packets_per_interval_packet(run(kernel, scenario).flow()) == pytest.approx(acks, rel=0.03)


def test_three_tunings_run_beside_each_other(kernel: GuestKernel) -> None:
    scenario = dataclasses.replace(
        standard("tfwc", "ttfwc")["single losses"],
        flows=tuple(Flow(c, 40000 + i, 0.1 * i, ((25, None),)) for i, c in enumerate(("tfwc", "ttfwc", "ttfwc2"))),
    )
    result = run(kernel, scenario)
    for port, tp in ((40000, 0), (40001, 40), (40002, 90)):
        assert next(h.count for h in result.flow(port) if h.hook == "I") == tp
        assert compare(result.flow(port), reference, 1).mismatches == []
