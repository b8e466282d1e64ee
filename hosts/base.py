# SPDX-License-Identifier: Apache-2.0
"""What a kind of host promises to the runner, and how a run on it ended."""

from __future__ import annotations

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


class Host(Protocol):
    """A host that is ready to execute plans."""

    @property
    def kind(self) -> str:
        """One of `registry.KINDS`."""

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

    def execute(
        self,
        plan: Plan,
        folder: Path,
        cpu: int,
        seed: int,
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Outcome:
        """Execute a plan and leave its raw files, plan.json, guest.json and console.log among them, in `folder`.

        cpu: where a host that uses one CPU keeps to
        progress: called with the seconds of the run that have passed
        cancelled: asked now and then; once it says True everything is ended and undone
        """


def failure(stage: str, subject: str, detail: str) -> dict[str, str]:
    return {"stage": stage, "subject": subject, "detail": detail}
