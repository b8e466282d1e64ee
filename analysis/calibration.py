# SPDX-License-Identifier: Apache-2.0
"""Links as built against the file: the measurements of `agent.calibrate` beside requested and allowed values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from base.quantities import format_rate, format_time
from network.direction import Direction
from network.frames import FULL_FRAME_BYTES
from plan.model import PROBE_BYTES, Plan

BUCKET_PACKETS = 2
"""What the token bucket in front of a rate lets through at once (network.tc.egress)."""
Z_99 = 2.5758
"""Two-sided 99 % quantile of the normal distribution."""
OK, OFF, NOT = "ok", "off", "not calibrated"


@dataclass(frozen=True)
class Bounds:
    """What a measured value may differ from what was asked.

    buffer_s: in real time the queue drains while it is looked at, by what the link sends in this time
    """

    rtt_ns: float
    rate: float
    timer_ns: float
    buffer_s: float


VIRTUAL = Bounds(rtt_ns=10_000, rate=0.002, timer_ns=10_000, buffer_s=0.0)
REAL = Bounds(rtt_ns=500_000, rate=0.01, timer_ns=500_000, buffer_s=0.002)


@dataclass(frozen=True)
class Row:
    """One quantity of one direction; `asked`, `measured` and `allowed` in `unit`, None where there is no number."""

    link: str
    quantity: str
    unit: str
    asked: float | None
    measured: float | None
    allowed: float | None
    verdict: str
    note: str = ""


def judge(plan: Plan, measured: Mapping[str, Any]) -> list[Row]:
    """All rows of a calibration ("calibration" of guest.json), in the order of the links, the host's timers first."""
    bounds = REAL if measured["realtime"] else VIRTUAL
    directions = _directions(plan)
    rows = [_timers(measured, bounds)]
    for result in measured["directions"]:
        forward, backward = directions[result["from"], result["to"], result["interface"]]
        for quantity in _QUANTITIES:
            row = quantity(f"{result['from']}→{result['to']}", forward, backward, result, bounds)
            if row is not None:
                rows.append(row)
    return rows


def _directions(plan: Plan) -> dict[tuple[str, str, str], tuple[Direction, Direction]]:
    """Both directions of each link, by its ends and the sender's interface."""
    directions = {}
    ports = {node.name: 0 for node in plan.network.nodes}
    for link in plan.network.links:
        directions[link.a, link.b, f"{link.a}-eth{ports[link.a]}"] = (link.forward, link.backward)
        directions[link.b, link.a, f"{link.b}-eth{ports[link.b]}"] = (link.backward, link.forward)
        ports[link.a] += 1
        ports[link.b] += 1
    return directions


def _row(link: str, quantity: str, unit: str, asked: float, measured: float, allowed: float, note: str = "") -> Row:
    verdict = OK if abs(measured - asked) <= allowed else OFF
    return Row(link, quantity, unit, asked, measured, allowed, verdict, note)


def _not(link: str, quantity: str, unit: str, asked: float | None, reason: str) -> Row:
    return Row(link, quantity, unit, asked, None, None, NOT, reason)


def _timers(measured: Mapping[str, Any], bounds: Bounds) -> Row:
    late = measured["timer_late_ns"]
    p99 = late[min(len(late) - 1, math.ceil(0.99 * len(late)) - 1)] if late else 0
    return _row("host", "timers late (p99)", "ns", 0.0, p99, bounds.timer_ns, "a busy CPU makes them late")


def _rtt(link: str, there: Direction, back: Direction, result: Mapping[str, Any], bounds: Bounds) -> Row:
    low, high = (sum(bound) for bound in zip(there.idle_ns(PROBE_BYTES), back.idle_ns(PROBE_BYTES), strict=True))
    note = "" if low == high else "of jitter, traces or overtaking"
    return _row(link, "RTT", "ns", (low + high) / 2, result["rtt_ns"], bounds.rtt_ns + (high - low) / 2, note)


def _sender(link: str, there: Direction, _back: Direction, result: Mapping[str, Any], _bounds: Bounds) -> Row:
    return _row(link, "held by sender", "packets", 0, result["held_packets"], 0, "delay belongs on the wire")


def _snap_length(link: str, _there: Direction, _back: Direction, result: Mapping[str, Any], _bounds: Bounds) -> Row:
    return _row(link, "offloads on", "", 0, len(result["offloads_on"]), 0, ", ".join(result["offloads_on"]))


def _rate(link: str, there: Direction, _back: Direction, result: Mapping[str, Any], bounds: Bounds) -> Row:
    if "rate_bps" not in result:
        return _not(link, "rate", "bit/s", there.rate_bps, result["not"].get("rate", "not measured"))
    assert there.rate_bps is not None
    return _row(link, "rate", "bit/s", there.rate_bps, result["rate_bps"], bounds.rate * there.rate_bps)


