# SPDX-License-Identifier: Apache-2.0
"""Packets that measure: pairs and echo requests."""

from __future__ import annotations

import dataclasses
from typing import Any

from base import quantities
from plan import draws
from schema import distributions
from schema.traffic.kinds.probes import PacketPairs, Ping
from testbed.compile_context import Context


def _probe_settings(entry: PacketPairs | Ping, c: Context) -> dict[str, Any]:
    return {
        "to": entry.destination,
        "packet_bytes": quantities.size_bytes(entry.packet),
        "start_s": c.window.start_s,
        "stop_s": c.window.stop_s,
        "seed": draws.seed_of(c.seed, "every"),
        "every_s": dataclasses.asdict(distributions.times(entry.every)),
    }


def packet_pairs(entry: PacketPairs, c: Context) -> None:
    gaps = [quantities.delay_ns(gap) for gap in entry.gaps]
    c.add("server", entry.destination, {"gaps_ns": gaps, "stop_s": c.window.stop_s})
    c.add("client", entry.source, {**_probe_settings(entry, c), "gaps_ns": gaps})


def ping(entry: Ping, c: Context) -> None:
    c.add("client", entry.source, _probe_settings(entry, c))


COMPILERS = {"packet_pairs": packet_pairs, "ping": ping}
