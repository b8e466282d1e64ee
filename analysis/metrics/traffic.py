# SPDX-License-Identifier: Apache-2.0
"""Metrics of all flows together: rates, retransmissions, round-trip times, completion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.metrics.needs import BEGINNING, COMPLETION, DELIVERED, RETRANSMISSIONS, RTT, SENT, TRAFFIC
from analysis.metrics.rates import bytes_in, mean_mbps
from analysis.metrics.registry import metric
from analysis.metrics.run import RunRecords, Window

FLOW_FIELDS = (
    "flow",
    "cca",
    "src",
    "dst",
    "start_s",
    "throughput_mbps",
    "goodput_mbps",
    "retransmitted_bytes",
    "rtt_min_ms",
    "rtt_mean_ms",
    "rtt_p95_ms",
    "completion_s",
)
# Yu 2009 figures 2-7 and 2-12: n from 1 to 10.
INITIAL_SECONDS = tuple(range(1, 11))


def _sum_mbps(run: RunRecords, field: str) -> float | None:
    rates = [mean_mbps(columns, field, run.window) for columns in run.intervals.values()]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


@metric("throughput_mbps", needs=(SENT,), unit="Mbit/s", label="Throughput", better="higher")
def throughput_mbps(run: RunRecords) -> float | None:
    """Wire bytes that all senders put on the network, headers and retransmissions included, per second.

    Source: Ho 2008 s5.2.1; intervals.wire_bytes.
    """
    return _sum_mbps(run, "wire_bytes")


@metric("goodput_mbps", needs=(DELIVERED,), unit="Mbit/s", label="Goodput", better="higher")
def goodput_mbps(run: RunRecords) -> float | None:
    """Payload bytes that reached the receivers for the first time, all flows together, per second.

    Source: Afifi 2014 ch. 5 (sent minus retransmitted bytes over time); intervals.delivered_bytes.
    """
    return _sum_mbps(run, "delivered_bytes")


@metric("retransmission_rate", needs=(RETRANSMISSIONS,), unit="1", label="Retransmissions", better="lower")
def retransmission_rate(run: RunRecords) -> float | None:
    """Data packets that were retransmissions over all data packets sent, over the flows' whole lives.

    Source: RFC 4898 (tcpEStatsPerfSegsRetrans); flows.retransmitted_packets and flows.data_packets.
    """
    sent = sum(flow.get("data_packets") or 0 for flow in run.flows)
    again = sum(flow.get("retransmitted_packets") or 0 for flow in run.flows)
    return again / sent if sent else None


@metric("rtt_min_ms", needs=(RTT,), unit="ms", label="RTT min", better="lower")
def rtt_min_ms(run: RunRecords) -> float | None:
    """Smallest round-trip time of any flow in its whole life.

    Source: Ho 2008 ch. 3 (BaseRTT); flows.rtt_min_ms.
    """
    return min((value for flow in run.flows if (value := flow.get("rtt_min_ms")) is not None), default=None)


@metric("rtt_mean_ms", needs=(RTT,), unit="ms", label="RTT mean", better="lower")
def rtt_mean_ms(run: RunRecords) -> float | None:
    """Mean round-trip time over every acknowledgement that gives an unambiguous sample.

    Source: RFC 6298 s3 (Karn's rule); acks.rtt_us.
    """
    return run.rtt_sum_ms / run.rtt_samples if run.rtt_samples else None


@metric("rtt_p95_ms", needs=(RTT,), unit="ms", label="RTT p95", better="lower")
def rtt_p95_ms(run: RunRecords) -> float | None:
    """95th percentile of the round-trip time of the flow for which it is largest, over its whole life.

    Source: RFC 7928 s2.6; flows.rtt_p95_ms.
    """
    return max((value for flow in run.flows if (value := flow.get("rtt_p95_ms")) is not None), default=None)


@metric("completion_s", needs=(COMPLETION,), unit="s", label="Completion", better="lower")
def completion_s(run: RunRecords) -> float | None:
    """Time from its start until the slowest flow of a given size was delivered, null while one of them is not.

    Source: Ho 2008 tables 6.2-6.4; flows.completion_s.
    """
    times = [value for flow in run.flows if (value := flow.get("completion_s")) is not None]
    return max(times, default=None)


def data_start_s(flow: Mapping[str, Any]) -> float | None:
    """When the flow's first data left: the papers' simulated senders have no handshake before it."""
    start_s: float | None = flow.get("data_start_s")
    return flow.get("start_s") if start_s is None else start_s


def initial_goodput(run: RunRecords, flow: Mapping[str, Any], seconds: int) -> float | None:
    """Goodput of one flow over its first seconds with data, None where the run ends before."""
    start_s = data_start_s(flow)
    columns = run.intervals.get(flow["flow"])
    if start_s is None or columns is None or start_s + seconds > run.window.end_s:
        return None
    window = Window(start_s, start_s + seconds)
    return bytes_in(columns, "delivered_bytes", window) * 8 / seconds / 1e6


@metric(
    "initial_goodput_mbps", needs=(BEGINNING,), unit="Mbit/s", label="Initial goodput", better="higher", keyed="seconds"
)
def initial_goodput_mbps(run: RunRecords) -> dict[str, float | None]:
    """Payload delivered in the first n seconds from each flow's first data packet over n, mean of the flows, n from 1 to 10.

    Warm-up does not apply here: the start is what is measured.
    Source: Yu 2009 ch. 2, figures 2-3 to 2-7 (initial n-second throughput); intervals.delivered_bytes.
    """
    values: dict[str, float | None] = {}
    for seconds in INITIAL_SECONDS:
        rates = [initial_goodput(run, flow, seconds) for flow in run.flows]
        known = [rate for rate in rates if rate is not None]
        values[str(seconds)] = sum(known) / len(known) if known else None
    return values


@metric("applications", needs=(TRAFFIC,), unit="", label="Applications", keyed="name.field")
def applications(run: RunRecords) -> list[dict[str, Any]]:
    """What each traffic entry measured of itself: completion times, page loads, rebuffering, probe round-trip times.

    Source: docs/traffic.md; applications.json.
    """
    return [dict(row) for row in run.applications]


@metric("flows", unit="", label="Flows", keyed="flow.field")
def flows(run: RunRecords) -> list[dict[str, Any]]:
    """Each flow by itself, over its whole life: the fields of the metrics contract.

    Source: docs/architecture.md; flows.
    """
    return [{field: flow.get(field) for field in FLOW_FIELDS} for flow in run.flows]
