# SPDX-License-Identifier: Apache-2.0
"""From an experiment's traffic to the agent's plan: every random draw that can be made before the run is made here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from base import quantities
from base.discovery import merged
from base.errors import Problem, SpecError
from base.nearest import nearest
from plan import draws
from plan.model import FIRST_PORT, FlowPlan, TrafficPlan
from schema import distributions
from schema import traffic as spec
from schema.load import Document, Loc
from schema.model import Experiment, Flow
from testbed import traffic as compilers
from testbed.compile_context import Context, Window
from testbed.compile_overhead import are_together

COMPILERS: dict[str, Callable[[Any, Context], None]] = merged(compilers, "COMPILERS")


def names(experiment: Experiment) -> tuple[list[str], list[str]]:
    """Names of the flows and of the traffic; those without one are called f1, f2 … and t1, t2 …"""
    flows = [flow.name or f"f{i + 1}" for i, flow in enumerate(experiment.flows)]
    return flows, [entry.name or f"t{i + 1}" for i, entry in enumerate(experiment.traffic)]


def is_random(experiment: Experiment) -> bool:
    """Whether the plan depends on the seed."""
    return bool(experiment.traffic or experiment.starts or are_together(experiment))


def _fail(document: Document, loc: Loc, message: str) -> SpecError:
    return SpecError([Problem(document.file, document.line(loc), ".".join(map(str, loc)), message)])


def check_names(experiment: Experiment, document: Document, nodes: Sequence[str]) -> None:
    """Raises SpecError for a name that is there twice, and for traffic from or to nodes that are not there."""
    problems: list[Problem] = []

    def problem(loc: Loc, message: str) -> None:
        problems.append(Problem(document.file, document.line(loc), ".".join(map(str, loc)), message))

    flows, traffic = names(experiment)
    places: list[Loc] = [("flows", i) for i in range(len(flows))]
    places += [("traffic", i) for i in range(len(traffic))]
    seen: set[str] = set()
    for name, place in zip([*flows, *traffic], places, strict=True):
        if name in seen:
            problem(place, f"the name {name!r} is there twice; files and records are named by it")
        seen.add(name)
    for i, entry in enumerate(experiment.traffic):
        for key, used in (("from", entry.sources()), ("to", entry.destinations())):
            for node in used:
                if node not in nodes:
                    problem(("traffic", i, key), f"no node {node!r}; {nearest(node, nodes)}")
        if set(entry.sources()) & set(entry.destinations()):
            problem(("traffic", i, "to"), "goes to its own node")
    if not places:
        problem((), "nothing to run: an experiment needs `flows`, `traffic` or both")
    if problems:
        raise SpecError(problems)


def windows(experiment: Experiment, document: Document, seed: int) -> Mapping[str, Window]:
    """When each flow and each traffic starts and stops, by name; `starts` goes before an entry's own `start`."""
    end_s = quantities.seconds(experiment.duration)
    flows, traffic = names(experiment)
    entries: dict[str, Flow | spec.Entry] = dict(
        zip([*flows, *traffic], [*experiment.flows, *experiment.traffic], strict=True)
    )
    starts_s = {name: quantities.seconds(entry.start) for name, entry in entries.items()}
    set_by: dict[str, int] = {}
    for i, rule in enumerate(experiment.starts):
        chosen = {"flows": flows, "traffic": traffic, "all": [*flows, *traffic]}.get(str(rule.of), rule.of)
        for name in chosen:
            loc: Loc = ("starts", i, "of")
            if name not in entries:
                raise _fail(document, loc, f"there is no flow or traffic {name!r}; {nearest(name, entries)}")
            if name in set_by:
                raise _fail(document, loc, f"{name} has its start from starts.{set_by[name]} already")
            if quantities.delay_ns(entries[name].start):
                raise _fail(document, loc, f"{name} has a `start` of its own, {entries[name].start}; leave one out")
            set_by[name] = i
        starts_s.update(_spread(rule, list(chosen), draws.stream(draws.seed_of(seed, "starts", str(i)))))
    result = {}
    for name, entry in entries.items():
        stop_s = end_s if entry.stop is None else quantities.seconds(entry.stop)
        if starts_s[name] >= stop_s:
            loc = ("starts", set_by[name]) if name in set_by else _place(name, flows, traffic)
            raise _fail(document, loc, f"{name} would start at {starts_s[name]:g} s, but its end is at {stop_s:g} s")
        result[name] = Window(starts_s[name], stop_s)
    return result


def _place(name: str, flows: list[str], traffic: list[str]) -> Loc:
    return ("flows", flows.index(name)) if name in flows else ("traffic", traffic.index(name))


def _spread(rule: spec.Starts, chosen: list[str], random: Random) -> dict[str, float]:
    first_s = quantities.seconds(rule.first)
    if rule.every is not None:
        gap, here, times = distributions.times(rule.every), first_s, []
        for _ in chosen:
            times.append(here)
            here += gap.draw(random)
    else:
        assert rule.within is not None
        times = [first_s + quantities.seconds(rule.within) * random.random() for _ in chosen]
        if rule.order == "listed":
            times.sort()
    if rule.order == "shuffled":
        random.shuffle(chosen)
    return dict(zip(chosen, times, strict=True))


def port(experiment: Experiment, index: int) -> int:
    """Server port of a traffic entry: those of the traffic follow those of the flows."""
    return FIRST_PORT + len(experiment.flows) + index


def flow_plans(experiment: Experiment, when: Mapping[str, Window]) -> Iterator[FlowPlan]:
    """The TCP connections of the traffic, one plan for each pair of nodes that data goes between."""
    for index, (name, entry) in enumerate(zip(names(experiment)[1], experiment.traffic, strict=True)):
        if not isinstance(entry, spec.TcpEntry):
            continue
        pairs = [(a, b) for a in entry.sources() for b in entry.destinations()]
        for source, destination in pairs:
            yield FlowPlan(
                name=name if len(pairs) == 1 else f"{name}.{source}.{destination}",
                app=experiment.traffic[index].kind,
                cca=entry.cca.name,
                source=source,
                destination=destination,
                port=port(experiment, index),
                start_s=when[name].start_s,
                duration_s=when[name].stop_s - when[name].start_s,
                recorded=not entry.background,
            )


def traffic_plans(
    experiment: Experiment, when: Mapping[str, Window], seed: int, document: Document
) -> list[TrafficPlan]:
    """What every process of the traffic does, with all random draws that do not depend on the network."""
    plans: list[TrafficPlan] = []
    end_s = quantities.seconds(experiment.duration)
    for index, (name, entry) in enumerate(zip(names(experiment)[1], experiment.traffic, strict=True)):

        def add(side: str, node: str, settings: dict[str, Any]) -> None:
            plans.append(TrafficPlan(name, entry.kind, side, node, port(experiment, index), settings))  # noqa: B023

        compiled = COMPILERS[entry.kind]
        try:
            compiled(entry, Context(when[name], end_s, draws.seed_of(seed, "traffic", name), add))
        except ValueError as error:
            raise _fail(document, ("traffic", index), str(error)) from error
    return plans
