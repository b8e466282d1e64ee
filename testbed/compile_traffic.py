# SPDX-License-Identifier: Apache-2.0
"""From an experiment's traffic to the agent's plan: every random draw that can be made before the run is made here."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from base import quantities
from base.errors import Problem, SpecError
from base.nearest import nearest
from network.frames import FRAME_HEADER_BYTES
from plan import draws
from plan.model import FIRST_PORT, FlowPlan, TrafficPlan
from schema import distributions
from schema import traffic as spec
from schema.load import Document, Loc
from schema.model import Experiment, Flow

MAX_ARRIVALS = 100_000
"""Transfers or busy periods of one entry: beyond it, a text with the wrong unit is likelier than an experiment."""


@dataclass(frozen=True)
class Window:
    """When an entry is active, seconds since the run's start."""

    start_s: float
    stop_s: float


def names(experiment: Experiment) -> tuple[list[str], list[str]]:
    """Names of the flows and of the traffic; those without one are called f1, f2 … and t1, t2 …"""
    flows = [flow.name or f"f{i + 1}" for i, flow in enumerate(experiment.flows)]
    return flows, [entry.name or f"t{i + 1}" for i, entry in enumerate(experiment.traffic)]


def is_random(experiment: Experiment) -> bool:
    """Whether the plan depends on the seed."""
    return bool(experiment.traffic or experiment.starts)


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


def windows(experiment: Experiment, document: Document, seed: int) -> dict[str, Window]:
    """When each flow and each traffic starts and stops, by name; `starts` goes before an entry's own `start`."""
    end_s = quantities.seconds(experiment.duration)
    flows, traffic = names(experiment)
    entries: dict[str, Flow | spec.Entry] = dict(
        zip([*flows, *traffic], [*experiment.flows, *experiment.traffic], strict=True)
    )
    found = {name: quantities.seconds(entry.start) for name, entry in entries.items()}
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
        found.update(_spread(rule, list(chosen), draws.stream(draws.seed_of(seed, "starts", str(i)))))
    result = {}
    for name, entry in entries.items():
        stop_s = end_s if entry.stop is None else quantities.seconds(entry.stop)
        if found[name] >= stop_s:
            loc = ("starts", set_by[name]) if name in set_by else _place(name, flows, traffic)
            raise _fail(document, loc, f"{name} would start at {found[name]:g} s, but its end is at {stop_s:g} s")
        result[name] = Window(found[name], stop_s)
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


def flow_plans(experiment: Experiment, when: dict[str, Window]) -> Iterator[FlowPlan]:
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


def traffic_plans(experiment: Experiment, when: dict[str, Window], seed: int, document: Document) -> list[TrafficPlan]:
    """What every process of the traffic does, with all random draws that do not depend on the network."""
    plans: list[TrafficPlan] = []
    end_s = quantities.seconds(experiment.duration)
    for index, (name, entry) in enumerate(zip(names(experiment)[1], experiment.traffic, strict=True)):

        def add(side: str, node: str, settings: dict[str, Any]) -> None:
            plans.append(TrafficPlan(name, entry.kind, side, node, port(experiment, index), settings))  # noqa: B023

        make = _KINDS[entry.kind]
        try:
            make(entry, _Context(when[name], end_s, draws.seed_of(seed, "traffic", name), add))
        except ValueError as error:
            raise _fail(document, ("traffic", index), str(error)) from error
    return plans


@dataclass(frozen=True)
class _Context:
    window: Window
    end_s: float
    seed: int
    add: Callable[[str, str, dict[str, Any]], None]

    def random(self, purpose: str) -> Random:
        return draws.stream(draws.seed_of(self.seed, purpose))


def _limited(items: Iterator[Any], what: str) -> list[Any]:
    found = []
    for item in items:
        found.append(item)
        if len(found) > MAX_ARRIVALS:
            raise ValueError(f"more than {MAX_ARRIVALS} {what}; is the unit right?")
    return found


def _periods(entry: spec.Cbr | spec.Poisson | spec.OnOff, c: _Context) -> list[list[float]]:
    on = None if entry.on is None else distributions.times(entry.on)
    off = None if entry.off is None else distributions.times(entry.off)
    busy = draws.periods(on, off, c.window.start_s, c.window.stop_s, c.random("periods"))
    return [list(period) for period in _limited(busy, "busy periods")]


def _datagrams(entry: spec.Cbr | spec.Poisson, c: _Context) -> None:
    packet = quantities.size_bytes(entry.packet)
    rate = quantities.rate_bps(entry.rate)
    gap_ns = (packet + FRAME_HEADER_BYTES) * 8 * 10**9 / rate
    common = {"packet_bytes": packet, "rate_bps": rate, "start_s": c.window.start_s, "stop_s": c.window.stop_s}
    c.add("server", entry.destination, common)
    settings = {
        **common, "to": entry.destination, "gap_ns": gap_ns, "periods": _periods(entry, c),
        "spacing": "constant" if entry.kind == "cbr" else "exponential", "seed": draws.seed_of(c.seed, "gaps"),
    }  # fmt: skip
    c.add("client", entry.source, settings)


