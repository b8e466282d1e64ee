# SPDX-License-Identifier: Apache-2.0
"""The kinds of hosts by name.

A kind is a folder here and a line of kinds.json. `hosts/<name>/host.py` has `open_host(experiment) -> Host`; it is imported
when such a host is opened, and not before.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schema.names import host_kinds

if TYPE_CHECKING:
    from hosts.base import Host
    from schema.model import Experiment


@dataclass(frozen=True)
class Kind:
    """A line of kinds.json.

    inventory: the folder below inventory/ that names its machines
    builds: the architecture of the kernel that the play builds for it, "um" or "x86"; empty where it has a kernel
    play: the host or group of the inventory from which runs are executed; empty: named like the kind
    prepares: the group of machines that the play prepares with the roles lab_*; empty where there is none
    """

    name: str
    text: str
    inventory: str
    builds: str = ""
    play: str = ""
    prepares: str = ""

    def open(self, experiment: Experiment) -> Host:
        """A host of this kind for an experiment; raises UsageError or WarpbedError where it is not ready."""
        host: Host = importlib.import_module(f"hosts.{self.name}.host").open_host(experiment)
        return host


HOST_KINDS = {name: Kind(name, **fields) for name, fields in host_kinds().items()}
