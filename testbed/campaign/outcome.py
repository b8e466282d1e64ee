# SPDX-License-Identifier: Apache-2.0
"""The outcome of a transfer: its time, from its result folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from analysis.errors import AnalysisError
from analysis.results import parse_run


@dataclass(frozen=True)
class Outcome:
    """A finished transfer.

    seconds: from its first data packet to the last byte's acknowledgement, on the sender's clock
    from_program: whether the time is the sending program's own, a round trip longer, because the capture ended at its budget
    """

    seconds: float
    verdict: str
    from_program: bool = False


def of_folder(folder: Path) -> Outcome | None:
    """The outcome of a complete transfer; None where there is no such folder or its numbers are missing."""
    try:
        run = parse_run((folder / "run.json").read_text(), folder)
    except (OSError, AnalysisError):
        return None
    flows = run.metrics.get("flows") or []
    if not run.complete or not flows:
        return None
    completion_s = flows[0].get("completion_s")
    if any(reason.rule == "capture-cut" for reason in run.reasons):
        told_s = _told_s(folder / "raw/t.client.json")
        return None if told_s is None else Outcome(told_s, run.verdict, True)
    return None if completion_s is None else Outcome(completion_s, run.verdict)


def _told_s(file: Path) -> float | None:
    """What the sending program measured: from connecting until the receiver had read it all."""
    try:
        return float(json.loads(file.read_text())["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