def _on_off(entry: spec.OnOff, c: _Context) -> None:
    c.add("server", entry.destination, {})
    settings = {"to": entry.destination, "cca": entry.cca.name, "connections": entry.connections, "end_s": c.end_s}
    c.add("client", entry.source, {**settings, "periods": _periods(entry, c)})


def _transfers(entry: spec.Transfers, c: _Context) -> None:
    sources, destinations = entry.sources(), entry.destinations()
    random = c.random("arrivals")
    if entry.count is None:
        assert entry.gap is not None
        gap = distributions.times(entry.gap)
        times = _limited(draws.arrivals(gap, c.window.start_s, c.window.stop_s, random), "transfers")
    else:
        length = c.window.stop_s - c.window.start_s
        times = sorted(c.window.start_s + length * random.random() for _ in range(entry.count))
    ends, amounts = c.random("ends"), c.random("amounts")
    by_source: dict[str, list[dict[str, Any]]] = {source: [] for source in sources}
    for number, start_s in enumerate(times):
        source, destination = _any(sources, ends), _any(destinations, ends)
        transfer: dict[str, Any] = {"number": number, "start_s": start_s, "to": destination}
        if entry.size is not None:
            transfer["size_bytes"] = max(1, round(distributions.sizes(entry.size).draw(amounts)))
        else:
            assert entry.life is not None
            transfer["life_s"] = distributions.times(entry.life).draw(amounts)
        by_source[source].append(transfer)
    for destination in destinations:
        c.add("server", destination, {})
    for source in sources:
        c.add("client", source, {"cca": entry.cca.name, "end_s": c.end_s, "transfers": by_source[source]})


def _any(nodes: list[str], random: Random) -> str:
    return nodes[int(random.random() * len(nodes))]


def _web(entry: spec.Web, c: _Context) -> None:
    sizes, thinks = c.random("sizes"), c.random("thinks")
    html, objects = distributions.sizes(entry.html), distributions.sizes(entry.object_size)
    think = distributions.times(entry.think)
    pages: list[dict[str, Any]] = []
    here = c.window.start_s
    while here < c.window.stop_s and len(pages) < MAX_ARRIVALS // 10:  # as many as there can be, were loading free
        pause_s = think.draw(thinks)
        found = [max(1, round(objects.draw(sizes))) for _ in range(entry.objects)]
        pages.append({"html_bytes": max(1, round(html.draw(sizes))), "object_bytes": found, "think_s": pause_s})
        here += pause_s
    largest = max([page["html_bytes"] for page in pages] + [size for page in pages for size in page["object_bytes"]])
    c.add("server", entry.source, {"blob_bytes": largest})
    settings = {"to": entry.source, "connections": entry.connections, "pages": pages}
    c.add("client", entry.destination, {**settings, "start_s": c.window.start_s, "stop_s": c.window.stop_s})


def _video(entry: spec.Video, c: _Context) -> None:
    ladder = [quantities.rate_bps(rate) for rate in entry.ladder]
    segment_s = quantities.seconds(entry.segment)
    c.add("server", entry.source, {"blob_bytes": max(1, round(ladder[-1] * segment_s / 8))})
    settings = {
        "to": entry.source, "ladder_bps": ladder, "segment_s": segment_s, "buffer_s": quantities.seconds(entry.buffer),
        "start_after": entry.start_after, "abr": entry.abr, "start_s": c.window.start_s, "stop_s": c.window.stop_s,
    }  # fmt: skip
    c.add("client", entry.destination, settings)


def _probe_settings(entry: spec.PacketPairs | spec.Ping, c: _Context) -> dict[str, Any]:
    return {
        "to": entry.destination, "packet_bytes": quantities.size_bytes(entry.packet), "start_s": c.window.start_s,
        "stop_s": c.window.stop_s, "seed": draws.seed_of(c.seed, "every"),
        "every_s": dataclasses.asdict(distributions.times(entry.every)),
    }  # fmt: skip


def _packet_pairs(entry: spec.PacketPairs, c: _Context) -> None:
    gaps = [quantities.delay_ns(gap) for gap in entry.gaps]
    c.add("server", entry.destination, {"gaps_ns": gaps, "stop_s": c.window.stop_s})
    c.add("client", entry.source, {**_probe_settings(entry, c), "gaps_ns": gaps})


def _ping(entry: spec.Ping, c: _Context) -> None:
    c.add("client", entry.source, _probe_settings(entry, c))


_KINDS: dict[str, Callable[[Any, _Context], None]] = {
    "cbr": _datagrams, "poisson": _datagrams, "on_off": _on_off, "transfers": _transfers, "web": _web, "video": _video,
    "packet_pairs": _packet_pairs, "ping": _ping,
}  # fmt: skip
