# SPDX-License-Identifier: Apache-2.0
"""Every algorithm against its specification in situations that a seed draws. More seeds by hand:

./warpbed exec python -P -m tests.kernels.test_drawn_situations FIRST LAST [ALGORITHM …]
"""

from __future__ import annotations

import sys

import pytest

from hosts.virtual.kernel import find
from hosts.virtual.launch import GuestKernel
from tests.harness.differential import Comparison, compare
from tests.harness.drawn import drawn
from tests.harness.harness import run
from tests.spec_cases import CASES

SEEDS = (1, 2)


def compared(kernel: GuestKernel, cca: str, seed: int) -> tuple[str, Comparison]:
    """The situation in words, and the comparison."""
    case = CASES[cca]
    fault, scenario = drawn(cca, case.module or cca, seed)
    got = compare(run(kernel, scenario).flow(), case.make, case.packets, case.share)
    path = f"{scenario.rate_mbit} Mbit/s, {scenario.delay_ms} ms, {scenario.buffer_packets} packets of {scenario.packet_bytes} bytes"
    return f"{cca}, seed {seed}: {fault}, {path}", got


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cca", CASES)
def test_the_module_follows_the_specification(kernel: GuestKernel, cca: str, seed: int) -> None:
    situation, got = compared(kernel, cca, seed)
    assert not got.mismatches, f"{situation}: {got}; first: {got.mismatches[:3]}"
    assert got.thresholds > 100, situation


def main(arguments: list[str]) -> int:
    first, last, *only = arguments
    kernel, wrong = find("default"), 0
    for seed in range(int(first), int(last) + 1):
        for cca in only or CASES:
            situation, got = compared(kernel, cca, seed)
            wrong += bool(got.mismatches)
            print(f"{situation}: {got}", *(f"  {one}" for one in got.mismatches[:3]), sep="\n", flush=True)
    print(f"{wrong} situations differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
