# SPDX-License-Identifier: Apache-2.0
"""The rate that utilisation is a share of is the link's in the time that metrics cover."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.experiments import prepare
from testbed.finish import context
from tests import lab


@pytest.mark.parametrize(
    ("rate", "warmup", "mean_bps"),
    [
        ("20mbit", "2s", 20e6),
        ("steps 0s=10mbit 5s=100mbit", "0s", 55e6),  # 5 s of each
        ("steps 0s=10mbit 5s=100mbit", "6s", 100e6),
        ("steps 0s=10mbit 5s=100mbit", "4s", 85e6),  # 1 s of the one and 5 s of the other
        ("steps 0s=10mbit 5s=0bit 20s=10mbit", "6s", None),  # nothing to use
    ],
)
def test_the_rate_is_that_of_the_window(tmp_path: Path, rate: str, warmup: str, mean_bps: float | None) -> None:
    text = lab.SMALL.replace("duration: 5s", f"duration: 10s\nwarmup: {warmup}").replace(
        "rate: 20mbit", f"rate: {rate}"
    )
    (asked,) = prepare(lab.write(tmp_path, text)).runs
    (plan,) = prepare(lab.write(tmp_path, text)).plans
    assert context(plan, asked.spec())["bottleneck"]["rate_bps"] == mean_bps


def test_a_trace_counts_what_it_could_deliver(tmp_path: Path) -> None:
    """Ten opportunities of 1504 bytes in each of the first five seconds, twenty in the others: from 6 s on 20 · 1504 bytes a second."""
    times = [1000 * s + 50 * k for s in range(10) for k in range(10 if s < 5 else 20)]
    (tmp_path / "made.trace").write_text("\n".join(map(str, [*times, 10000])) + "\n")
    text = lab.SMALL.replace("duration: 5s", "duration: 10s\nwarmup: 6s").replace(
        "rate: 20mbit", "rate: trace made.trace"
    )
    (asked,) = prepare(lab.write(tmp_path, text)).runs
    (plan,) = prepare(lab.write(tmp_path, text)).plans
    assert context(plan, asked.spec())["bottleneck"]["rate_bps"] == pytest.approx(20 * 1504 * 8, rel=0.02)
