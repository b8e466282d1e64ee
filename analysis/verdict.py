# SPDX-License-Identifier: Apache-2.0
"""The verdict on a run's fidelity: requested against measured values. docs/fidelity.md has the rules.

A reason of severity "error" makes a run invalid, one of severity "warning" makes it suspect.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from analysis import calibration, limits, realtime
from analysis.results import Reason
from analysis.wide_area import clock_reasons, service_reasons
from network.direction import Direction
from network.frames import BARE_ACK_BYTES, FULL_FRAME_BYTES, IP_TCP_HEADER_BYTES, MTU_BYTES
from network.model import Interface, address_plan, idle_rtt_bounds_ns
from plan.model import PROBE_BYTES, Plan

RTT_TOLERANCE_NS = 10_000
RATE_TOLERANCE = 0.002
UNSTEADY_CLOCK_US = 1000.0
SATURATED_S = 1.0
"""Stretches with a queue all along must be this long in all before the rate is read from them."""
BUSIEST_SHARE = 0.25
"""The part of that time, its best, that is held against the rate where samples cannot say what happened between them."""
BUSY_PACKETS = 8
DENSE_NS = 20_000_000
"""Between queue samples further apart than this a link was surely busy only where what waited at the first lasts until the second."""
BURST_BYTES = 3 * FULL_FRAME_BYTES
Z_99 = 2.5758
"""Two-sided 99 % quantile of the normal distribution."""


@dataclass(frozen=True)
class Evidence:
    """What the rules look at. `facts` is guest.json, `console` the kernel's log, `damage` where raw files broke off,
    `clocks` what was taken off the clocks of hosts (collectors.clocks)."""

    plan: Plan
    facts: Mapping[str, Any]
    records: Path
    console: str
    damage: tuple[str, ...] = ()
    clocks: tuple[Mapping[str, Any], ...] = ()


def judge(evidence: Evidence) -> dict[str, Any]:
    """{"value": valid|suspect|invalid, "reasons": [...]} of a run; "clock" too where it was not the virtual one."""
    reasons = [reason for rule in RULES for reason in rule(evidence)]
    severities = {reason.severity for reason in reasons}
    value = "invalid" if "error" in severities else "suspect" if severities else "valid"
    clock = {"clock": realtime.clock_of(evidence.facts)} if evidence.plan.realtime else {}
    return {"value": value, "reasons": [asdict(reason) for reason in reasons], **clock}


def _idle_rtt(e: Evidence) -> Iterator[Reason]:
    for pair, measured in e.facts["idle_rtt"].items():
        source, destination = pair.split()
        low, high = idle_rtt_bounds_ns(e.plan.network, source, destination, PROBE_BYTES)
        tolerance = realtime.RTT_TOLERANCE_NS if e.plan.realtime else RTT_TOLERANCE_NS
        if not low - tolerance <= measured <= high + tolerance:
            expected = f"{low / 1e6:.4f} ms" if low == high else f"{low / 1e6:.4f} to {high / 1e6:.4f} ms"
            yield Reason(
                "idle-rtt", "error", f"{source}–{destination}: {measured / 1e6:.4f} ms measured, {expected} asked"
            )


def _calibration(e: Evidence) -> Iterator[Reason]:
    """Every link that the traffic crosses was measured as built, before the run."""
    if "calibration" not in e.facts:
        return
    for row in calibration.off(calibration.judge(e.plan, e.facts["calibration"])):
        message = (
            f"{calibration.shown(row.measured, row.unit)} measured, {calibration.shown(row.asked, row.unit)} asked"
        )
        yield Reason("calibration", "error", f"{row.link}: {row.quantity}: {message}")


def _offloads(e: Evidence) -> Iterator[Reason]:
    for node, environment in e.facts["environment"]["nodes"].items():
        for interface, offloads in environment["offloads"].items():
            on = [name for name, is_on in offloads.items() if is_on]
            if on:
                yield Reason("offloads", "error", f"{node} {interface}: {', '.join(on)} on")


def _lost_records(e: Evidence) -> Iterator[Reason]:
    for interface, drops in e.facts["capture_drops"].items():
        if drops:
            yield Reason("capture-drops", "error", f"{interface}: the capture lost {drops} packets")
    for interface in e.facts.get("captures_cut", []):
        yield Reason(
            "capture-cut",
            "warning",
            f"{interface}: the capture reached its size budget; its packets are the first ones only",
        )
    if e.facts["tcp_probe_lost"]:
        yield Reason("probe-lost", "warning", f"the trace ring lost {e.facts['tcp_probe_lost']} events")


def _damaged(e: Evidence) -> Iterator[Reason]:
    for message in e.damage:
        yield Reason("damaged-file", "error", f"{message}; only what stands before was used")


def _clocks(e: Evidence) -> Iterator[Reason]:
    for clock in e.clocks:
        if clock["against"] is None:
            message = "no flow captured at both ends ties it to the run's; its times are taken as they are"
            yield Reason("clock-unknown", "warning", f"clock {clock['clock']}: {message}")
        elif clock["unsteady_us"] > UNSTEADY_CLOCK_US:
            message = f"parts of the run are {clock['unsteady_us']:.0f} µs from one offset and drift; was it stepped?"
            yield Reason("clock-unsteady", "warning", f"clock {clock['clock']}: {message}")


def _frames(e: Evidence) -> Iterator[Reason]:
    columns = ["flow", "data_packets", "max_payload_bytes", "unseen_bytes"]
    for row in pq.read_table(e.records / "flows.parquet", columns=columns).to_pylist():
        # a wide-area host's own card may segment: its captures then hold what the host handed to it (docs/wan.md)
        if "wan" not in e.facts and (row["max_payload_bytes"] or 0) > MTU_BYTES - IP_TCP_HEADER_BYTES:
            largest = f"a packet with {row['max_payload_bytes']} bytes of payload"
            yield Reason("frame-size", "error", f"flow {row['flow']}: {largest} was captured, more than the MTU holds")
        if row["data_packets"] == 0 and _is_flow(e.plan, row["flow"]):
            yield Reason("no-data", "error", f"flow {row['flow']}: not one data packet was captured")
        if row["unseen_bytes"]:
            message = f"{row['unseen_bytes']} bytes were acknowledged that the sender's capture never saw"
            yield Reason("capture-gaps", "error", f"flow {row['flow']}: {message}")


def _is_flow(plan: Plan, name: str) -> bool:
    """Whether a connection belongs to a flow; one of the traffic may begin just before the end."""
    apps = {flow.name: flow.app for flow in plan.flows}
    return apps.get(name, apps.get(name.rpartition(".")[0])) in ("iperf3", "file", None)


def _wires(e: Evidence) -> Iterator[tuple[str, Direction, Mapping[str, Any]]]:
    """Every wire with the statistics of its first queueing discipline; link k has the wires wka and wkb."""
    statistics = {
        entry["dev"]: entry
        for entry in e.facts["queue_statistics"].get("wires", [])
        if entry["kind"] in ("netem", "warp_wire") and entry["root"]
    }
    for number, link in enumerate(e.plan.network.links):
        for end, name, direction in (
            ("b", f"{link.a}→{link.b}", link.forward),
            ("a", f"{link.b}→{link.a}", link.backward),
        ):
            if entry := statistics.get(f"w{number}{end}"):
                yield name, direction, entry


def _loss(e: Evidence) -> Iterator[Reason]:
    for name, direction, entry in _wires(e):
        drops, offered = entry["drops"], entry["packets"] + entry["drops"]
        if not direction.loses:
            if drops:
                yield Reason("wire-drops", "error", f"{name}: {drops} packets dropped, although no loss was requested")
            continue
        if direction.varying_loss is not None or not offered:
            continue  # how many packets met which loss is not in the statistics
        # bit errors: the mean length of frames stands for all of them
        share = direction.mean_loss(round(entry["bytes"] / max(1, entry["packets"])))
        wider = 1.0 if direction.burst_loss is None else direction.burst_loss.clumping
        spread = Z_99 * math.sqrt(wider * offered * share * (1 - share)) + 1
        if direction.bit_errors:
            spread += offered * abs(direction.mean_loss(FULL_FRAME_BYTES) - direction.mean_loss(BARE_ACK_BYTES))
        if abs(drops - offered * share) > spread:
            expected = f"{share:.4%} of {offered} asked"
            yield Reason(
                "loss",
                "warning",
                f"{name}: {drops} packets lost, {expected}; outside the 99 % interval of ±{spread:.0f}",
            )


def _queues(e: Evidence) -> Iterator[tuple[Interface, Mapping[str, Any]]]:
    """Every sampled interface that has a rate, with its columns."""
    if not (e.records / "queues.parquet").exists():
        return
    table = pq.read_table(e.records / "queues.parquet")
    names = np.array(table["interface"].to_pylist(), dtype=object)
    for plan in address_plan(e.plan.network).values():
        for interface in plan.interfaces:
            mask = names == interface.name
            if interface.egress.rate_bps is not None and mask.any():
                columns = ("time_ns", "backlog_packets", "backlog_bytes", "sent_bytes", "drops")
                yield interface, {name: table[name].to_numpy()[mask] for name in columns}


def _rate(e: Evidence) -> Iterator[Reason]:
    """While many packets wait, a link sends at its rate; it never sends faster."""
    for interface, queue in _queues(e):
        direction = interface.egress
        tolerance = realtime.RATE_TOLERANCE if e.plan.realtime else RATE_TOLERANCE
        time_ns, sent = queue["time_ns"] - e.facts["start_realtime_ns"], queue["sent_bytes"]
        waiting = queue["backlog_packets"] >= _surely_busy(interface)
        loaded = [(*_stretches(waiting & _lasts(direction, time_ns, queue["backlog_bytes"])), SATURATED_S)]
        if len(time_ns) > 1 and np.median(np.diff(time_ns)) <= DENSE_NS:
            loaded.append((*_busiest(direction, time_ns, sent, *_stretches(waiting)), SATURATED_S * BUSIEST_SHARE))
        for first, last, enough_s in loaded:
            total_s, total = int((time_ns[last] - time_ns[first]).sum()) / 1e9, int((sent[last] - sent[first]).sum())
            # what the link could have sent in those stretches, and a packet cut at either end of each of them
            could = sum(
                direction.capacity_bytes(int(time_ns[a]), int(time_ns[b])) for a, b in zip(first, last, strict=True)
            )
            slack = 2 * len(first) * FULL_FRAME_BYTES
            if total_s >= enough_s and abs(total - could) > tolerance * could + slack:
                message = f"{total * 8e-6 / total_s:.3f} Mbit/s under load, {could * 8e-6 / total_s:.3f} asked"
                yield Reason("rate", "error", f"{interface.name}: {message}")
                break
        windows = np.searchsorted(time_ns, time_ns + 10**9)
        whole = np.flatnonzero(windows < len(time_ns))
        could_s = _capacities_bytes(direction, time_ns[whole], time_ns[windows[whole]])
        sent_s = sent[windows[whole]] - sent[whole]
        for faster in np.flatnonzero(sent_s > could_s * (1 + tolerance) + _burst_bytes(direction))[:1]:
            message = f"{sent_s[faster] * 8e-6:.3f} Mbit/s in one second, {could_s[faster] * 8e-6:.3f} asked"
            yield Reason("rate", "error", f"{interface.name}: {message}")


def _stretches(busy: Any) -> tuple[Any, Any]:
    """First and last sample of each stretch of samples that are all busy."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], busy.astype(np.int8), [0]))))
    return edges[::2], edges[1::2] - 1


