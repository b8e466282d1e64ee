# SPDX-License-Identifier: Apache-2.0
"""Astart with ERE: the filter, and the module against the specification."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import astart
from tests.harness.harness import Hook, Scenario, run, run_all
from tests.harness.scenarios import idle_table_4_1, situations, standard
from tests.spec_runs import follows


@given(rate=st.floats(10, 10000), dt=st.floats(1e-4, 0.1))
def test_the_filter_settles_at_a_constant_rate(rate: float, dt: float) -> None:
    low_pass = astart.Westwood(1.0)
    for _ in range(round(10 / dt)):
        low_pass.add(rate, dt)
    assert low_pass.estimate == pytest.approx(rate, rel=1e-3)


def each_ack(scenario: Scenario) -> Scenario:
    return dataclasses.replace(scenario, params={"astart_ere": {"each_ack": 1}})


def test_with_each_ack_the_threshold_follows_the_estimate(kernel: GuestKernel) -> None:
    """20 Mbit/s and 100 ms hold 247 packets; the filter needs seconds to get there, and never exceeds them much."""
    result = run(kernel, each_ack(standard("astart_ere")["growth"]))
    seen = [h.ssthresh for h in result.flow() if h.hook == "A"]
    assert seen[0] == 32
    assert 32 < max(seen) <= 260


def test_the_estimate_stays_so_low_that_the_flow_coincides_with_reno_as_in_yu_2009_figure_4_38(
    kernel: GuestKernel,
) -> None:
    """Table 4-1: 19.5 with a deviation of 2.6, below the first ssthresh of 32, where 2644 packets would fit. For 15 s the windows of
    ERE and of Reno with an ssthresh of 32 are the same but for a few packets."""
    cases = [idle_table_4_1("astart_ere", 15.0), idle_table_4_1("lbc", 15.0, params={"limit": 64, "init_ssthresh": 32})]
    ere, reno = ([h for h in result.flow() if h.hook == "A"] for result in run_all(kernel, cases))
    assert {h.ssthresh for h in ere if h.cwnd < 32} == {32}
    at_s = [second + 0.4 for second in range(1, 15)]
    begun_us = reno[0].now_us
    windows = [
        (
            [h for h in ere if h.now_us < ere[0].now_us + t * 1e6][-1].cwnd,
            [h for h in reno if h.now_us < begun_us + t * 1e6][-1].cwnd,
        )
        for t in at_s
    ]
    print(windows)
    assert all(abs(a - b) <= 3 for a, b in windows)
    assert windows[-1][1] > 55


def reference(hook: Hook) -> astart.AstartEre:
    spec = astart.AstartEre(float(hook.cwnd))
    if hook.delivered > 1:  # not the SYN alone: chosen in the middle of a connection
        spec.ssthresh, spec.over = math.inf, True
    return spec


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """One packet or 1 %: rates are cut to 2^-16 packet/s, spans to whole microseconds. A small buffer it does not overflow."""
    follows(kernel, situations("astart_ere", "burst loss"), reference, 1, 0.01)


def test_the_module_follows_the_specification_with_each_ack(kernel: GuestKernel) -> None:
    cases = {name: each_ack(scenario) for name, scenario in standard("astart_ere").items() if name != "burst loss"}

    def specification(hook: Hook) -> astart.AstartEre:
        spec = reference(hook)
        spec.each_ack = True
        return spec

    follows(kernel, cases, specification, 1, 0.01)
