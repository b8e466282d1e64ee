# SPDX-License-Identifier: Apache-2.0
"""Hold what the packet collector says of a run's captures against tshark and tcptrace."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.capture_agreement import TOOLS, agreement, captures
from collectors.compressed import SUFFIX
from tests import lab

PACKETS = 4000
"""Of each capture: slow start, its end, and some recovery."""


def agree(results: Path) -> None:
    """The first run's first captures, the ends of a flow as a rule: no difference but those that docs/pcap.md explains."""
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"{', '.join(missing)} is not installed; the run itself is as it should be")
    run = lab.runs(results)[0]
    ends = sorted(captures(run["path"] / "raw"), key=lambda file: file.name.removesuffix(SUFFIX)[::-1])
    if not ends:
        assert run["spec"]["captures"]["at"] == "none" or not run["spec"]["flows"], run["path"]
        return
    compared = [agreement(capture, PACKETS) for capture in {ends[0], ends[-1]}]
    assert [line for report in compared for line in report.unexplained] == []
    assert sum(report.packets for report in compared) > 0
