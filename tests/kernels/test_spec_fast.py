# SPDX-License-Identifier: Apache-2.0
"""FAST: its fixed point, and the module against the specification."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import fast
from tests.harness.harness import Hook, run
from tests.harness.scenarios import situations, standard
from tests.spec_runs import follows


@given(bdp=st.floats(10, 5000), alpha=st.floats(5, 200), gamma=st.floats(0.2, 1.0), start=st.floats(2, 10000))
def test_the_fixed_point_keeps_alpha_packets_in_the_queue(bdp: float, alpha: float, gamma: float, start: float) -> None:
    """One flow on a link of bdp packets per base RTT: RTT = max(1, W / bdp)."""
    w = start
    for _ in range(20000):
        w = fast.update(w, 1.0, max(1.0, w / bdp), alpha, gamma)
    assert w - bdp == pytest.approx(alpha, rel=0.01)


@given(st.floats(1, 1000), st.floats(1, 3))
def test_the_window_never_more_than_doubles(w: float, rtt: float) -> None:
    assert fast.update(w, 1.0, rtt, 100, 0.5) <= 2 * w


def test_the_module_keeps_100_packets_in_a_large_buffer(kernel: GuestKernel) -> None:
    """Ho Fig 5.3: FAST holds about 100 packets. The last second's queue, from the RTTs."""
    result = run(kernel, standard("fast")["growth"])
    rtts = [h.rtt_us for h in result.flow() if h.hook == "P" and h.rtt_us > 0][50:]
    queue = [(rtt - min(rtts)) * 20e6 / 8 / 1014 / 1e6 for rtt in rtts[-2000:]]
    assert sum(queue) / len(queue) == pytest.approx(100, abs=3)


def reference(hook: Hook) -> fast.Fast:
    return fast.Fast(float(hook.cwnd))


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """W is cut to 1/256 packet every round: one packet, which doubling makes 2.5 % of W until the target is reached.

    Late ACKs are left out: FAST overflows the buffer before they come, so nothing is undone.
    """
    follows(kernel, situations("fast", "late ACKs, undone"), reference, 1, 0.025)
