# SPDX-License-Identifier: Apache-2.0
"""Hoe's slow start: the pair's estimate, and the module against the specification."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import hoe
from tests.harness.harness import Hook, run
from tests.harness.scenarios import standard
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


def reference(hook: Hook) -> hoe.Hoe:
    return hoe.Hoe(float(hook.cwnd))


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """One packet: the kernel's count of ACKed packets in avoidance is whole."""
    follows(kernel, standard("hoe"), reference, 1)
