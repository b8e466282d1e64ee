# SPDX-License-Identifier: Apache-2.0
"""What SPM estimates on Yu 2009 Fig 4-33's busy path from packet pairs in ns-2, by what it does where no gap qualifies.

Section 4.5 leaves that open. Table 4-1 prints means and deviations of a hundred estimates, so the reading whose estimates are
nearest is the one that the module takes by default. The settings stand here; benchmarks/ns2.py asks ns-2 with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from analysis.models import simulator
from analysis.models.yu2009_ns2 import CROSS_SSTHRESH, GROWTH_S, SEEDS
from kernels.reference import spm

SCRIPT = "ns2_pairs.tcl"
STARTS = 10
"""Of a run, one after another."""
PAIRS = 14
"""After the first of a start, whose output gap is y0."""
FIRST_SSTHRESH = 32
LONGEST_GAP = 16.0
"""Output gaps are cut there, in y0, as in the module."""
READINGS = {spm.NO_ESTIMATE: "ssthresh stays", spm.LINE: "the line's", spm.BOUNDED: "the line's, or the widest gap"}
"""The module's parameter `unqualified` → words."""


def estimates(numbers: Sequence[float], reading: int) -> Iterator[float]:
    """ssthresh of each start (packets), from what the script prints of a run.

    A pair of which a packet was lost ends the measuring, as a loss does; from less than 12 gaps before it comes no estimate.
    """
    for first in range(0, len(numbers) - 1, 2 + PAIRS):
        rtt_s, y0_s, *gaps_s = numbers[first : first + 2 + PAIRS]
        whole = gaps_s[: next((i for i, gap_s in enumerate(gaps_s) if gap_s < 0), len(gaps_s))]
        inputs = (spm.INPUT_GAPS[i % len(spm.INPUT_GAPS)] for i in range(PAIRS))
        samples = [(x, min(LONGEST_GAP, gap_s / y0_s)) for x, gap_s in zip(inputs, whole, strict=False)]
        gamma = spm.gamma(samples, unqualified=reading) if len(samples) >= spm.LEAST_SAMPLES else None
        yield FIRST_SSTHRESH if gamma is None else max(2.0, math.floor(rtt_s / (gamma * y0_s)))


def asked(mbps: int, seed: int, hosts_s: float) -> tuple[str, int, int, int, float, int, int]:
    """The script and its arguments for a rate, a seed and the longest time that a host takes for a packet."""
    return SCRIPT, mbps, seed, CROSS_SSTHRESH, hosts_s, GROWTH_S, STARTS


def recorded(mbps: int, hosts_s: float, reading: int) -> list[float]:
    """Estimates (packets) of all runs that are kept of a rate and of what hosts take for a packet."""
    runs = (simulator.numbers(*asked(mbps, seed, hosts_s)) for seed in SEEDS)
    return [estimate for run in runs if run for estimate in estimates(run, reading)]
