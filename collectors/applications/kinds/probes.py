# SPDX-License-Identifier: Apache-2.0
"""Packets that measure: pairs and echo requests."""

from __future__ import annotations

from typing import Any

from collectors.applications.kind import Kind, Sides, own
from plan.model import TrafficPlan


def packet_pairs(sides: Sides, _parts: list[TrafficPlan]) -> dict[str, Any]:
    (client,), (server,) = sides["client"], sides["server"]
    whole = sum(gap["pairs"] for gap in server["gaps"])
    return {"sent_pairs": client["pairs"], "received_pairs": whole, "gaps": server["gaps"]}


def ping(sides: Sides, _parts: list[TrafficPlan]) -> dict[str, Any]:
    (client,) = sides["client"]
    return own(client)


KINDS = {"packet_pairs": Kind(packet_pairs), "ping": Kind(ping)}
