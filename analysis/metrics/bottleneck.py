# SPDX-License-Identifier: Apache-2.0
"""Metrics of queues, from their samples: of the bottleneck's, and of any by the name of its interface."""

from __future__ import annotations

from analysis.arrays import np
from analysis.metrics.needs import QUEUE
from analysis.metrics.registry import metric
from analysis.metrics.run import RunRecords, Window
from analysis.records import Columns

# Samples that cover less of the window than this say too little about it: the metric is unknown then.
LEAST_COVERAGE = 0.9


def _covered(run: RunRecords) -> tuple[Columns, Window] | None:
    """The bottleneck's samples in order with the sampled part of the window, None where too little of it was sampled."""
    return None if run.queue is None else _sampled(run.queue, run)


def _sampled(samples: Columns, run: RunRecords) -> tuple[Columns, Window] | None:
    if samples["t_s"].size < 2:
        return None
    order = np.argsort(samples["t_s"], kind="stable")
    queue = {name: values[order] for name, values in samples.items()}
    sampled = Window(max(run.window.start_s, float(queue["t_s"][0])), min(run.window.end_s, float(queue["t_s"][-1])))
    if sampled.length_s <= 0 or sampled.length_s < LEAST_COVERAGE * run.window.length_s:
        return None
    return queue, sampled


def _counted(queue: Columns, field: str, sampled: Window) -> float:
    """Growth of a counter over the window, linear between samples."""
    first, last = np.interp([sampled.start_s, sampled.end_s], queue["t_s"], queue[field])
    return float(last - first)


def _events(queue: Columns, field: str, sampled: Window) -> int:
    """Growth of a counter over the window in whole events, between the last samples not after its edges."""
    first, last = np.searchsorted(queue["t_s"], [sampled.start_s, sampled.end_s], side="right") - 1
    return int(queue[field][last] - queue[field][first])


def sent_at_bottleneck(run: RunRecords) -> tuple[float, Window] | None:
    """Wire bytes that left the bottleneck, and the sampled part of the window; None where too little was sampled."""
    covered = _covered(run)
    return None if covered is None else (_counted(covered[0], "sent_bytes", covered[1]), covered[1])


@metric("utilization", needs=(QUEUE,), unit="1", label="Utilisation", better="higher")
def utilization(run: RunRecords) -> float | None:
    """Wire bytes (Ethernet frames without FCS) that left the bottleneck, over its rate times the time.

    Source: Ho 2008 tables 5.1-5.8; queues.sent_bytes of the bottleneck's interface.
    """
    covered = _covered(run)
    if covered is None or run.bottleneck is None or run.bottleneck.rate_bps is None:
        return None
    queue, sampled = covered
    return _counted(queue, "sent_bytes", sampled) * 8 / (run.bottleneck.rate_bps * sampled.length_s)


@metric("queue_mean_packets", needs=(QUEUE,), unit="packets", label="Queue mean", better="lower")
def queue_mean_packets(run: RunRecords) -> float | None:
    """Backlog of the bottleneck averaged over time, each sample standing until the next.

    Source: Ho 2008 figures 5.7 and 5.10; queues.backlog_packets.
    """
    covered = _covered(run)
    return None if covered is None else _mean_backlog(*covered)


def _mean_backlog(queue: Columns, sampled: Window) -> float:
    edges_s = np.clip(np.append(queue["t_s"], sampled.end_s), sampled.start_s, sampled.end_s)
    return float(np.sum(queue["backlog_packets"] * np.diff(edges_s)) / sampled.length_s)


@metric("queue_max_packets", needs=(QUEUE,), unit="packets", label="Queue max", better="lower")
def queue_max_packets(run: RunRecords) -> int | None:
    """Largest sampled backlog of the bottleneck; a peak between two samples is not seen.

    Source: Ho 2008 figure 5.3; queues.backlog_packets.
    """
    covered = _covered(run)
    if covered is None:
        return None
    queue, sampled = covered
    inside = (queue["t_s"] >= sampled.start_s) & (queue["t_s"] <= sampled.end_s)
    return int(queue["backlog_packets"][inside].max()) if inside.any() else None


@metric("queue_drops", needs=(QUEUE,), unit="packets", label="Drops", better="lower")
def queue_drops(run: RunRecords) -> int | None:
    """Packets that the bottleneck's queue dropped.

    Source: RFC 7928 s2.3; queues.drops, a counter.
    """
    covered = _covered(run)
    return None if covered is None else _events(covered[0], "drops", covered[1])


@metric("queue_marks", needs=(QUEUE,), unit="packets", label="Marks", better="lower")
def queue_marks(run: RunRecords) -> int | None:
    """Packets that the bottleneck's queue marked with ECN's "congestion experienced" instead of dropping them.

    Source: RFC 7567 s4.2.1, RFC 3168; queues.marks, a counter.
    """
    covered = _covered(run)
    return None if covered is None else _events(covered[0], "marks", covered[1])


@metric("loss_rate", needs=(QUEUE,), unit="1", label="Loss rate", better="lower")
def loss_rate(run: RunRecords) -> float | None:
    """Packets dropped at the bottleneck over packets that arrived there (sent and dropped).

    Source: Kato 2012 s5.1.1, Tokuda 2003 figure 10; queues.drops and queues.sent_packets.
    """
    covered = _covered(run)
    if covered is None:
        return None
    dropped, sent = (_events(covered[0], field, covered[1]) for field in ("drops", "sent_packets"))
    return dropped / (dropped + sent) if dropped + sent > 0 else None


def _named(run: RunRecords) -> dict[str, tuple[Columns, Window]]:
    """Samples of each interface that something passed, by its name."""
    covered = {name: sampled for name, samples in run.queues.items() if (sampled := _sampled(samples, run)) is not None}
    return {name: sampled for name, sampled in covered.items() if sampled[0]["sent_packets"][-1] > 0}


@metric("queue_departed_packets", needs=(QUEUE,), unit="packets", label="Departures", keyed="interface")
def queue_departed_packets(run: RunRecords) -> dict[str, int]:
    """Packets that left the queue of an interface; parts are interfaces that something passed, like `r1-eth1`.

    Source: Yu 2009 s3.3.2 (packets that left the queue R-T); queues.sent_packets, a counter.
    """
    return {name: _events(*_counter(sampled, "sent_packets")) for name, sampled in _named(run).items()}


@metric("queue_arrived_packets", needs=(QUEUE,), unit="packets", label="Arrivals", keyed="interface")
def queue_arrived_packets(run: RunRecords) -> dict[str, int]:
    """Packets that came to the queue of an interface: those that left it, were dropped, and by how many more wait in the end.

    Source: Yu 2009 s3.3.2 (packets that arrived at the queue R-T); queues.sent_packets, queues.drops, queues.backlog_packets.
    """
    fields = ("sent_packets", "drops", "backlog_packets")
    return {name: sum(_events(*_counter(sampled, f)) for f in fields) for name, sampled in _named(run).items()}


@metric(
    "queue_backlog_packets", needs=(QUEUE,), unit="packets", label="Mean backlog", better="lower", keyed="interface"
)
def queue_backlog_packets(run: RunRecords) -> dict[str, float]:
    """Backlog of an interface's queue averaged over time, as queue_mean_packets is for the bottleneck.

    Source: Yu 2009 s3.3.2 (mean queue R-T); queues.backlog_packets.
    """
    return {name: _mean_backlog(*sampled) for name, sampled in _named(run).items()}


def _counter(sampled: tuple[Columns, Window], field: str) -> tuple[Columns, str, Window]:
    return sampled[0], field, sampled[1]
