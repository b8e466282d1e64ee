# SPDX-License-Identifier: Apache-2.0
"""What run.json says of a plan's network."""

from __future__ import annotations

from typing import Any

from network.describe import notes
from network.frames import FULL_FRAME_BYTES
from network.impairments import RateTrace
from network.model import Network, address_plan
from plan.model import Plan


def picture(network: Network, duration_s: float) -> dict[str, Any]:
    """Nodes and links for the report's picture; a loss that changes counts with its mean over the run."""
    return {
        "nodes": [{"name": node.name, "kind": node.kind} for node in network.nodes],
        "links": [
            {
                "a": link.a,
                "b": link.b,
                "rate_bps": link.forward.rate_bps,
                "delay_s": link.forward.delay_ns / 1e9,
                "buffer": None
                if link.forward.buffer is None
                else f"{link.forward.buffer.size} {link.forward.buffer.unit}",
                "loss": link.forward.mean_loss(FULL_FRAME_BYTES, 0, int(duration_s * 1e9)),
                "notes": " · ".join(notes(link)),
            }
            for link in network.links
        ],
    }


def bottleneck(plan: Plan, start_s: float = 0.0) -> dict[str, Any] | None:
    """Node, interface and rate of the queue that the experiment is about; of a rate that changes the mean from start_s on."""
    place = plan.network.bottleneck
    if place is None:
        return None
    interface = next(i for i in address_plan(plan.network)[place.node].interfaces if i.peer == place.peer)
    direction, start_ns, end_ns = interface.egress, int(start_s * 1e9), int(plan.duration_s * 1e9)
    rate_bps = direction.mean_rate_bps(start_ns, end_ns)
    if isinstance(direction.varying_rate, RateTrace):
        rate_bps = direction.capacity_bytes(start_ns, end_ns) * 8e9 / (end_ns - start_ns)
    return {"node": place.node, "interface": interface.name, "rate_bps": rate_bps or None}
