# SPDX-License-Identifier: Apache-2.0
"""How often sockets and queues are sampled, and how many rows a run gets by that: bounded before it is started."""

from __future__ import annotations

from collections.abc import Iterable

from analysis.records import MOST_KEPT
from base import quantities
from base.errors import Problem, SpecError
from network.model import Network
from plan.model import FlowPlan
from schema.load import Document, Loc
from schema.model import Experiment

INTERVAL_S = 0.1
"""Of a flow's intervals (collectors.wire)."""


def intervals(
    experiment: Experiment, document: Document, network: Network, flows: Iterable[FlowPlan]
) -> tuple[float | None, float | None]:
    """Of sockets and of queues, in seconds; None: not sampled.

    Raises SpecError where a run would have more rows than can be read.
    """
    connections, duration_s = sum(flow.parallel for flow in flows), quantities.seconds(experiment.duration)
    samplers = experiment.samplers
    sockets_s, queues_s = _seconds(samplers.sockets), _seconds(samplers.queues)
    ends = 2 * len(network.links)
    _check(document, ("duration",), experiment.duration, duration_s, INTERVAL_S, connections, "connections of flows")
    for name, text, interval_s, count, what in (
        ("sockets", samplers.sockets, sockets_s, connections, "connections of flows"),
        ("queues", samplers.queues, queues_s, ends, "ends of links"),
    ):
        if interval_s is not None:
            _check(document, ("samplers", name), text, duration_s, interval_s, count, what)
    return sockets_s, queues_s


def _check(
    document: Document, loc: Loc, text: str, duration_s: float, interval_s: float, count: int, what: str
) -> None:
    if (rows := duration_s / interval_s * count) > MOST_KEPT:
        message = (
            f"{text}: a row each {interval_s:g} s of {duration_s:g} s for {count} {what} is {rows:.3g} rows; at most "
            f"{MOST_KEPT:.0e}: write a longer interval, a shorter duration, or fewer flows"
        )
        raise SpecError([Problem(document.file, document.line(loc), ".".join(map(str, loc)), message)])


def _seconds(text: str) -> float | None:
    return None if text == "off" else quantities.seconds(text)
