# SPDX-License-Identifier: Apache-2.0
"""Astart with BWE: the filter, and the module against the specification."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import astart
from tests.harness.harness import Flow, Hook, Scenario, run
from tests.harness.scenarios import idle_table_4_1, situations, standard
from tests.spec_runs import follows


@given(rate=st.floats(10, 10000), dt=st.floats(1e-4, 0.1))
def test_the_filter_settles_at_a_constant_rate(rate: float, dt: float) -> None:
    low_pass = astart.Westwood(1.0)
    for _ in range(round(10 / dt)):
        low_pass.add(rate, dt)
    assert low_pass.estimate == pytest.approx(rate, rel=1e-3)


def each_ack(scenario: Scenario) -> Scenario:
    return dataclasses.replace(scenario, params={"astart_bwe": {"each_ack": 1}})


def test_with_each_ack_the_threshold_follows_the_estimate(kernel: GuestKernel) -> None:
    """20 Mbit/s and 100 ms hold 247 packets; the filter needs seconds to get there, and never exceeds them much."""
    result = run(kernel, each_ack(standard("astart_bwe")["growth"]))
    seen = [h.ssthresh for h in result.flow() if h.hook == "A"]
    assert seen[0] == 32
    assert 100 < max(seen) <= 260
    assert len(set(seen[: seen.index(max(seen))])) > 10


def test_the_threshold_is_raised_once_as_the_window_reaches_the_first_one(kernel: GuestKernel) -> None:
    hooks = [h for h in run(kernel, idle_table_4_1("astart_bwe", 5.0)).flow() if h.hook in "AL"]
    hooks = hooks[: next((i for i, h in enumerate(hooks) if h.hook == "L"), None)]
    raised = [h for before, h in itertools.pairwise(hooks) if h.ssthresh != before.ssthresh]
    assert len(raised) == 1
    assert raised[0].ssthresh > 40
    assert raised[0].cwnd == 33


def test_the_estimate_at_the_end_of_renos_slow_start_is_that_of_yu_2009_s_table_4_1(kernel: GuestKernel) -> None:
    """1071.3 with a deviation of 183.8 where there is room for all (400 Mbit/s), from a first window of one as ns-2 has it."""
    path = idle_table_4_1("astart_bwe", 5.0)
    first = ((0.5, "ip -n snd route replace default via 192.0.2.2 initcwnd 1"),)
    flow = Flow("astart_bwe", start_s=1.0, phases=((4.0, None),))
    hooks = [h for h in run(kernel, dataclasses.replace(path, flows=(flow,), changes=first)).flow() if h.hook in "IAL"]
    assert hooks[0].cwnd == 1
    passed = next(h for h in hooks if h.cwnd > 32)
    print(passed.ssthresh)
    assert passed.ssthresh == pytest.approx(1071.3, abs=183.8)
    assert passed.ssthresh == pytest.approx(1104, rel=0.02)
    assert {h.ssthresh for h in hooks if h.cwnd > 32 and h.hook == "A"} == {passed.ssthresh}


def test_what_the_filters_equation_has_on_an_idle_path() -> None:
    """By hand, from the times of the ACKs: pairs and trains of 50 Mbit/s, 0.44 s apart, windows of 1, 2, 4, 8, 16 and 32 packets.

    982 packets by the last ACK of the round that leaves the window at 32, 1104 by the next one, which is the one that counts."""
    low_pass, last_s, seen = astart.Westwood(1.0), 0.44, []
    for round_trip in range(2, 7):
        for i in range(2 ** (round_trip - 1)):
            now_s = 0.44 * round_trip + i * 1040 * 8 / 50e6
            low_pass.add(1 / (now_s - last_s), now_s - last_s)
            last_s = now_s
            seen.append(low_pass.estimate * 0.44)
    assert seen[29] == pytest.approx(982, abs=1)
    assert seen[30] == pytest.approx(1104, abs=1)


def reference(hook: Hook) -> astart.AstartBwe:
    spec = astart.AstartBwe(float(hook.cwnd))
    if hook.delivered > 1:  # not the SYN alone: chosen in the middle of a connection
        spec.ssthresh, spec.over = math.inf, True
    return spec


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """One packet or 1 %: rates are cut to 2^-16 packet/s, spans to whole microseconds. A small buffer it does not overflow."""
    follows(kernel, situations("astart_bwe", "burst loss"), reference, 1, 0.01)


def test_the_module_follows_the_specification_with_each_ack(kernel: GuestKernel) -> None:
    cases = {name: each_ack(scenario) for name, scenario in standard("astart_bwe").items()}

    def specification(hook: Hook) -> astart.AstartBwe:
        spec = reference(hook)
        spec.each_ack = True
        return spec

    follows(kernel, cases, specification, 1, 0.01)
