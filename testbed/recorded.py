# SPDX-License-Identifier: Apache-2.0
"""Which sources of metrics a plan's run will have (analysis.metrics.needs), before it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis import metrics
from analysis.metrics.needs import APPLICATIONS, QUEUES, lacking
from base.errors import Problem, SpecError
from collectors.connections import are_known
from collectors.sources import AT_RECEIVER, AT_SENDER, PROBE, PROGRAM, SAMPLES
from network.model import path
from plan.model import Plan
from schema.load import Document, Loc
from schema.model import Experiment
from schema.repeats import Repeats


def check(experiment: Experiment, document: Document, plans: Sequence[Plan]) -> None:
    """Raise SpecError where the file asks for what no record of some run can give."""
    recorded = [sources_of(plan) for plan in {id(plan): plan for plan in plans}.values()]
    problems = []
    for loc, name in dict.fromkeys(_asked(experiment)):
        needs = metrics.find(name).needs
        lacks = next((missing for sources in recorded if (missing := lacking(needs, sources))), None)
        if lacks:
            message = f"{name} needs {lacks[0]}, and a run records none of that; write {lacks[0].remedy}"
            problems.append(Problem(document.file, document.line(loc), ".".join(map(str, loc)), message))
    if problems:
        raise SpecError(problems)


def _asked(experiment: Experiment) -> Iterator[tuple[Loc, str]]:
    """Metrics that the file names, and where."""
    for i, name in enumerate(experiment.metrics):
        yield ("metrics", i), name
    for i, expectation in enumerate(experiment.expectations):
        yield ("expectations", i), expectation.metric
    for i, table in enumerate(experiment.published):
        yield ("published", i, "metric"), table.metric
    for i, claim in enumerate(experiment.claims):
        for name in claim.metrics:
            yield ("claims", i), name
    for i, guard in enumerate(experiment.guards):
        yield ("guards", i), guard.metric
    if isinstance(experiment.repeats, Repeats):
        for i, precision in enumerate(experiment.repeats.precisions):
            yield ("repeats", "until", i), precision.metric


def sources_of(plan: Plan) -> set[str]:
    """Sources that every connection with records has, and those of the queue and of the traffic."""
    recorded = [flow for flow in plan.flows if flow.recorded]
    captured = {(capture.node, capture.peer) for capture in plan.captures}
    sources: set[str] = set()
    if recorded:
        hops = [path(plan.network, flow.source, flow.destination) for flow in recorded]
        ways = list(zip(recorded, hops, strict=True))
        if all((flow.source, way[0][1]) in captured for flow, way in ways):
            sources.add(AT_SENDER)
        if all((flow.destination, way[-1][0]) in captured for flow, way in ways):
            sources.add(AT_RECEIVER)
        if any(are_known(flow) for flow in recorded):
            sources |= {PROBE} if plan.tcp_probe else set()
            sources |= {SAMPLES} if plan.sockets_interval_s is not None else set()
            sources.add(PROGRAM)
    if plan.queues_interval_s is not None and plan.network.bottleneck is not None:
        sources.add(QUEUES)
    if plan.traffic:
        sources.add(APPLICATIONS)
    return sources
