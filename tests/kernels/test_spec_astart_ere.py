# SPDX-License-Identifier: Apache-2.0
"""Astart with ERE: the filter, and the module against the specification."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import astart
from tests.harness.harness import Hook, run
from tests.harness.scenarios import situations, standard
from tests.strict_runs import follows


@given(rate=st.floats(10, 10000), dt=st.floats(1e-4, 0.1))
def test_the_filter_settles_at_a_constant_rate(rate: float, dt: float) -> None:
    low_pass = astart.Westwood(1.0)
    for _ in range(round(10 / dt)):
        low_pass.add(rate, dt)
    assert low_pass.estimate == pytest.approx(rate, rel=1e-3)


def test_the_first_threshold_is_raised_by_the_estimate(kernel: GuestKernel) -> None:
    """20 Mbit/s and 100 ms hold 247 packets; the filter needs seconds to get there, and never exceeds them much."""
    seen = [h.ssthresh for h in run(kernel, standard("astart_ere")["growth"]).flow() if h.hook == "A"]
    assert seen[0] == 32
    assert 32 < max(seen) <= 260


def reference(hook: Hook) -> astart.AstartEre:
    spec = astart.AstartEre(float(hook.cwnd))
    if hook.delivered > 1:  # not the SYN alone: chosen in the middle of a connection
        spec.ssthresh, spec.lost = math.inf, True
    return spec


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """Three packets or 3 %: a span cut to whole microseconds can end one ACK earlier or later."""
    follows(kernel, situations("astart_ere"), reference, 3, 0.03)
