# SPDX-License-Identifier: Apache-2.0
"""The transfers that a campaign's results hold, and the outcome of one: its time, from its result folder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.results import FAILED, FIGURES, Run, load_run
from base.small_files import small_json


@dataclass(frozen=True)
class Outcome:
    """A finished transfer.

    seconds: from its first data packet to the last byte's acknowledgement, on the sender's clock
    from_program: whether the time is the sending program's own, a round trip longer, because the capture ended at its budget
    """

    seconds: float
    verdict: str
    from_program: bool = False


def runs_in(folder: Path) -> list[Run]:
    """The runs of a campaign's results by name, without failed attempts. One that cannot be read is of status "unreadable"."""
    if not folder.is_dir():
        return []
    paths = [
        path
        for path in folder.iterdir()
        if path.is_dir() and not path.name.startswith(".") and FAILED not in path.name and path.name != FIGURES
    ]
    return [load_run(path) for path in sorted(paths)]


def is_damaged(run: Run) -> bool:
    return run.status == "unreadable"


def of_run(run: Run) -> Outcome | None:
    """The outcome of a complete transfer; None where there is no such run or its numbers are missing."""
    flows = run.metrics.get("flows") or []
    if not run.complete or not flows:
        return None
    if any(reason.rule == "capture-cut" for reason in run.reasons):
        told_s = _told_s(run.path / "raw/t.client.json")
        return None if told_s is None else Outcome(told_s, run.verdict, True)
    completion_s = _time_s(flows[0].get("completion_s"))
    return None if completion_s is None else Outcome(completion_s, run.verdict)


def _told_s(file: Path) -> float | None:
    """What the sending program measured: from connecting until the receiver had read it all."""
    try:
        return _time_s(small_json(file)["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _time_s(value: Any) -> float | None:
    """A number that may be a time; no transfer takes none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and value > 0 else None