def _buffer(link: str, there: Direction, _back: Direction, result: Mapping[str, Any], bounds: Bounds) -> Row | None:
    if there.rate_bps is None:
        return None
    buffer = there.buffer
    unit = "packets" if buffer is None else buffer.unit
    asked = None if buffer is None else float(buffer.size)
    if "buffer" in result["not"] or buffer is None:
        return _not(link, "buffer", unit, asked, result["not"].get("buffer", "the queue has no limit"))
    drained = bounds.buffer_s * there.rate_bps / 8
    if buffer.unit == "packets":
        measured, slack = result["buffer_packets"], float(math.ceil(drained / FULL_FRAME_BYTES))
    else:  # whole frames: what is left over holds none
        measured, slack = result["buffer_bytes"], drained + buffer.size % FULL_FRAME_BYTES
    verdict = OK if buffer.size - slack <= measured <= buffer.size else OFF
    return Row(
        link, "buffer", unit, float(buffer.size), measured, slack, verdict, "never more, and not less than allowed"
    )


def _burst(link: str, there: Direction, _back: Direction, result: Mapping[str, Any], _bounds: Bounds) -> Row | None:
    if there.rate_bps is None:
        return None
    asked = BUCKET_PACKETS
    if there.polices and there.buffer is not None:
        asked = there.buffer.size // FULL_FRAME_BYTES
    if "burst_packets" not in result:
        return _not(link, "burst", "packets", asked, result["not"].get("burst", "not measured"))
    return _row(link, "burst", "packets", asked, result["burst_packets"], 0)


def _in_flight(link: str, there: Direction, _back: Direction, result: Mapping[str, Any], _bounds: Bounds) -> Row | None:
    """Nobody but the loss asked for may drop on the wire. More than asked is no fault: jitter lets packets of before arrive late."""
    if "in_flight_sent" not in result:
        reason = result["not"].get("in_flight", "not measured")
        return (
            _not(link, "wire holds", "packets", None, reason) if there.rate_bps is not None and there.delay_ns else None
        )
    sent, arrived = result["in_flight_sent"], result["in_flight_received"]
    share = there.mean_loss(FULL_FRAME_BYTES)
    lost = sent * share
    allowed = Z_99 * math.sqrt(_clumping(there) * lost * (1 - share)) + 1 if share else 0
    verdict = OK if arrived >= sent - lost - allowed else OFF
    note = "of as many as fit into its delay"
    return Row(link, "wire holds", "packets", sent - lost, arrived, allowed, verdict, note)


def _loss(link: str, there: Direction, _back: Direction, result: Mapping[str, Any], _bounds: Bounds) -> Row:
    if not there.loses:
        return _row(link, "loss", "packets", 0, result["wire_drops"], 0, "dropped on the wire")
    if "loss_sent" not in result:
        return _not(link, "loss", "share", None, "it changes with time")
    sent, arrived = result["loss_sent"], result["loss_received"]
    share = there.mean_loss(result["loss_frame_bytes"])
    allowed = (Z_99 * math.sqrt(_clumping(there) * sent * share * (1 - share)) + 1) / sent
    note = f"of {sent} packets of {result['loss_frame_bytes']} bytes"
    return _row(link, "loss", "share", share, (sent - arrived) / sent, allowed, note)


def _clumping(direction: Direction) -> float:
    """How much wider than binomial the number of losses is, where they come in bursts."""
    return 1.0 if direction.burst_loss is None else direction.burst_loss.clumping


_Quantity = Callable[[str, Direction, Direction, Mapping[str, Any], Bounds], Row | None]
_QUANTITIES: tuple[_Quantity, ...] = (_rtt, _rate, _buffer, _burst, _in_flight, _loss, _sender, _snap_length)


def shown(value: float | None, unit: str) -> str:
    """A value with its unit, as people write it."""
    if value is None:
        return "–"
    if unit == "ns":
        return format_time(value)
    if unit == "bit/s":
        return format_rate(round(value))
    if unit == "share":
        return f"{value:.4%}"
    return f"{value:.10g} {unit}".strip()


def as_text(row: Row) -> dict[str, str]:
    """A row for readers; what is not ok says why."""
    return {
        "link": row.link,
        "quantity": row.quantity,
        "asked": shown(row.asked, row.unit),
        "measured": shown(row.measured, row.unit),
        "allowed ±": shown(row.allowed, row.unit),
        "verdict": row.verdict,
        "why": "" if row.verdict == OK else row.note,
    }


def off(rows: list[Row]) -> Iterator[Row]:
    return (row for row in rows if row.verdict == OFF)
