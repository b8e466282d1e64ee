# SPDX-License-Identifier: Apache-2.0
"""TTFWC and TFWC: the equation, the history, and the module against the specification."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import ttfwc
from kernels.reference.base import Ack
from tests.harness.differential import compare
from tests.harness.harness import Flow, Hook, run
from tests.harness.scenarios import standard
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


def test_weights_are_those_of_rfc_5348() -> None:
    assert ttfwc.weights(8) == pytest.approx([1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2])
    assert math.fsum(ttfwc.weights(16)) == pytest.approx(12)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=16), st.sampled_from([8, 16]))
def test_the_average_lies_within_the_intervals(intervals: list[float], n: int) -> None:
    assert min(intervals) - 1e-6 <= ttfwc.average(intervals, n) <= max(intervals) + 1e-6


@given(st.lists(st.integers(20, 10**5), min_size=1, max_size=20), st.sampled_from([0.0, 0.4, 0.9]))
def test_the_window_is_flat_until_the_open_interval_raises_the_average(losses: list[int], tp: float) -> None:
    spec = ttfwc.Ttfwc(50.0, tp=tp, exact=True)
    delivered = 0
    for interval in losses:
        delivered += interval
        spec.on_delivered(delivered)
        spec.on_loss(0.0)
        spec.on_recovered(delivered, 0)
    with_open = ttfwc.average([spec.flat, *spec.history], spec.n)
    assert with_open <= spec.ali * (1 + 1e-9)
    assert ttfwc.average([spec.flat + 1, *spec.history], spec.n) >= spec.ali * (1 - 1e-9)
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
            if interval == 2000:
                spec.extra = 0
        spec.tunable = True
        flat = spec.flat
        for i in range(1, flat + 2):
            spec.on_ack(Ack(1, 1.0, 0.1, delivered + i, 0))
        grown[tp] = (spec.extra, spec.reno_cwnd - spec.ssthresh)
    assert grown[0.0][0] == 0
    assert grown[0.4][0] == math.floor(0.16 * grown[0.4][1])
    assert grown[0.9][0] == math.floor(0.9 * grown[0.9][1])
    assert grown[0.9][0] > 0


def reference(hook: Hook) -> ttfwc.Ttfwc:
    return ttfwc.Ttfwc(float(hook.cwnd), tp=hook.count / 100)


@pytest.mark.parametrize("cca", ["tfwc", "ttfwc", "ttfwc2"])
def test_the_module_follows_the_specification(kernel: GuestKernel, cca: str) -> None:
    """One packet: the ALI is cut to 1/256 packet and the equation's factors to 2^-16."""
    follows(kernel, standard(cca, "ttfwc"), reference, 1)


def test_three_tunings_run_beside_each_other(kernel: GuestKernel) -> None:
    scenario = dataclasses.replace(
        standard("tfwc", "ttfwc")["single losses"],
        flows=tuple(Flow(c, 40000 + i, 0.1 * i, ((25, None),)) for i, c in enumerate(("tfwc", "ttfwc", "ttfwc2"))),
    )
    result = run(kernel, scenario)
    for port, tp in ((40000, 0), (40001, 40), (40002, 90)):
        assert next(h.count for h in result.flow(port) if h.hook == "I") == tp
        assert compare(result.flow(port), reference, 1).mismatches == []
