# SPDX-License-Identifier: Apache-2.0
"""UDP at a constant rate or with random gaps."""

from __future__ import annotations

from typing import Any

from collectors.applications.kind import Kind, Sides, own
from plan.model import TrafficPlan


def datagrams(sides: Sides, _parts: list[TrafficPlan]) -> dict[str, Any]:
    (client,), (server,) = sides["client"], sides["server"]
    sent, got = client["packets"], server["packets"]
    return {
        "sent_packets": sent,
        "received_packets": got,
        "lost_share": (sent - got) / sent if sent else None,
        "offered_mbps": client.get("mean_rate_mbps"),
        "busy_periods": client.get("busy_periods"),
        **{key: value for key, value in own(server).items() if key != "packets"},
    }


KINDS = {"cbr": Kind(datagrams), "poisson": Kind(datagrams)}
