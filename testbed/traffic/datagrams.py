# SPDX-License-Identifier: Apache-2.0
"""UDP at a constant rate or with random gaps."""

from __future__ import annotations

from base import quantities
from network.frames import FRAME_HEADER_BYTES
from plan import draws
from schema.traffic.kinds.datagrams import Cbr, Poisson
from testbed.compile_context import Context
from testbed.compile_periods import periods


def datagrams(entry: Cbr | Poisson, c: Context) -> None:
    packet = quantities.size_bytes(entry.packet)
    rate = quantities.rate_bps(entry.rate)
    gap_ns = (packet + FRAME_HEADER_BYTES) * 8 * 10**9 / rate
    common = {"packet_bytes": packet, "rate_bps": rate, "start_s": c.window.start_s, "stop_s": c.window.stop_s}
    c.add("server", entry.destination, common)
    settings = {
        **common,
        "to": entry.destination,
        "gap_ns": gap_ns,
        "periods": periods(entry, c),
        "spacing": "constant" if entry.kind == "cbr" else "exponential",
        "seed": draws.seed_of(c.seed, "gaps"),
    }
    c.add("client", entry.source, settings)


COMPILERS = {"cbr": datagrams, "poisson": datagrams}
