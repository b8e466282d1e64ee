# SPDX-License-Identifier: Apache-2.0
"""Afifi 2014 chapter 6: FTAT's steady state, and what it decides.

B: share of the bandwidth, packets/s; p: probability of a loss signal per ACK; RTT: mean round-trip time, s; T: throughput, packets/s.
"""

from __future__ import annotations

from collections.abc import Iterator

from analysis.models.checks import Check, decides, relation
from kernels.reference.ftat import throughput
from schema.catalogue import Entry

__all__ = ["fixed_point", "throughput"]
PATHS = tuple(
    (B, rtt, p) for B in (100.0, 1000.0, 2332.0) for rtt in (0.05, 0.2, 0.54) for p in (0.001, 0.01, 0.02, 0.05)
)
"""Of the catalogue's sweep."""


def fixed_point(B: float, p: float, rtt_s: float, acks: int = 200_000) -> float:
    """Where the per-ACK rule leads: cwnd changes by (1 - p)/cwnd + (B RTT - cwnd) p, so that cwnd / RTT is T."""
    cwnd = 1.0
    for _ in range(acks):
        change = (1 - p) / cwnd + (B * rtt_s - cwnd) * p
        if abs(change) < 1e-12:
            break
        cwnd += change
    return cwnd / rtt_s


@decides("afifi2014-eq6.1")
def _steady_state(entry: Entry) -> Iterator[Check]:
    apart = [abs(fixed_point(B, p, rtt) / throughput(B, p, rtt) - 1) for B, rtt, p in PATHS]
    yield relation(
        "1",
        f"the rule applied ACK by ACK ends at T on {len(PATHS)} paths",
        max(apart) < 1e-3,
        f"{max(apart):.1e} apart",
    )
    roots = [
        abs(throughput(B, p, rtt) ** 2 - B * throughput(B, p, rtt) - (1 - p) / (rtt**2 * p)) for B, rtt, p in PATHS
    ]
    yield relation(
        "2",
        "T is a root of the quadratic, and the positive one",
        max(roots) < 1e-3 and all(throughput(*x) > 0 for x in PATHS),
    )


@decides("afifi2014-claim6.2")
def _stability(entry: Entry) -> Iterator[Check]:
    above = [throughput(B, p, rtt) / B for B, rtt, p in PATHS]
    why = "T (T - B) = (1 - p)/(RTT^2 p) is above 0 for p < 1, so the theorem puts T above B on every path"
    words = f"T/B by the theorem on {len(PATHS)} paths: {min(above):.5f} to {max(above):.3g}"
    yield Check(
        "1", words, max(above) <= 1, None, max(above), "order", "the corollary against the theorem before it", why
    )
