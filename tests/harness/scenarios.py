# SPDX-License-Identifier: Apache-2.0
"""The situations in which every algorithm is compared with its specification."""

from __future__ import annotations

import dataclasses

from tests.harness.harness import Flow, Scenario

LONGER = "tc -n wir qdisc change dev wir-rtr root netem delay 70ms limit 1000000"


def standard(cca: str, module: str | None = None) -> dict[str, Scenario]:
    """Growth, single, burst and random loss, timeout, RTT change, application limit, NewReno, delayed ACKs."""

    def flow(seconds: float) -> tuple[Flow, ...]:
        return (Flow(cca, phases=((seconds, None),)),)

    base = Scenario(flow(20), (module or cca,), seconds=20, rate_mbit=20)
    change = dataclasses.replace
    return {
        "growth": base,
        "burst loss": change(base, buffer_packets=20),
        "single losses": change(base, flows=flow(30), seconds=30, loss_percent=0.03),
        "heavy random loss": change(base, flows=flow(30), seconds=30, loss_percent=3),
        "timeout": change(base, blackouts=((4, 2), (12, 1))),
        "longer path": change(base, changes=((8, LONGER),)),
        "application-limited": change(
            base, flows=(Flow(cca, phases=((3, None), (4, 2e5), (3, 0), (5, None))),), seconds=15
        ),
        "NewReno loss": change(base, sack=False, loss_percent=0.3),
        "delayed ACKs": change(base, quickack=False),
    }
