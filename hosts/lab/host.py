# SPDX-License-Identifier: Apache-2.0
"""Execute plans on lab machines, a node each. The machines are prepared by the play (roles lab_*), and stay as they were."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hosts import bpf
from hosts.base import Execution, Outcome, failure
from hosts.identity import KernelInputs, bpf_versions
from hosts.lab.machines import Machine, load, remote
from hosts.nodes import cabling
from hosts.nodes import run as nodes
from hosts.realtime import in_real_time
from hosts.remote import RemoteError
from hosts.watch import keep_facts
from network.model import address_plan
from network.tc import own_modules, own_work
from plan.console import OUT
from plan.model import Plan
from schema.model import Experiment


@dataclass(frozen=True)
class LabHost:
    """The machines of an inventory, one run at a time. machines: by node."""

    machines: dict[str, Machine]
    kind: str = "lab"
    one_at_a_time: bool = True

    @property
    def key(self) -> str:
        """The machines' kernels and the modules' versions: what the play has proven of them."""
        proven = {node: [m.release, m.version, sorted(m.modules.items())] for node, m in self.machines.items()}
        return hashlib.sha256(json.dumps(proven, sort_keys=True).encode()).hexdigest()[:20]

    def inputs(self, plan: Plan) -> KernelInputs:
        return KernelInputs(self.key, bpf_versions(plan))

    @property
    def facts(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "machines": {
                node: {"host": m.host, "kernel_release": m.release, "version": m.version, "modules": m.modules}
                for node, m in self.machines.items()
            },
        }

    def problems(self, plan: Plan) -> list[str]:
        wrong = cabling.problems(plan.network)
        for name, own in address_plan(plan.network).items():
            if name not in self.machines:
                wrong.append(f"no machine of the inventory is node {name} (lab_node: {name})")
                continue
            for peer in sorted({i.peer for i in own.interfaces} - set(self.machines[name].nics)):
                wrong.append(f"the machine of {name} names no interface towards {peer} (lab_nics: {{{peer}: …}})")
        if any(start.needs_module for host in plan.hosts.values() for start in host.starts):
            wrong.append(
                "a first ssthresh or a largest window (initial_ssthresh, max_window) needs the module warp_start, which no "
                "lab machine loads; run it with --host virtual or --host vm"
            )
        for name in own_modules(plan.network.directions()):
            work = next(what for d in plan.network.directions() if (what := own_work(name, d)))
            wrong.append(
                f"{work}: the module {name} is not loaded on lab machines; run it with --host virtual or --host vm"
            )
        for name in {*(flow.cca for flow in plan.flows)} - {"reno", *(one.cca for one in plan.bpf)}:
            for node in {flow.source for flow in plan.flows if flow.cca == name} & set(self.machines):
                if name not in self.machines[node].modules:
                    wrong.append(
                        f"the kernel of {node} ({self.machines[node].release}) has no {name}; "
                        f"install the modules: lab_kernel_mode: dkms in the inventory (docs/lab.md)"
                    )
        return wrong

    def execute(self, run: Execution) -> Outcome:
        # the kernels have their modules already (role lab_kernel)
        objects, run = bpf.files(run.plan), run.of(bpf.sent(in_real_time(run.plan, [])))
        plan, folder = run.plan, run.folder
        begun = time.monotonic()
        facts: dict[str, Any] = {}
        own = address_plan(plan.network)
        nics = {i.name: self.machines[i.node].nics[i.peer] for node in own.values() for i in node.interfaces}
        remotes = {node: remote(machine) for node, machine in self.machines.items() if node in own}
        try:
            cablings = {
                node: replace(cables, protected=remotes[node].protected(self.machines[node].control))
                for node, cables in cabling.cabling(plan, nics).items()
            }
            for machine in remotes.values():
                machine.run("rm", "-rf", OUT)
            error, facts = nodes.execute(run, cablings, remotes, [], objects)
        except RemoteError as failed:
            error = failure("machines", "ssh", str(failed))
        _logs(list(own), folder)
        if facts:
            keep_facts(folder, facts, kind=self.kind, machines=self.facts["machines"])
        return Outcome(error, facts, time.monotonic() - begun, plan.duration_s if facts else 0.0)


def open_host(experiment: Experiment) -> LabHost:
    return LabHost(load())


def _logs(nodes: list[str], folder: Path) -> None:
    """What all agents printed, in one file, each line with its node's name."""
    with open(folder / "console.log", "a") as out:
        for node in nodes:
            file = folder / f"{node}.log"
            if file.exists():
                out.writelines(f"{node}: {line}\n" for line in file.read_text(errors="replace").splitlines())
                file.unlink()
