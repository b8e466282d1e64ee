# SPDX-License-Identifier: Apache-2.0
"""The congestion controls that a plan needs of this machine's kernel: registered, with their parameters, allowed to all."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path

from agent import bpf, left_behind
from agent.errors import RunError
from plan.model import Plan

ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
MODULES = Path("/sys/module")


def needed(plan: Plan, node: str | None = None) -> set[str]:
    """Those of the connections that begin on this machine, and of the routes that name one.

    node: the one that the machine is, None where all of them are here
    """
    of_flows = {flow.cca for flow in plan.flows if node in (None, flow.source)}
    of_routes = {start.cca for name, host in plan.hosts.items() if node in (None, name) for start in host.starts}
    return of_flows | {cca for cca in of_routes if cca is not None}


@contextlib.contextmanager
def ready(plan: Plan, node: str | None = None) -> Iterator[None]:
    """What the kernel must have, for as long as the context lasts where it can be taken back here.

    Raises RunError for what it has not, or does not take.
    """
    names = needed(plan, node)
    with bpf.registered(one for one in plan.bpf if one.cca in names):
        _set_params(plan, names, node)
        _allow(plan, names, node)
        yield


def note(file: Path, node: str | None) -> None:
    """Have a file of a lab's machine written back after the run; of a whole network's machine, its host has noted it."""
    if node is not None:
        left_behind.note_file(file)


def _set_params(plan: Plan, names: Collection[str], node: str | None) -> None:
    for cca, params in plan.cca_params.items():
        if cca not in names:
            continue
        for name, value in params.items():
            path = MODULES / f"tcp_{cca}/parameters/{name}"
            if not path.exists():
                known = ", ".join(sorted(entry.name for entry in path.parent.glob("*"))) or "none"
                raise RunError("parameter", f"{cca}.{name}", f"{cca} has no such parameter; it has {known}")
            note(path, node)
            try:
                path.write_text(value)
            except OSError as error:
                raise RunError("parameter", f"{cca}.{name}", f"{value}: {error.strerror}") from error


def _allow(plan: Plan, names: Collection[str], node: str | None) -> None:
    available = bpf.AVAILABLE.read_text().split()
    for flow in plan.flows:
        if flow.cca in names and flow.cca not in available:
            raise RunError("flow", flow.name, f"the kernel has no {flow.cca}; it has {' '.join(sorted(available))}")
    # only what is allowed in the first namespace can be another one's default; the local host has seen to it. BPF programs are
    # nobody's default, and root may choose them as they are
    allowed = ALLOWED.read_text().split()
    allowed += [one.cca for one in plan.bpf]
    if not plan.realtime or any(cca not in allowed for cca in names):
        note(ALLOWED, node)
        try:
            ALLOWED.write_text(" ".join(available))
        except OSError as error:
            raise RunError("sysctl", "net.ipv4.tcp_allowed_congestion_control", str(error.strerror)) from error
