# SPDX-License-Identifier: Apache-2.0
"""The host of each run of an experiment: one for all, or one for each kernel that a sweep names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from base.errors import UsageError
from hosts.base import Host
from hosts.registry import HOST_KINDS, Kind
from schema.model import Experiment


@dataclass(frozen=True)
class RunHosts:
    """Hosts of one kind.

    common: the host of all runs, or the first kernel's
    by_kernel: name of a kernel → the host that runs it; empty where `common` is the host of all
    """

    common: Host
    by_kernel: Mapping[str, Host] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.common.kind

    @property
    def one_at_a_time(self) -> bool:
        return self.common.one_at_a_time

    def of(self, run: Experiment) -> Host:
        """The host of a resolved experiment (one without a sweep)."""
        return self.by_kernel[run.kernel] if self.by_kernel else self.common


def open_hosts(kind: Kind, experiment: Experiment, runs: Iterable[Experiment]) -> RunHosts:
    """The hosts of an experiment's runs, ready to execute them.

    Raises UsageError where the kind has one kernel only and the runs name others, and as `Kind.open` does, for example where a
    kernel is not built.
    """
    first: dict[str, Experiment] = {}
    for run in runs:
        first.setdefault(run.kernel, run)
    if first.keys() <= {experiment.kernel}:
        return RunHosts(kind.open(experiment))
    if not kind.builds:
        able = ", ".join(other.name for other in HOST_KINDS.values() if other.builds)
        raise UsageError(
            f"host {kind.name} runs the kernel that its machine has, and the sweep names {', '.join(sorted(first))}; "
            f"leave the kernel out of the sweep, or take a host that it is built for: {able}"
        )
    hosts = {name: kind.open(run) for name, run in first.items()}
    builds = {name: str(host.facts.get("key", name)) for name, host in hosts.items()}
    if len(set(builds.values())) < len(builds):
        raise UsageError(
            f"the sweep names the kernels {', '.join(sorted(builds))}, and one build stands for several of them; unset "
            "WARPBED_TEST_KERNEL and WARPBED_TEST_X86_KERNEL, which name one build for all"
        )
    return RunHosts(next(iter(hosts.values())), hosts)
