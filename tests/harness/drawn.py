# SPDX-License-Identifier: Apache-2.0
"""Situations that a seed draws: path, packets, receiver, and what goes wrong. Nobody has tuned an algorithm to them."""

from __future__ import annotations

import random

from tests.harness.harness import Flow, Scenario

SECONDS = 8
FAULTS = ("loss", "reordering", "both", "marks", "lost ACKs", "none")
LEAST_DELAY_MS, MOST_DELAY_MS = 2, 100
LEAST_MBIT, MOST_MBIT = 4, 100


def drawn(cca: str, module: str, seed: int) -> tuple[str, Scenario]:
    """What goes wrong, and one flow of the algorithm on a path: 4 to 100 Mbit/s, 2 to 100 ms each way, 5 to 400 packets of buffer."""
    rng = random.Random(f"{seed} {cca}")  # noqa: S311
    fault = rng.choice(FAULTS)
    loss = rng.choice((0.1, 0.5, 2, 5)) if fault in ("loss", "both", "marks") else 0
    reordered = rng.choice((0.5, 3, 10, 30)) if fault in ("reordering", "both") else 0
    return fault, Scenario(
        (Flow(cca, phases=((SECONDS, None),)),),
        (module,),
        seconds=SECONDS,
        rate_mbit=round(LEAST_MBIT * (MOST_MBIT / LEAST_MBIT) ** rng.random(), 1),
        delay_ms=round(LEAST_DELAY_MS * (MOST_DELAY_MS / LEAST_DELAY_MS) ** rng.random(), 1),
        buffer_packets=rng.choice((5, 15, 30, 60, 150, 400)),
        packet_bytes=rng.choice((536, 1000, 1448)),
        loss_percent=loss,
        reorder_percent=reordered,
        ack_loss_percent=rng.choice((1, 10, 40)) if fault == "lost ACKs" else 0,
        ecn=fault == "marks",
        queue="codel target 10ms interval 100ms ecn" if fault == "marks" else "",
        seed=seed,
        quickack=rng.random() < 0.6,
        sack=rng.random() < 0.8,
    )
