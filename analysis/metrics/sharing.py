# SPDX-License-Identifier: Apache-2.0
"""How algorithms share a bottleneck, and how they use bandwidth that others leave."""

from __future__ import annotations

from analysis.metrics.bottleneck import sent_at_bottleneck
from analysis.metrics.fairness import common_window
from analysis.metrics.needs import DELIVERED, QUEUE, SENT
from analysis.metrics.rates import bytes_in
from analysis.metrics.registry import metric
from analysis.metrics.run import RunRecords, Window


def _by_cca(run: RunRecords) -> dict[str, tuple[int, float]]:
    """Flows and bytes delivered per algorithm, while all flows are there."""
    window = common_window(run)
    by_cca: dict[str, tuple[int, float]] = {}
    for flow in run.tcp_flows:
        columns = run.intervals.get(flow["flow"])
        delivered = 0.0 if columns is None else bytes_in(columns, "delivered_bytes", window)
        flows, total = by_cca.get(flow["cca"], (0, 0.0))
        by_cca[flow["cca"]] = (flows + 1, total + delivered)
    return by_cca


@metric("algorithm_share", needs=(DELIVERED,), unit="1", label="Share by algorithm", keyed="algorithm")
def algorithm_share(run: RunRecords) -> dict[str, float | None]:
    """Part of all flows' goodput that the flows of an algorithm have together, while all flows are there.

    Source: Ho 2008 s5.5, figures 5.18-5.26 (percentage of the m flows and of the SACK flows); intervals.delivered_bytes.
    """
    shares = _by_cca(run)
    total = sum(delivered for _, delivered in shares.values())
    return {cca: delivered / total if total > 0 else None for cca, (_, delivered) in shares.items()}


@metric("algorithm_fair_share", needs=(DELIVERED,), unit="1", label="Goodput over fair share", keyed="algorithm")
def algorithm_fair_share(run: RunRecords) -> dict[str, float | None]:
    """Mean goodput of an algorithm's flows over the mean of all flows, while all are there; 1 is friendly to everybody.

    Source: Kato 2012 s5.1.2 (normalised throughput), Ho 2008 s5.5; intervals.delivered_bytes.
    """
    shares = _by_cca(run)
    flows, total = (sum(part[i] for part in shares.values()) for i in (0, 1))
    return {cca: delivered / n / (total / flows) if total > 0 else None for cca, (n, delivered) in shares.items()}


@metric(
    "idle_bandwidth_used",
    needs=(DELIVERED, SENT, QUEUE),
    unit="1",
    label="Idle bandwidth used",
    better="higher",
)
def idle_bandwidth_used(run: RunRecords) -> float | None:
    """What the flows delivered (as wire bytes) over that and what the bottleneck could have sent and did not.

    With on-off traffic beside the flows this is the part of the bandwidth that the traffic leaves idle which the flows
    use: responsiveness.
    Source: Kato 2012 s5.1.1, figures 5.1-5.3 (normalised utilisation of the idle bandwidth); queues.sent_bytes,
    intervals.delivered_bytes.
    """
    covered = sent_at_bottleneck(run)
    if covered is None or run.bottleneck is None or run.bottleneck.rate_bps is None:
        return None
    sent, sampled = covered
    unused = max(0.0, run.bottleneck.rate_bps * sampled.length_s / 8 - sent)
    used = sum(_wire_delivered(run, flow["flow"], sampled) for flow in run.tcp_flows)
    return used / (used + unused) if used > 0 else None


def _wire_delivered(run: RunRecords, flow: str, window: Window) -> float:
    """Delivered bytes with the headers that they had on the wire."""
    columns = run.intervals.get(flow)
    if columns is None:
        return 0.0
    wire, payload, delivered = (
        bytes_in(columns, name, window) for name in ("wire_bytes", "payload_bytes", "delivered_bytes")
    )
    return delivered * wire / payload if payload > 0 else 0.0
