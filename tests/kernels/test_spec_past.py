# SPDX-License-Identifier: Apache-2.0
"""PaSt: the search for the turning point, and the module against the specification."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import past
from tests.harness.harness import Flow, Hook, run_all
from tests.harness.scenarios import standard
from tests.spec_runs import follows


@given(bottleneck=st.floats(1e-5, 1e-2), share=st.floats(1.0, 8.0))
def test_the_search_ends_at_or_above_the_turning_point_within_its_rounds(bottleneck: float, share: float) -> None:
    """A train below the turning point comes out at it (fluid cross traffic), one above it as it went in."""
    turning = bottleneck * share
    search = past.Search()
    got = None
    for i in range(search.rounds):
        output = bottleneck if i == 0 else max(turning, search.gap)
        got = search.judge(output)
        if got is not None:
            break
    assert got is not None
    assert got >= turning / (1 + search.tolerance) * (1 - 1e-9)
    if share == 1.0:
        assert got == pytest.approx(turning)


def test_on_an_idle_path_the_third_round_finds_the_bottlenecks_own_gap() -> None:
    """Back to back gives 1; half of it comes out as 1; doubled it comes out as it went in."""
    search = past.Search()
    assert search.judge(1.0) is None
    assert search.gap == 0.5
    assert search.judge(1.0) is None
    assert search.gap == 1.0
    assert search.judge(1.0) == 1.0


def reference(hook: Hook) -> past.Past:
    assert hook.count == 1
    return past.Past(float(hook.cwnd))


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """One packet: the kernel's count of ACKed packets in avoidance is whole."""
    got = follows(kernel, standard("past"), reference, 1)
    assert all(got[name].estimates == 1 for name in ("growth", "timeout", "delayed ACKs"))


def test_trains_are_spaced_and_the_path_is_found(kernel: GuestKernel) -> None:
    """20 Mbit/s of 1014-byte frames and 100.4 ms: 405.6 us per packet, 247 packets.  Rounds of 2, 4, 8 packets."""
    scenario = dataclasses.replace(standard("past")["growth"], seconds=2, flows=(Flow("past", phases=((2.0, None),)),))
    (result,) = run_all(kernel, [scenario])
    hooks = [h for h in result.flow() if h.hook in "IAM"]
    begun = next(i for i, h in enumerate(hooks) if h.hook == "I")
    found = next(h for h in hooks if h.hook == "M")
    assert found.count == pytest.approx(247, abs=1)
    assert found.rtt_us == pytest.approx(405.6, abs=1)
    windows = [h.cwnd for h in hooks[begun:]]
    assert sorted(set(windows[: windows.index(9)])) == [2, 4, 8]