def _busiest(direction: Direction, time_ns: Any, sent: Any, first: Any, last: Any) -> tuple[Any, Any]:
    """The quarter (of their time) of the stretches, cut at every second, in which the link sent most of what it could.

    Packets wait at each of their samples, but a queue that goes up and down within a round trip may have run empty between
    two samples, and the link then has sent less. It has not in all of them: a link that is too slow is so in its best, too.
    Empty where all of them are shorter than `SATURATED_S`.
    """
    pieces = [
        (int(a), int(b))
        for start, end in zip(first, last, strict=True)
        for a, b in itertools.pairwise(_cut(time_ns, int(start), int(end)))
    ]
    whole_ns = sum(int(time_ns[b] - time_ns[a]) for a, b in pieces)
    if whole_ns < SATURATED_S * 1e9:
        return first[:0], last[:0]

    def share(piece: tuple[int, int]) -> float:
        could = direction.capacity_bytes(*(int(time_ns[sample]) for sample in piece))
        return float(sent[piece[1]] - sent[piece[0]]) / could if could else 0.0

    best, best_ns = [], 0
    for piece in sorted(pieces, key=share, reverse=True):
        best.append(piece)
        best_ns += int(time_ns[piece[1]] - time_ns[piece[0]])
        if best_ns >= BUSIEST_SHARE * whole_ns:
            break
    return np.array([a for a, _ in best]), np.array([b for _, b in best])


