# SPDX-License-Identifier: Apache-2.0
"""TCP connections: on and off, or transfers that arrive."""

from __future__ import annotations

from random import Random
from typing import Any

from plan import draws
from schema import distributions
from schema.traffic.kinds.streams import OnOff, Transfers
from testbed.compile_context import Context, limited
from testbed.compile_periods import periods


def on_off(entry: OnOff, c: Context) -> None:
    c.add("server", entry.destination, {})
    settings = {"to": entry.destination, "cca": entry.cca.name, "connections": entry.connections, "end_s": c.end_s}
    c.add("client", entry.source, {**settings, "periods": periods(entry, c)})


def transfers(entry: Transfers, c: Context) -> None:
    sources, destinations = entry.sources(), entry.destinations()
    random = c.random("arrivals")
    if entry.count is None:
        assert entry.gap is not None
        gap = distributions.times(entry.gap)
        times = limited(draws.arrivals(gap, c.window.start_s, c.window.stop_s, random), "transfers")
    else:
        length = c.window.stop_s - c.window.start_s
        times = sorted(c.window.start_s + length * random.random() for _ in range(entry.count))
    ends, amounts = c.random("ends"), c.random("amounts")
    by_source: dict[str, list[dict[str, Any]]] = {source: [] for source in sources}
    for number, start_s in enumerate(times):
        source, destination = _any(sources, ends), _any(destinations, ends)
        transfer: dict[str, Any] = {"number": number, "start_s": start_s, "to": destination}
        if entry.size is not None:
            transfer["size_bytes"] = max(1, round(distributions.sizes(entry.size).draw(amounts)))
        else:
            assert entry.life is not None
            transfer["life_s"] = distributions.times(entry.life).draw(amounts)
        by_source[source].append(transfer)
    for destination in destinations:
        c.add("server", destination, {})
    for source in sources:
        c.add("client", source, {"cca": entry.cca.name, "end_s": c.end_s, "transfers": by_source[source]})


def _any(nodes: list[str], random: Random) -> str:
    return nodes[int(random.random() * len(nodes))]


COMPILERS = {"on_off": on_off, "transfers": transfers}
