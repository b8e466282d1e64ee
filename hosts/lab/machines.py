# SPDX-License-Identifier: Apache-2.0
"""The machines of a lab and which node each of them is: from the play, without secrets (WARPBED_LAB in the environment)."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from base.errors import UsageError
from base.paths import ROOT
from hosts.remote import Remote, RemoteError
from schema.base import Model, NodeName

VARIABLE = "WARPBED_LAB"


InterfaceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:@][A-Za-z0-9_.:@-]{0,16}$")]


class Machine(Model):
    """A machine. `nics` names its own interface towards each neighbour of its node.

    control: interfaces that it is reached by, beside what it finds itself
    """

    node: NodeName
    nics: dict[NodeName, InterfaceName]
    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]*[A-Za-z0-9_.:]$")]
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    user: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")] = "root"
    identity: str
    known_hosts: str
    become: bool = False
    control: list[InterfaceName] = Field(default_factory=list)
    release: str = ""
    version: str = ""
    modules: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True)
class LabRemote(Remote):
    """The way to a lab machine."""

    def protected(self, control: Sequence[str]) -> dict[str, str]:
        """The machine's interfaces that no run may touch, with the reason: asked without sudo (control.py). Raises RemoteError."""
        program = (ROOT / "hosts/lab/control.py").read_text()
        answer = replace(self, become=False).run("/usr/bin/python3", "-I", "-c", program, *control)
        try:
            reasons: dict[str, str] = json.loads(answer)["protected"]
        except (ValueError, KeyError, TypeError) as error:
            raise RemoteError(f"{self.address}: no answer about its control interface: {answer[:200]!r}") from error
        return reasons


class Machines(Model):
    machines: dict[str, Machine]

    def by_node(self) -> dict[str, Machine]:
        return {machine.node: machine for machine in self.machines.values()}


def load(text: str | None = None) -> dict[str, Machine]:
    """Node → machine. Raises UsageError where the environment holds none, or two machines are one node."""
    text = os.environ.get(VARIABLE) if text is None else text
    if not text:
        raise UsageError(
            "host lab: its machines come from an inventory: ansible-playbook playbooks/run_experiment.yml -i inventory/lab "
            "-e experiment_host=lab -e experiment=FILE"
        )
    try:
        machines = Machines.model_validate(json.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"inventory: {'.'.join(map(str, first['loc']))}: {first.get('input')!r}: {first['msg']}"
        ) from error
    except ValueError as error:
        raise UsageError(f"{VARIABLE}: not JSON: {error}") from error
    nodes = [machine.node for machine in machines.machines.values()]
    twice = sorted({node for node in nodes if nodes.count(node) > 1})
    if twice:
        raise UsageError(f"inventory: more than one machine is node {', '.join(twice)} (lab_node)")
    return machines.by_node()


def remote(machine: Machine) -> LabRemote:
    """The way to a machine, as root by sudo where SSH does not log in as root."""
    return LabRemote(
        machine.host,
        machine.port,
        machine.user,
        Path(machine.identity).expanduser(),
        Path(machine.known_hosts).expanduser(),
        machine.host if machine.port == 22 else f"[{machine.host}]:{machine.port}",
        machine.become,
    )
