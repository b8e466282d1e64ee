# SPDX-License-Identifier: Apache-2.0
"""What became of a transfer: its time, from its result folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from analysis.errors import AnalysisError
from analysis.results import parse_run


@dataclass(frozen=True)
class Outcome:
    """A finished transfer.

    seconds: from its first data packet to the last byte's acknowledgement, on the sender's clock
    from_samples: whether the end is that of the samples of tcp_info, because the capture ended at its size budget
    """

    seconds: float
    verdict: str
    from_samples: bool = False


def of_folder(folder: Path) -> Outcome | None:
    """The outcome of a complete transfer; None where there is no such folder or its numbers are missing."""
    try:
        run = parse_run((folder / "run.json").read_text(), folder)
    except (OSError, AnalysisError):
        return None
    flows = run.metrics.get("flows") or []
    if not run.complete or not flows or flows[0].get("completion_s") is None:
        return None
    if any(reason.rule == "capture-cut" for reason in run.reasons):
        last_s = _last_sample_s(folder / "records/tcp_info.parquet")
        if last_s is not None and flows[0].get("start_s") is not None:
            return Outcome(max(last_s - flows[0]["start_s"], flows[0]["completion_s"]), run.verdict, True)
    return Outcome(flows[0]["completion_s"], run.verdict)


def _last_sample_s(file: Path) -> float | None:
    """When a socket with data on its way was seen for the last time, seconds of the run."""
    if not file.is_file():
        return None
    table = pq.read_table(file, columns=["t_s", "unacked_packets"])
    times = [
        t for t, waiting in zip(table["t_s"].to_pylist(), table["unacked_packets"].to_pylist(), strict=True) if waiting
    ]
    return max(times, default=None)
