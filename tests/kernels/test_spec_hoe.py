# SPDX-License-Identifier: Apache-2.0
"""Hoe's slow start: the pair's estimate, and the module against the specification."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import hoe
from tests.harness.harness import Flow, Hook, run
from tests.harness.scenarios import idle_table_4_1, situations, standard
from tests.spec_runs import follows


@given(rate=st.floats(50, 9000), rtt=st.floats(0.01, 0.5))
def test_ssthresh_is_the_round_trip_over_the_gap_of_the_first_pair(rate: float, rtt: float) -> None:
    spec = hoe.Hoe()
    spec.on_sample(rtt, 1, 1.0)
    spec.on_sample(rtt + 1 / rate, 1, 1.0 + 1 / rate)
    assert spec.ssthresh == pytest.approx(max(2, rtt * rate), rel=0.02, abs=1.01)


def test_the_module_finds_the_path_s_capacity(kernel: GuestKernel) -> None:
    """20 Mbit/s of 1014-byte frames and 100.4 ms: 405.6 us per packet, 247 packets."""
    first = next(h for h in run(kernel, standard("hoe")["growth"]).flow() if h.hook == "A" and h.ssthresh < 10**6)
    assert first.ssthresh == pytest.approx(247, abs=2)


def test_a_connection_that_comes_to_it_in_the_middle_estimates_nothing(kernel: GuestKernel) -> None:
    """The pair of a connection's beginning says what its path holds; a later one says what its own queue does."""
    scenario = dataclasses.replace(standard("hoe")["growth"], flows=(Flow("hoe", chosen_s=3.0),), seconds=8)
    hooks = list(run(kernel, scenario).flow())
    assert hooks and hooks[0].hook == "I"
    thresholds = {h.ssthresh for h in hooks[: next((i for i, h in enumerate(hooks) if h.hook == "L"), len(hooks))]}
    assert len(thresholds) == 1


def test_on_an_idle_path_the_estimate_is_that_of_yu_2009_s_table_4_1(kernel: GuestKernel) -> None:
    """R / gap is 2644 there (s4.6.3, page 104). The sender's clock takes the gap of 166.4 us for 166 or 167: 0.6 %."""
    first = next(h for h in run(kernel, idle_table_4_1("hoe", 2.0)).flow() if h.hook == "A" and h.ssthresh < 10**6)
    print(first.ssthresh)
    assert first.ssthresh == pytest.approx(2644, rel=0.006)


def reference(hook: Hook) -> hoe.Hoe:
    spec = hoe.Hoe(float(hook.cwnd))
    spec.done = hook.delivered > 1  # the SYN alone: a connection's beginning
    return spec


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """One packet: the kernel's count of ACKed packets in avoidance is whole."""
    follows(kernel, situations("hoe"), reference, 1)
