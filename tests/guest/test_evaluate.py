# SPDX-License-Identifier: Apache-2.0
"""`./warpbed evaluate --module`: a new algorithm is evaluated by one command, and one that never backs off is found."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from base.errors import WarpbedError
from hosts.virtual.kernel import find
from kernels import series
from tests import lab
from tests.waiting import wait_until

CRITERIA = "high-loss,beside-cubic,collapse"
BACKS_OFF = "u32 ssthresh = max_t(u32, cwnd - div_u64(given_up, 100), 2);"
NEVER = "u32 ssthresh = max_t(u32, cwnd + div_u64(given_up, 100), 2);"

pytestmark = pytest.mark.timeout(1200)


def evaluated(folder: Path, name: str, source: str, code: int) -> dict[str, Any]:
    module = folder / name
    module.mkdir()
    template = (lab.ROOT / "kernels/template/module.c.in").read_text()
    assert BACKS_OFF in template
    text = template.replace("@NAME@", name).replace(BACKS_OFF, source)
    (module / f"tcp_{name}.c").write_text(text)
    results = folder / "results"
    lab.warpbed(
        "evaluate",
        "--module",
        module,
        "--quick",
        "--only",
        CRITERIA,
        "--jobs",
        "1",
        "--results",
        results,
        code=code,
        timeout_s=1100,
    )
    data = json.loads((results / f"evaluations/{name}/evaluation.json").read_text())
    assert (results / f"evaluations/{name}/index.html").exists() and (
        results / f"evaluations/{name}/junit.xml"
    ).exists()
    return {one["criterion"]: one for one in data["criteria"]}


def test_a_module_that_never_backs_off_is_found(tmp_path: Path) -> None:
    """The template passes; with a threshold above the window at each loss the same module fails beside CUBIC and by its losses.
    A link that loses everything does not tell them apart: then the kernel's timer alone decides."""
    good = evaluated(tmp_path, "eta", BACKS_OFF, 0)
    assert {one["outcome"] for one in good.values()} <= {"passes", "undecided"}
    assert good["collapse"]["outcome"] == "passes"
    bad = evaluated(tmp_path, "theta", NEVER, 1)
    failing = {name for name, one in bad.items() if one["outcome"] == "fails"}
    assert {"high-loss", "beside-cubic"} <= failing
    assert bad["collapse"]["outcome"] == "passes"
    wait_until(lambda: not list(Path(tempfile.gettempdir()).glob("warpbed-evaluate-*")))


OLDER = "6.1"


@pytest.mark.parametrize("named", ["series", "build"])
def test_an_algorithm_of_another_kernel_is_evaluated_beside_that_kernel_s(named: str, tmp_path: Path) -> None:
    """By a series's name or by a build's folder: each run is that kernel's by its own word, and what it lacks is not run."""
    try:
        build = find(OLDER).modules.parent
    except WarpbedError as error:
        pytest.skip(str(error))
    results = tmp_path / "results"
    which = OLDER if named == "series" else str(build)
    only = ["--only", "accurate-ecn,collapse", "--quick", "--jobs", "1"]
    lab.warpbed("evaluate", "bbr", "--kernel", which, *only, "--results", results, timeout_s=1100)
    if named == "build":
        (results,) = (results / "evaluations/kernels").iterdir()
    data = json.loads((results / f"evaluations/bbr-{OLDER}/evaluation.json").read_text())
    assert data["kernel"].startswith(OLDER)
    by_name = {one["criterion"]: one for one in data["criteria"]}
    assert by_name["collapse"]["outcome"] == "passes"
    lacking = by_name["accurate-ecn"]
    assert lacking["outcome"] == "not run" and "CONFIG_NET_SCH_DUALPI2" in lacking["why_not"]
    runs = lab.runs(results / "evaluate-collapse")
    assert {run["params"]["cca"] for run in runs} == {"cubic", "reno", "bbr"}
    assert {".".join(run["environment"]["kernel"]["release"].split(".")[:2]) for run in runs} == {OLDER}
    assert OLDER != series.DEFAULT
