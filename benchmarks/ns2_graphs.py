# SPDX-License-Identifier: Apache-2.0
"""The random graphs of Yu 2009 section 2.5.2 for ns-2: links and ends of the traffic, as the experiment files have them."""

from __future__ import annotations

import functools
from typing import Any

from base.paths import ROOT
from base.quantities import seconds
from schema.load import read
from topologies import transit_stub

FILES = {200: "fig2.11-2.13-short", 600: "fig2.14-2.16-short"}
"""Nodes → the experiment."""


@functools.cache
def traffic(nodes: int) -> list[dict[str, Any]]:
    """The server's transfers and the cross traffic, as the file has them."""
    data = read(ROOT / f"experiments/yu2009/{FILES[nodes]}.yml").data
    entries: list[dict[str, Any]] = data["traffic"]
    return entries


def lines(nodes: int, graph: int) -> str:
    """What ns2_graph.tcl reads of one of the graphs."""
    server, cross = traffic(nodes)
    network = transit_stub.network(transit_stub.Parameters(nodes=nodes, seed=graph))
    links = [f"link {link.a} {link.b} {link.forward.delay_ns / 1e9:.6f}" for link in network.links]
    gap_s = seconds(cross["stop"]) / cross["count"]
    ends = [
        f"server {server['from']}",
        f"clients {' '.join(server['to'])}",
        f"cross {cross['count']} {gap_s:g}",
        f"from {' '.join(cross['from'])}",
        f"to {' '.join(cross['to'])}",
    ]
    return "\n".join([*links, *ends, ""])
