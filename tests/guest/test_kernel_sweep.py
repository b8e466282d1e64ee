# SPDX-License-Identifier: Apache-2.0
"""One file, two kernels: each run boots the kernel that it is called by, and says so wherever it is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from base.errors import WarpbedError
from hosts.virtual.kernel import find
from tests import lab

pytestmark = pytest.mark.guest
SERIES = ("6.12", "7.2")
SWEEP = "sweep: {parameters: {linux: kernel}, factorial: {linux: ['6.12', '7.2']}}\n"


def test_the_runs_of_a_sweep_over_kernels_are_made_by_them(tmp_path: Path) -> None:
    """A run of the sweep has the packets of the run of a file that names this kernel alone."""
    try:
        builds = {series: find(series) for series in SERIES}
    except WarpbedError as error:
        pytest.skip(str(error))
    runs = {run["params"]["linux"]: run for run in lab.runs(lab.execute(tmp_path, lab.SMALL + SWEEP))}
    assert runs.keys() == set(SERIES)
    for series, run in runs.items():
        assert run["environment"]["kernel"]["release"] == builds[series].release
        assert run["environment"]["build"]["series"] == run["spec"]["kernel"] == series
        assert run["inputs"]["kernel"] == builds[series].facts["kernel_key"]
        assert run["run"].startswith(f"{series}-s1-")
        assert run["verdict"]["value"] == "valid"
        assert run["metrics"]["goodput_mbps"] > 15
    assert runs["6.12"]["inputs"]["kernel"] != runs["7.2"]["inputs"]["kernel"]
    alone = tmp_path / "alone"
    alone.mkdir()
    (by_itself,) = lab.runs(lab.execute(alone, f"{lab.SMALL}kernel: '6.12'\n"))
    assert by_itself["packets"] == runs["6.12"]["packets"] != ""
    assert by_itself["run"].rpartition("-")[2] == runs["6.12"]["run"].rpartition("-")[2]

    results = ["--results", str(tmp_path / "results")]
    file = tmp_path / "experiment.yml"

    table = json.loads(lab.warpbed("metrics", file, *results, "--format", "json"))
    assert [row["params"] for row in table] == [{"linux": "6.12"}, {"linux": "7.2"}]
    assert "kernels 6.12 (built), 7.2 (built)" in lab.warpbed("check", file)
    assert "2 of 2 runs exist and were made from the current sources" in lab.warpbed("status", file, *results)
    assert "nothing to do: all 2 runs are there" in lab.warpbed("execute", file, *results)
    page = Path(lab.warpbed("report", file, *results).strip().splitlines()[-1].removeprefix("report: "))
    assert "linux" in page.read_text() and "6.12-s1-" in page.read_text()
