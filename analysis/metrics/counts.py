# SPDX-License-Identifier: Apache-2.0
"""Packets, sequence numbers and timeouts of flows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.arrays import np
from analysis.metrics.needs import HIGHEST, PACKETS, SENT, TIMEOUTS
from analysis.metrics.rates import bytes_in
from analysis.metrics.registry import metric
from analysis.metrics.run import RunRecords, Window
from analysis.metrics.traffic import INITIAL_SECONDS, data_start_s


@metric("sent_packets", needs=(SENT,), unit="packets", label="Packets sent")
def sent_packets(run: RunRecords) -> float | None:
    """Packets' worth of payload that all flows sent, retransmissions included: bytes over each flow's largest payload.

    Source: Ho 2008 s4.3 (throughput as packets sent); intervals.payload_bytes, flows.max_payload_bytes.
    """
    return _packets(run, "payload_bytes")


@metric("delivered_packets", needs=(PACKETS,), unit="packets", label="Packets delivered", better="higher")
def delivered_packets(run: RunRecords) -> float | None:
    """Packets' worth of payload that all flows brought to their receivers: bytes over each flow's largest payload.

    Source: Yu 2009 ch. 2 (total throughput, packets acknowledged to the server); intervals.delivered_bytes, flows.max_payload_bytes.
    """
    return _packets(run, "delivered_bytes")


@metric("ecn_flows", needs=(PACKETS,), unit="flows", label="Flows with ECN")
def ecn_flows(run: RunRecords) -> float | None:
    """Flows whose ends agreed on ECN in the handshake, classic or accurate.

    Source: RFC 3168 s6.1.1, RFC 9768 s3.1.1; flows.ecn, flows.accurate_ecn.
    """
    return _agreed(run, "ecn", "accurate_ecn")


@metric("accurate_ecn_flows", needs=(PACKETS,), unit="flows", label="Flows with Accurate ECN")
def accurate_ecn_flows(run: RunRecords) -> float | None:
    """Flows whose ends agreed on Accurate ECN in the handshake.

    Source: RFC 9768 s3.1.1; flows.accurate_ecn.
    """
    return _agreed(run, "accurate_ecn")


def _agreed(run: RunRecords, *fields: str) -> float | None:
    """Flows in whose handshake one of these was agreed; None where no capture has shown a handshake."""
    seen = [
        flow for flow in run.tcp_flows if flow.get("handshake") and any(flow.get(name) is not None for name in fields)
    ]
    return float(sum(any(flow.get(name) for name in fields) for flow in seen)) if seen else None


def _packets(run: RunRecords, field: str) -> float | None:
    counts = [
        bytes_in(run.intervals[flow["flow"]], field, run.window) / size
        for flow in run.tcp_flows
        if (size := _packet_bytes(flow)) and flow["flow"] in run.intervals
    ]
    return sum(counts) if counts else None


@metric("initial_packets", needs=(PACKETS,), unit="packets", label="Initial packets", better="higher", keyed="seconds")
def initial_packets(run: RunRecords) -> dict[str, float | None]:
    """Packets' worth of payload delivered in the first n seconds from each flow's first data packet, all flows together, n from 1 to 10.

    Warm-up does not apply. A flow that begins less than n seconds before the run's end counts with what it delivered until then.

    Source: Yu 2009 ch. 2, figures 2-3 to 2-7 (initial n-second throughput, summed over all connections of the server);
    intervals.delivered_bytes, flows.max_payload_bytes.
    """
    values: dict[str, float | None] = {}
    for seconds in INITIAL_SECONDS:
        counts = [count for flow in run.tcp_flows if (count := _initial(run, flow, seconds)) is not None]
        values[str(seconds)] = sum(counts) if counts else None
    return values


def _initial(run: RunRecords, flow: Mapping[str, Any], seconds: int) -> float | None:
    start_s, columns, size = data_start_s(flow), run.intervals.get(flow["flow"]), _packet_bytes(flow)
    if start_s is None or columns is None or not size:
        return None
    return bytes_in(columns, "delivered_bytes", Window(start_s, min(start_s + seconds, run.window.end_s))) / size


def _packet_bytes(flow: Mapping[str, Any]) -> int | None:
    return flow.get("max_payload_bytes") or None


@metric(
    "highest_sequence_bytes", needs=(HIGHEST,), unit="bytes", label="Highest sequence", better="higher", keyed="flow"
)
def highest_sequence_bytes(run: RunRecords) -> dict[str, float | None]:
    """Highest sequence number that each flow has sent until the end of the run, counted in bytes from its first; warm-up does not apply.

    Source: Afifi 2014 ch. 8 (highest sequence number after 1000 s); intervals.payload_bytes less intervals.retransmitted_bytes, else the
    greatest sockets.snd_nxt.
    """
    return {flow["flow"]: _highest(run, flow["flow"]) for flow in run.tcp_flows}


def _highest(run: RunRecords, flow: str) -> float | None:
    columns, whole = run.intervals.get(flow), Window(0.0, run.window.end_s)
    if columns is not None and not np.isnan(columns["payload_bytes"]).all():
        return bytes_in(columns, "payload_bytes", whole) - bytes_in(columns, "retransmitted_bytes", whole)
    probed = run.windows.get(flow, {})
    inside = probed["snd_nxt"][probed["t_s"] <= run.window.end_s] if "snd_nxt" in probed else np.zeros(0)
    return float(inside.max()) if inside.size else None


@metric("timeouts", needs=(TIMEOUTS,), unit="1", label="Timeouts", better="lower", keyed="flow")
def timeouts(run: RunRecords) -> dict[str, int | None]:
    """How often each flow's retransmission timer expired, in its whole life; a timer that backs off counts each time.

    The kernel's own count, of the socket's last sample; else the estimate from a capture at the sender, which may be some more
    where much is lost.

    Source: Afifi 2014 ch. 8 (falls to one segment), RFC 6298 s5; tcp_info's tcpi_total_rto, else flows.timeouts.
    """
    return {flow["flow"]: flow.get("timeouts") for flow in run.tcp_flows}