def _cut(time_ns: Any, start: int, end: int) -> list[int]:
    """Samples from the start to the end of a stretch, a second apart; the last piece may be longer."""
    seconds = np.arange(time_ns[start], time_ns[end] - 10**9 + 1, 10**9)
    return [*np.searchsorted(time_ns, seconds).tolist(), end] if len(seconds) else [start, end]


def _burst_bytes(direction: Direction) -> int:
    """What may pass beyond the rate: a packet or two of the shaper's, or a policer's whole bucket."""
    return direction.buffer.size if direction.polices and direction.buffer is not None else BURST_BYTES


def _lasts(direction: Direction, time_ns: Any, backlog_bytes: Any) -> Any:
    """Per sample, whether what waits keeps the link busy until the next one, whatever happens in between."""
    return backlog_bytes >= np.append(_capacities_bytes(direction, time_ns[:-1], time_ns[1:]), 0)


def _capacities_bytes(direction: Direction, start_ns: Any, end_ns: Any) -> Any:
    """What the link can send over each of these stretches of the run (arrays of equal length, ns); 0 where it has no rate."""
    if direction.varying_rate is None:
        return (direction.rate_bps or 0) * (end_ns - start_ns).astype(np.float64) / 8e9
    stretches = zip(start_ns.tolist(), end_ns.tolist(), strict=True)
    return np.array([direction.capacity_bytes(start, end) for start, end in stretches])


