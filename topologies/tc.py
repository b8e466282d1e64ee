# SPDX-License-Identifier: Apache-2.0
"""How a direction of a link becomes queueing disciplines: lines for `tc -batch`, and the limits they carry."""

from __future__ import annotations

from topologies.model import FRAME_HEADER_BYTES, Direction

MTU_BYTES = 1500
NETEM_MARGIN = 2
"""netem's limit counts the packets in flight; this many times rate × delay never drops."""
NETEM_MIN_LIMIT = 1000
UNLIMITED_PPS = 2_000_000
"""Packets per second that bound a wire without a rate (24 Gbit/s of full frames)."""
NIC_QUEUE_BYTES = 1 << 30
"""Queue of a direction that has a rate but no buffer of its own: large enough never to drop."""


def wire_lines(source: str, target: str, direction: Direction) -> list[str]:
    """tc lines that carry what arrives at `source` to `target`, with the direction's delay and loss there."""
    lines = [
        f"qdisc add dev {source} ingress",
        f"filter add dev {source} ingress matchall action mirred egress redirect dev {target}",
    ]
    if direction.has_wire or direction.rate_bps:
        netem = f"qdisc add dev {target} root netem limit {netem_limit(direction)}"
        if direction.delay_ns:
            netem += f" delay {direction.delay_ns / 1000:.3f}us"
        if direction.loss:
            netem += f" loss random {direction.loss * 100:.10f}%"
        if direction.rate_bps:
            netem += f" rate {direction.rate_bps}bit"
        lines.append(netem)
    return lines


def netem_limit(direction: Direction) -> int:
    """Packets that netem must be able to hold: those in flight, were all of them 64 bytes long, with a margin."""
    pps = UNLIMITED_PPS if direction.rate_bps is None else direction.rate_bps / (64 * 8)
    return max(NETEM_MIN_LIMIT, int(NETEM_MARGIN * pps * direction.delay_ns / 1e9))


def egress_lines(interface: str, direction: Direction) -> list[str]:
    """tc lines for the paced buffer on an interface; none where the direction has no rate.

    The bucket holds two full frames: with one, a timer that fires late loses tokens and with them rate.
    """
    if direction.rate_bps is None:
        return []
    burst = 2 * (MTU_BYTES + FRAME_HEADER_BYTES)
    lines = [
        f"qdisc add dev {interface} root handle 1: tbf rate {direction.rate_bps}bit burst {burst} limit {NIC_QUEUE_BYTES}"
    ]
    if direction.buffer is not None:
        kind = "pfifo" if direction.buffer.unit == "packets" else "bfifo"
        lines.append(f"qdisc add dev {interface} parent 1:1 handle 10: {kind} limit {direction.buffer.size}")
    return lines
