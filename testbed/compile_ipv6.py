# SPDX-License-Identifier: Apache-2.0
"""What a run with `ip: 6` cannot have, said before it starts.

How a connection begins (algorithm, first window) is said by routes, and with IPv4 rules choose them by ports. The guest's kernel has no
such rules for IPv6 (CONFIG_IPV6_MULTIPLE_TABLES), so a route per destination says it: all connections from one node to another begin alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from base import quantities
from base.errors import Problem, SpecError
from network.frames import LONGER_IN_IPV6_BYTES
from plan.model import ConnectionStart
from schema.base import StartValues
from schema.load import Document, Loc
from schema.model import Experiment
from schema.names import project_ccas
from schema.traffic import TcpEntry
from schema.traffic.entry import MIN_PACKET_BYTES
from testbed.compile_starts import RECEIVERS_TOO, Values, values_of

GROUP_HEADER = "cc_group.h"
"""What a module includes whose connections share what they learn."""


def check(experiment: Experiment, document: Document, starts: Mapping[str, tuple[ConnectionStart, ...]]) -> None:
    """Raises SpecError for what needs another kernel; nothing where the run is not one of IPv6."""
    if experiment.ip != 6:
        return
    problems = [
        Problem(document.file, document.line(loc), ".".join(map(str, loc)), message)
        for loc, message in (
            *_different(experiment, document, starts),
            *_with_controls(experiment),
            *_short(experiment),
        )
    ]
    if problems:
        raise SpecError(problems)


def _different(
    experiment: Experiment, document: Document, starts: Mapping[str, tuple[ConnectionStart, ...]]
) -> Iterator[tuple[Loc, str]]:
    """Connections of one pair of nodes that do not begin alike."""
    pairs = {(node, other) for node, entries in starts.items() for start in entries for other in start.destinations}
    first: dict[tuple[str, str], tuple[Loc, Values]] = {}
    for loc, pair, values in _entries(experiment, document):
        if pair not in pairs:
            continue  # no route says anything: the programs choose their algorithms by themselves
        known_loc, known = first.setdefault(pair, (loc, values))
        if values != known:
            like = ".".join(map(str, known_loc))
            message = f"connections from {pair[0]} to {pair[1]} begin in another way than those of {like}; with ip: 6 all of one"
            remedy = "pair of nodes have one algorithm and one beginning. Give them nodes of their own, or leave ip out"
            yield loc, f"{message} {remedy}"


def _entries(experiment: Experiment, document: Document) -> Iterator[tuple[Loc, tuple[str, str], Values]]:
    for i, flow in enumerate(experiment.flows):
        yield ("flows", i), (flow.source, flow.destination), values_of(experiment, document, ("flows", i))
        if flow.cca.name in RECEIVERS_TOO:
            yield ("flows", i), (flow.destination, flow.source), Values(flow.cca.name)
    for i, entry in enumerate(experiment.traffic):
        if not isinstance(entry, TcpEntry):
            continue
        values = Values(entry.cca.name)
        if isinstance(entry, StartValues):
            values = values_of(experiment, document, ("traffic", i))
        for source in entry.sources():
            for destination in entry.destinations():
                yield ("traffic", i), (source, destination), values


def _with_controls(experiment: Experiment) -> Iterator[tuple[Loc, str]]:
    """Flows whose program's control connection would take part in what its data connections learn together."""
    sources = project_ccas()
    for i, flow in enumerate(experiment.flows):
        name = flow.cca.name
        if name in sources and GROUP_HEADER in sources[name].read_text():
            yield (
                ("flows", i, "cca"),
                (
                    f"connections of {name} share what they learn, and with ip: 6 those that control a flow would be among them."
                    " Use traffic of kind transfers or on_off, which has none, or leave ip out"
                ),
            )


def _short(experiment: Experiment) -> Iterator[tuple[Loc, str]]:
    """Datagrams that the longer header leaves no room for what they carry."""
    least = MIN_PACKET_BYTES + LONGER_IN_IPV6_BYTES
    for i, entry in enumerate(experiment.traffic):
        packet = getattr(entry, "packet", None)
        if packet is not None and quantities.size_bytes(packet) < least:
            yield (
                ("traffic", i, "packet"),
                f"{packet}: with ip: 6 a packet has at least {least} bytes, IP header included",
            )
