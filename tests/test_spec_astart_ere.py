# SPDX-License-Identifier: Apache-2.0
"""Astart with ERE: the filter, and the module against the specification."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.spec import astart
from kernels.spec.differential import compare
from kernels.spec.harness import Hook, kernel, run
from kernels.spec.scenarios import standard

needs_kernel = pytest.mark.skipif(kernel() is None, reason="WARPBED_TEST_KERNEL is not set: no kernel to test")


@given(rate=st.floats(10, 10000), dt=st.floats(1e-4, 0.1))
def test_the_filter_settles_at_a_constant_rate(rate: float, dt: float) -> None:
    low_pass = astart.Westwood(1.0)
    for _ in range(round(10 / dt)):
        low_pass.add(rate, dt)
    assert low_pass.estimate == pytest.approx(rate, rel=1e-3)


@needs_kernel
def test_the_first_threshold_is_raised_by_the_estimate() -> None:
    """20 Mbit/s and 100 ms hold 247 packets; the filter needs seconds to get there, and never exceeds them much."""
    seen = [h.ssthresh for h in run(standard("astart_ere")["growth"]).flow() if h.hook == "A"]
    assert seen[0] == 32
    assert 32 < max(seen) <= 260


def reference(hook: Hook) -> astart.AstartEre:
    return astart.AstartEre(float(hook.cwnd))


@needs_kernel
@pytest.mark.parametrize("name", standard("astart_ere"))
def test_the_module_follows_the_specification(name: str) -> None:
    """Three packets or 3 %: a span cut to whole microseconds can end one ACK earlier or later."""
    result = run(standard("astart_ere")[name])
    got = compare(result.flow(), reference, 3, 0.03)
    print(f"{name}: {got}")
    assert got.windows > 100
    assert got.mismatches == []
    if "loss" in name and True:
        assert got.losses > 0
    if name == "timeout":
        assert got.timeouts >= 2
