# SPDX-License-Identifier: Apache-2.0
"""From an experiment's topology to the network: parameters, exceptions per link, and errors that say where."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import topologies
from base.errors import ParameterError, Problem, SpecError
from base.nearest import nearest
from network import traces
from network.link_words import changed
from network.model import Link, Network
from schema.load import Document, Loc
from schema.model import Experiment


def network_of(experiment: Experiment, document: Document) -> Network:
    """Build the experiment's network.

    Raises SpecError for an unknown topology, unknown parameters, bad values or an impossible network.
    """
    topology = experiment.topology

    def fail(loc: Loc, message: str) -> SpecError:
        return SpecError([Problem(document.file, document.line(loc), ".".join(map(str, loc)), message)])

    if topology.name not in topologies.names():
        hint = nearest(topology.name, topologies.names())
        raise fail(("topology", "name"), f"there is no topology {topology.name!r}; {hint}")
    allowed = topologies.parameter_names(topology.name)
    for name in topology.params:
        if name not in allowed:
            raise fail(
                ("topology", "params", name), f"{topology.name} has no parameter {name!r}; {nearest(name, allowed)}"
            )
    with traces.beside(Path(document.file).parent):
        try:
            network = _built(topology.name, topology.params)
        except (ValueError, TypeError) as error:
            loc, text = _place(error, topology.params)
            raise fail(("topology", "params", *loc), text) from error
        for key, texts in topology.links.items():
            try:
                network = _with_link(network, key, texts)
            except ValueError as error:
                loc, text = _place(error, texts)
                raise fail(("topology", "links", key, *loc), text) from error
    if network.problems():
        raise fail(("topology",), "; ".join(network.problems()))
    return network if experiment.ip is None else replace(network, ip=experiment.ip)


def _built(name: str, params: Mapping[str, Any]) -> Network:
    """The topology's network; runs of a sweep that ask for the same one share it, and the paths that it remembers.

    Not where a trace is read, which lies beside the file and may change.
    """
    is_fixed = not any("trace" in str(value) for value in params.values())
    if is_fixed and all(isinstance(value, Hashable) for value in params.values()):
        return _same(name, tuple(params.items()))
    return topologies.build(name, dict(params))


@functools.lru_cache(maxsize=16, typed=True)
def _same(name: str, params: tuple[tuple[str, Any], ...]) -> Network:
    return topologies.build(name, dict(params))


def _place(error: Exception, parameters: Mapping[str, Any]) -> tuple[Loc, str]:
    """Where in the file an error belongs: to its parameter where the file gives it, else to all of them."""
    if isinstance(error, ParameterError) and error.name[0] in parameters:
        return error.name, error.text
    return (), str(error)


def _with_link(network: Network, key: str, texts: Mapping[str, str]) -> Network:
    """The network with one link (`a-b`) or one direction of it (`a>b`) overridden."""
    a, sign, b = re.split("([>-])", key)
    links = list(network.links)
    between = [i for i, link in enumerate(links) if {link.a, link.b} == {a, b}]
    if not between:
        known = [text for link in links for text in (f"{link.a}{sign}{link.b}", f"{link.b}{sign}{link.a}")]
        raise ValueError(f"there is no link {key}; {nearest(key, known[:200])}")
    for i in between:
        link = links[i]
        is_forward = link.a == a
        forward = changed(link.forward, texts) if sign == "-" or is_forward else link.forward
        backward = changed(link.backward, texts) if sign == "-" or not is_forward else link.backward
        links[i] = Link(link.a, link.b, forward, backward)
    return replace(network, links=tuple(links))


def trace_digests(topology: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """SHA-256 of every trace that a topology names: a run's id must change with their content."""
    digests = {}
    for text in _texts(topology):
        head, _, name = text.strip().partition(" ")
        if head == "trace" and (path := traces.place(folder, name.strip())).is_file():
            digests[name.strip()] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
