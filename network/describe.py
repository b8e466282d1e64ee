# SPDX-License-Identifier: Apache-2.0
"""Short descriptions of a link's other properties than rate, delay, buffer and loss, for pictures and tables."""

from __future__ import annotations

from dataclasses import replace

from base.quantities import format_rate, format_time
from network.direction import Direction
from network.frames import FULL_FRAME_BYTES
from network.impairments import FourState, GilbertElliott, RateTrace
from network.model import Link


def notes(link: Link) -> list[str]:
    """What is special about a link; what its other direction does differently comes last."""
    texts = _specials(link.forward)
    # the time that a host takes for a packet is the host's, and lies on the direction that leaves it
    if replace(link.backward, overhead_ns=0) != replace(link.forward, overhead_ns=0):
        texts.append(f"back {_plain(link.backward)}")
    return texts


def _plain(direction: Direction) -> str:
    parts = [format_rate(direction.rate_bps) if direction.rate_bps else "any rate"]
    if direction.delay_ns:
        parts.append(format_time(direction.delay_ns))
    if loss := direction.mean_loss(FULL_FRAME_BYTES):
        parts.append(f"loss {loss * 100:.3g} %")
    return " ".join([*parts, *_specials(direction)])


def _specials(direction: Direction) -> list[str]:
    texts = []
    if isinstance(direction.varying_rate, RateTrace):
        texts.append(f"trace {direction.varying_rate.name}")
    elif direction.varying_rate is not None:
        texts.append("changing rate")
    if direction.varying_delay is not None:
        texts.append("changing delay")
    if direction.jitter is not None:
        texts.append(f"jitter {format_time(direction.jitter.spread_ns)}")
    if direction.aggregate_ns:
        texts.append(f"aggregates {format_time(direction.aggregate_ns)}")
    if direction.varying_loss is not None:
        texts.append("changing loss")
    if isinstance(direction.burst_loss, GilbertElliott):
        texts.append("Gilbert–Elliott")
    elif isinstance(direction.burst_loss, FourState):
        texts.append("4-state Markov")
    if direction.bit_errors:
        texts.append(f"BER {direction.bit_errors:.2g}")
    if direction.queue.kind != "droptail":
        texts.append(direction.queue.kind.upper().replace("_", "-") + (" ECN" if direction.queue.ecn else ""))
    for name in ("reorder", "duplicate", "corrupt"):
        if share := getattr(direction, name):
            texts.append(f"{name} {share * 100:.3g} %")
    return texts
