# SPDX-License-Identifier: Apache-2.0
"""Compound TCP: its delay window, and the module against the specification."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import ctcp
from tests.harness.harness import Flow, Hook, Scenario, run
from tests.harness.scenarios import situations
from tests.spec_runs import follows


def test_the_delay_window_grows_by_alpha_win_to_the_three_quarters_minus_one() -> None:
    """win = 256: 256^0.75 / 8 - 1 = 64 / 8 - 1 = 7."""
    spec = ctcp.Ctcp(256.0)
    spec.base_rtt = 0.1
    assert spec.delay_window(256, 0.1) == pytest.approx(7)


@given(win=st.floats(40, 5000), dwnd=st.floats(0, 1000), rtt=st.floats(0.1, 1.0))
def test_the_delay_window_gives_way_to_a_queue_and_is_never_negative(win: float, dwnd: float, rtt: float) -> None:
    spec = ctcp.Ctcp(win)
    spec.base_rtt, spec.dwnd = 0.1, dwnd
    after = spec.delay_window(win, rtt)
    assert after >= 0
    if win * (1 - 0.1 / rtt) >= 30:
        assert after <= dwnd
    else:
        assert after >= dwnd


@given(aimd=st.integers(4, 1000), dwnd=st.integers(0, 1000))
def test_a_loss_halves_the_sum(aimd: int, dwnd: int) -> None:
    spec = ctcp.Ctcp(float(aimd + dwnd))
    spec.aimd, spec.dwnd = float(aimd), float(dwnd)
    spec.on_loss(0.0)
    assert spec.ssthresh == pytest.approx((aimd + dwnd) / 2, abs=1)


def test_the_delay_window_gives_way_at_thirty_packets(kernel: GuestKernel) -> None:
    """Ho 2008 s2.6: Diff >= gamma, 30 packets. Of each round after slow start: its backlog, and what the window did."""
    path = Scenario((Flow("ctcp", phases=((14.0, None),)),), ("ctcp",), seconds=14, rate_mbit=50, buffer_packets=150)
    grew: list[float] = []
    fell: list[float] = []
    hooks = list(run(kernel, path).flow())
    begun = max(i for i, h in enumerate(hooks) if h.hook == "S")
    assert hooks[begun].now_us - hooks[0].now_us < 5e6, "only slow start is to lose packets"
    base_us = min(h.rtt_us for h in hooks[20:] if h.hook == "P" and h.rtt_us > 0)
    end, rtts_us, window = hooks[begun].delivered + hooks[begun].in_flight, [], hooks[begun].cwnd
    for h in hooks[begun + 1 :]:
        if h.hook == "P":
            rtts_us.append(h.rtt_us)
        elif h.delivered > end:
            backlog = window * (1 - base_us / (sum(rtts_us) / len(rtts_us)))
            (grew if h.cwnd - window > 1 else fell if h.cwnd < window else []).append(backlog)
            end, rtts_us = h.delivered + h.in_flight, []
        window = h.cwnd
    print(len(grew), max(grew), len(fell), min(fell))
    assert len(grew) > 20
    assert len(fell) > 20
    assert max(grew) < 30.1
    assert min(fell) > 29.9


def reference(hook: Hook) -> ctcp.Ctcp:
    return ctcp.Ctcp(float(hook.cwnd))


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """Two packets: the window is the sum of two, each cut to whole packets at its own moment.
    So the backlog is that of the stack's window: 29.5 packets of 41 and 30.2 of 42 would decide differently.
    """
    follows(kernel, situations("ctcp"), reference, 2)
