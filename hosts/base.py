# SPDX-License-Identifier: Apache-2.0
"""What a kind of host promises to the runner, and how a run on it ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hosts.identity import KernelInputs
from plan.model import Plan


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `error` (stage, subject, detail) is None where the host did all that the plan asked for.

    facts: guest.json; virtual_s: how far the run got, in seconds of the host's own clock
    """

    error: dict[str, str] | None
    facts: dict[str, Any]
    wall_s: float
    virtual_s: float


@dataclass(frozen=True)
class Execution:
    """One run as a host is given it.

    folder: where plan.json, guest.json, console.log and the other raw files are left
    cpu: the CPU that a host which uses one keeps to
    progress: called with the seconds of the run that have passed
    cancelled: asked now and then; once it says True everything is ended and undone
    """

    plan: Plan
    folder: Path
    cpu: int
    seed: int
    progress: Callable[[float], None]
    cancelled: Callable[[], bool]

    def of(self, plan: Plan) -> Execution:
        """The same run with the plan that the host makes of its own, written to plan.json."""
        (self.folder / "plan.json").write_text(plan.to_json())
        return dataclasses.replace(self, plan=plan)


class Host(Protocol):
    """A host that is ready to execute plans."""

    @property
    def kind(self) -> str:
        """A name of `registry.HOST_KINDS`."""

    def inputs(self, plan: Plan) -> KernelInputs:
        """What of the host decides the packets of a plan's run; part of the run's id."""

    @property
    def facts(self) -> dict[str, Any]:
        """What a run's environment says about its kernel."""

    @property
    def one_at_a_time(self) -> bool:
        """True in real time, where runs side by side would disturb each other."""

    def problems(self, plan: Plan) -> list[str]:
        """Why this host cannot execute the plan, as sentences that end in a remedy; starts nothing."""

    def execute(self, run: Execution) -> Outcome:
        """Execute a plan and leave its raw files in the run's folder."""


def failure(stage: str, subject: str, detail: str) -> dict[str, str]:
    return {"stage": stage, "subject": subject, "detail": detail}
