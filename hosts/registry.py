# SPDX-License-Identifier: Apache-2.0
"""The kinds of hosts by name."""

from __future__ import annotations

from dataclasses import dataclass

from base.errors import UsageError
from hosts.base import Host
from hosts.lab.host import LabHost
from hosts.lab.machines import load as load_machines
from hosts.local.host import LocalHost
from hosts.virtual.host import VirtualHost
from hosts.virtual.kernel import find
from hosts.vm.builds import find as find_builds
from hosts.vm.cabled import CabledHost
from hosts.vm.host import VmHost
from schema.model import Experiment


@dataclass(frozen=True)
class Kind:
    """What a kind is, and the folder below inventory/ that names its machines."""

    text: str
    inventory: str


HOST_KINDS = {
    "virtual": Kind("a User-Mode-Linux guest in virtual time on this machine", "virtual"),
    "local": Kind("Mininet in real time on this machine and its own kernel, as root", "local"),
    "vm": Kind("one virtual machine (QEMU) that runs the whole Mininet network in real time", "vm"),
    "lab": Kind("real machines over SSH, a node of the network each", "lab"),
    "cabled": Kind("a virtual machine per node, cabled with each other, in real time", "vm"),
}


def open_host(kind: str, experiment: Experiment) -> Host:
    """A host of a kind for an experiment; raises UsageError or WarpbedError where it is not ready."""
    if kind == "virtual":
        return VirtualHost(find(experiment.kernel))
    if kind == "local":
        return LocalHost()
    if kind == "vm":
        return VmHost(find_builds(experiment.kernel))
    if kind == "cabled":
        return CabledHost(find_builds(experiment.kernel))
    if kind == "lab":
        return LabHost(load_machines())
    raise UsageError(f"host {kind!r} is not built into this version; allowed: {', '.join(HOST_KINDS)}")