def _surely_busy(interface: Interface) -> int:
    """Packets that must wait at a sample for the link to count as busy until the next: near-empty queues run empty
    between two samples."""
    buffer = interface.egress.buffer
    return BUSY_PACKETS if buffer is None else max(BUSY_PACKETS, int(buffer.packets(FULL_FRAME_BYTES) / 8))


def _buffer(e: Evidence) -> Iterator[Reason]:
    for interface, queue in _queues(e):
        buffer = interface.egress.buffer
        if buffer is None:
            if queue["drops"][-1]:
                yield Reason(
                    "buffer", "error", f"{interface.name}: {queue['drops'][-1]} drops in a queue that has no limit"
                )
            continue
        highest = int(queue["backlog_packets" if buffer.unit == "packets" else "backlog_bytes"].max())
        if highest > buffer.size:
            yield Reason("buffer", "error", f"{interface.name}: {highest} {buffer.unit} in a buffer of {buffer.size}")


def _limits(e: Evidence) -> Iterator[Reason]:
    for rule, severity, message in limits.judge(e.facts, e.records):
        yield Reason(rule, severity, message)


def _cage(e: Evidence) -> Iterator[Reason]:
    for line in e.console.splitlines():
        if line.startswith("cage: "):
            message = (
                f"the guest ran without its cage ({line.removeprefix('cage: ')}) and could write wherever this user can"
            )
            yield Reason("uncaged", "warning", message)


def _confined(e: Evidence) -> Iterator[Reason]:
    for message in service_reasons(e.facts.get("confined", {})):
        yield Reason("unconfined", "warning", message)


def _kernel(e: Evidence) -> Iterator[Reason]:
    for line in e.console.splitlines():
        if re.search(r"WARNING: .*CPU", line) or "UBSAN:" in line:
            yield Reason("kernel-warning", "warning", line.strip()[:200])


def _realtime(e: Evidence) -> Iterator[Reason]:
    for rule, severity, message in realtime.judge(e.facts):
        yield Reason(rule, severity, message)


def _campaign_clocks(e: Evidence) -> Iterator[Reason]:
    for message in clock_reasons(e.facts["wan"]) if "wan" in e.facts else ():
        yield Reason("clock", "warning", message)


RULES: tuple[Callable[[Evidence], Iterator[Reason]], ...] = (
    _idle_rtt,
    _calibration,
    _offloads,
    _lost_records,
    _damaged,
    _clocks,
    _frames,
    _loss,
    _rate,
    _buffer,
    _limits,
    _cage,
    _confined,
    _kernel,
    _realtime,
    _campaign_clocks,
)
