# SPDX-License-Identifier: Apache-2.0
"""The golden runs: executing them, the digest of what was captured, and the digests that the repository has (golden_runs/)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from base.paths import ROOT
from hosts.base import Execution
from hosts.virtual.launch import GuestKernel, execute
from hosts.virtual.userland import userland
from plan.model import Plan
from testbed.campaign import model, schedule, virtual
from testbed.experiments import prepare
from testbed.packets import packets

FOLDER = ROOT / "benchmarks/golden_runs"
FILES = {file.stem: file for file in sorted(FOLDER.glob("*.yml"))}
DIGESTS = FOLDER / "digests.json"
SEED = 1

Execute = Callable[[GuestKernel, Execution], object]


CAMPAIGN = "campaign"
"""The one file that is a campaign's."""


def plan_of(name: str) -> Plan:
    """Of an experiment's first run, or of a campaign's first transfer."""
    if name == CAMPAIGN:
        campaign, _ = model.load(FILES[name])
        return virtual.job_of(campaign, schedule.run_of(campaign, 1, virtual.HOST)[0]).plan
    return prepare(FILES[name]).plans[0]


def run(name: str, kernel: GuestKernel, raw: Path, cpu: int, by: Execute = execute) -> str:
    """Execute a golden run in an empty folder; returns the digest of its packets.

    by: what executes it. Raises RuntimeError where it fails.
    """
    raw.mkdir(parents=True)
    outcome = by(kernel, Execution(plan_of(name), raw, cpu, SEED, lambda _: None, lambda: False))
    if (error := getattr(outcome, "error", None)) is not None:
        raise RuntimeError(f"{name}: {error}")
    return packets(raw)


def identity(kernel: GuestKernel) -> str:
    """What the digests of the repository hold for: the kernel's source package, and the programs of the user land."""
    parts = {"linux": f"{kernel.facts['source']['version']}", **userland()}
    return ", ".join(f"{name} {version}" for name, version in parts.items())


def known(kernel: GuestKernel) -> Mapping[str, str] | None:
    """Name → digest for this kernel and user land; None where nobody has recorded them yet."""
    return all_known().get(identity(kernel))


def all_known() -> dict[str, dict[str, str]]:
    """Identity → name → digest."""
    digests: dict[str, dict[str, str]] = json.loads(DIGESTS.read_text())
    return digests


def record(kernel: GuestKernel, digests: Mapping[str, str]) -> None:
    """Write the digests of this kernel and user land beside those of others."""
    recorded = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
    recorded[identity(kernel)] = dict(sorted(digests.items()))
    DIGESTS.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
