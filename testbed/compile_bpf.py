# SPDX-License-Identifier: Apache-2.0
"""The BPF objects of a run's algorithms: found beside the experiment file or in the project, made where they are sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from base.cache import sha256_of
from base.errors import Problem, SpecError, WarpbedError
from base.paths import inside
from kernels import bpf_objects
from plan.model import BpfObject
from schema.base import Cca
from schema.load import Document, Loc
from schema.names import bpf_ccas

GUESTS = ("virtual", "vm")
"""Hosts whose kernel is there for a run alone."""


def objects(uses: Sequence[tuple[Loc, Cca]], document: Document, in_virtual: bool) -> tuple[BpfObject, ...]:
    """One object per algorithm.

    uses: algorithms, with the places in the file that name them; in_virtual: the run is one of the virtual host, which cannot have any

    Raises SpecError there, and for a file that is none or cannot be made.
    """
    found: dict[str, Path] = {}
    for loc, cca in uses:
        if cca.bpf is None and cca.name not in bpf_ccas():
            continue

        def fail(message: str, place: Loc = loc, name: str = cca.name) -> SpecError:
            where = ".".join(map(str, place))
            return SpecError([Problem(document.file, document.line(place), where, f"{name}: {message}")])

        if in_virtual:
            raise fail(
                "BPF programs need a kernel that translates them (CONFIG_BPF_JIT), which User-Mode Linux cannot; run it with "
                "--host vm and a distribution's own kernel (docs/hosts.md#bpf), or --host local or lab"
            )
        try:
            file = bpf_ccas()[cca.name] if cca.bpf is None else inside(Path(document.file).parent, cca.bpf, "the file")
        except ValueError as error:
            raise fail(str(error)) from error
        if found.setdefault(cca.name, file) != file:
            raise fail(f"another flow has {found[cca.name]} for it; an algorithm has one object in a run")
    made: list[BpfObject] = []
    for loc, cca in uses:
        if cca.name in found and cca.name not in {one.cca for one in made}:
            try:
                path = bpf_objects.object_of(found[cca.name]).absolute()
            except WarpbedError as error:
                where = ".".join(map(str, loc))
                raise SpecError([Problem(document.file, document.line(loc), where, str(error))]) from error
            made.append(BpfObject(cca.name, str(path), sha256_of(path)))
    return tuple(made)


def not_allowed(objects: Iterable[BpfObject], host: str) -> list[str]:
    """Why an experiment file's own programs are not loaded on a kind of host: its kernel is no guest's, and nobody has allowed it."""
    if host in GUESTS or bpf_objects.is_trusted():
        return []
    return [
        f"{one.cca} is a BPF program beside the experiment file ({one.path}), which a kernel in use would execute; "
        f"read it and allow it with {bpf_objects.TRUST}=1, or run it with --host vm"
        for one in objects
        if one.cca not in bpf_ccas()
    ]
