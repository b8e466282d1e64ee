# SPDX-License-Identifier: Apache-2.0
"""`import warpbed` hands on what the command line prints, in every form, and says what it cannot do."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import warpbed
from base.layers import RUN_PACKAGES
from base.paths import ROOT
from benchmarks.make_results import Case, make_results
from tests import lab
from tests.waiting import wait_until

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")
EXTRAS = ("asyncssh", "dask", "distributed", "fsspec", "pandas", "polars", "rocrate", "sshfs", "xarray")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_results(tmp_path_factory.mktemp("results"), duration_s=6.0)


@pytest.fixture(scope="module")
def experiment(folder: Path) -> warpbed.Experiment:
    return warpbed.load(folder)


def test_every_number_is_the_one_that_the_command_prints(folder: Path, experiment: warpbed.Experiment) -> None:
    printed = json.loads(lab.warpbed("metrics", folder.name, "--results", folder.parent, "--format", "json"))
    assert len(printed) == len(experiment) == 12
    for row, run in zip(printed, experiment.runs, strict=True):
        assert (row["run"], row["seed"], row["params"], row["verdict"]) == (run.id, run.seed, run.params, run.verdict)
        assert row["metrics"] == run.metrics
    table = experiment.metrics()
    assert [row["utilization"] for row in table] == [row["metrics"]["utilization"] for row in printed]


def test_a_table_says_the_same_in_arrow_pandas_and_polars(experiment: warpbed.Experiment) -> None:
    table = experiment.records("queues", ["t_s", "backlog_packets"])
    assert table.columns == ["run", "seed", "param.cca", "param.buffer", "t_s", "backlog_packets"]
    rows = table.arrow.to_pylist()
    assert len(table) == len(rows) > 1000
    assert table.polars().to_dicts() == rows
    assert table.pandas().to_dict("records") == rows
    assert experiment.runs[0].records("queues", ["t_s"]).rows == [
        {"t_s": row["t_s"]} for row in rows if row["run"] == experiment.runs[0].id
    ]


def test_a_notebook_shows_one_line_for_what_it_names(experiment: warpbed.Experiment) -> None:
    assert repr(experiment) == f"<Experiment {experiment.name}: 12 runs over cca, buffer>"
    assert repr(experiment.runs[0]) == f"<Run {experiment.runs[0].id}: valid>"


def test_values_without_a_common_type_become_text_and_markup_stays_text() -> None:
    table = warpbed.Table.of([{"a": 1, "b": [1, 2]}, {"a": "<b>", "c": None}])
    assert table.rows == [{"a": "1", "b": "[1, 2]", "c": None}, {"a": "<b>", "b": None, "c": None}]
    assert "<b>" not in table._repr_html_() and "&lt;b&gt;" in table._repr_html_()


def test_a_sweep_has_each_run_at_its_place(experiment: warpbed.Experiment) -> None:
    values = experiment.sweep("utilization", "flows.f1.goodput_mbps")
    assert dict(values.sizes) == {"cca": 3, "buffer": 2, "seed": 2}
    assert list(values.buffer_value) == [50.0, 250.0], "by size, not by text"
    for run in experiment.runs:
        at = {"cca": run.params["cca"], "buffer": run.params["buffer"], "seed": run.seed}
        assert float(values.utilization.sel(at)) == run.metrics["utilization"]
        assert float(values["flows.f1.goodput_mbps"].sel(at)) == run.flows[0]["goodput_mbps"]
    assert values.utilization.attrs["units"] == "1"


def test_runs_that_do_not_count_are_no_numbers_in_a_sweep(tmp_path: Path) -> None:
    cases = (Case("reno", 50, 1), Case("cubic", 50, 1, verdict="invalid"), Case("reno", 250, 1), Case("cubic", 250, 1))
    loaded = warpbed.load(make_results(tmp_path, cases, duration_s=4.0)).sweep("utilization").utilization
    assert loaded.sel(cca="cubic", buffer="50p", seed=1).isnull()
    assert int(loaded.isnull().sum()) == 1


def test_failed_and_cut_off_runs_say_why(tmp_path: Path) -> None:
    cases = (Case("reno", 50, 1), Case("cubic", 50, 1, kind="failed"), Case("cubic", 250, 1, kind="cut-off"))
    loaded = warpbed.load(make_results(tmp_path, cases, duration_s=4.0))
    assert sorted(run.verdict for run in loaded) == ["failed", "unreadable", "valid"]
    assert all(run.problems for run in loaded if not run.complete)
    assert len(loaded.records("queues")) == len(loaded.where(cca="reno")[0].records("queues"))


def test_claims_come_from_the_file_as_compare_prints_them(tmp_path: Path) -> None:
    file = lab.write(tmp_path, lab.SMALL + "guards:\n  - {metric: utilization, min: 0.9}\n")
    make_results(tmp_path, [Case("cubic", 40, 1)], experiment="small", duration_s=4.0)
    loaded = warpbed.load(file, results=tmp_path)
    assert (len(loaded), len(loaded.missing)) == (0, 1), (
        "what the file asks for is not there; other runs do not answer it"
    )
    (row,) = loaded.claims()
    assert (row["kind"], row["metric"], row["asked"], row["outcome"]) == (
        "expectation",
        "utilization",
        "≥ 0.9",
        "not comparable",
    )
    with pytest.raises(warpbed.UsageError, match="load the experiment by its file"):
        warpbed.load(tmp_path / "small").claims()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda e: e.where(buffr=1), "no parameter 'buffr'"),
        (lambda e: e.runs[0].records("queue"), "queues"),
        (lambda e: e.runs[0].records("queues", ["t"]), "no column t"),
        (lambda e: e.runs[0].metric("utilisation"), "did you mean utilization"),
        (lambda e: e.sweep("utilisation"), "did you mean utilization"),
        (lambda e: e.paired("cca", "reno", "bbr"), "no run has cca=bbr"),
    ],
)
def test_a_wrong_name_is_named_with_what_there_is(experiment: warpbed.Experiment, call: object, says: str) -> None:
    with pytest.raises(warpbed.WarpbedError, match=says):
        call(experiment)  # type: ignore[operator]


def test_a_command_hands_on_exit_codes_as_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "warpbed"
    fake.write_text('#!/bin/sh\necho "told $*"\necho aside >&2\nexit $1\n')
    fake.chmod(0o755)
    (tmp_path / "playbooks").mkdir()
    monkeypatch.setenv("WARPBED_CHECKOUT", str(tmp_path))
    heard: list[str] = []
    assert warpbed.command("0", "a b", say=heard.append) == "told 0 a b\n"
    assert heard == ["aside"]
    with pytest.raises(warpbed.UsageError, match="ended with 2"):
        warpbed.command("2")
    with pytest.raises(warpbed.WarpbedError, match="ended with 1"):
        warpbed.command("1")
    assert warpbed.command("1", allowed=(0, 1)) == "told 1\n"


def test_a_command_ends_with_the_python_that_called_it(tmp_path: Path) -> None:
    fake = tmp_path / "warpbed"
    fake.write_text(f"#!/bin/sh\necho begun\ncat >/dev/null\necho ended >{tmp_path}/ended\n")
    fake.chmod(0o755)
    (tmp_path / "playbooks").mkdir()
    code = "import warpbed.starting as s, os; s._called(['x'], lambda line: os._exit(9))"
    environment = {"WARPBED_CHECKOUT": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{ROOT}/python"}
    done = subprocess.run([sys.executable, "-P", "-c", code], env=environment, cwd=tmp_path, timeout=60)
    assert done.returncode == 9
    wait_until((tmp_path / "ended").exists)


def test_a_package_of_the_same_name_is_told(tmp_path: Path) -> None:
    (tmp_path / "plan.py").write_text("")
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{tmp_path}:{ROOT}/python"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", "import warpbed"], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "'plan'" in done.stderr and "rename your module" in done.stderr


def test_pip_asks_for_the_versions_that_the_environment_is_locked_from() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = _requirements("requirements.in") | _requirements("requirements-notebooks.in")
    asked = {_name(line): line for line in (*project["dependencies"], *project["optional-dependencies"]["notebooks"])}
    assert {name: locked.get(name) for name in asked} == asked


def _requirements(file: str) -> dict[str, str]:
    lines = [line for line in (ROOT / file).read_text().splitlines() if line and not line.startswith(("#", "-"))]
    return {_name(line): line for line in lines}


def _name(line: str) -> str:
    match = re.match(r"[A-Za-z0-9.-]+", line)
    assert match
    return match[0]


def test_a_wheel_holds_the_packages_that_runs_need() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert set(wheel["include"]) == {"python/warpbed", *RUN_PACKAGES}
    assert {name: to for name, to in wheel["sources"].items() if to != "warpbed"} == {
        name: f"warpbed/_parts/{name}" for name in RUN_PACKAGES
    }


def test_extras_are_imported_only_where_they_are_asked_for() -> None:
    """A run's own path needs none of them: they are not in its environment."""
    seen = set()
    for package in RUN_PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(file.read_text()).body:  # at import; inside functions is where they are asked for
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                seen |= {f"{file.relative_to(ROOT)}: {name}" for name in names if name.partition(".")[0] in EXTRAS}
    assert seen == set()


def test_the_notebooks_come_without_outputs() -> None:
    files = list((ROOT / "notebooks").glob("*.ipynb"))
    assert len(files) >= 3
    for file in files:
        for cell in json.loads(file.read_text())["cells"]:
            assert not cell.get("outputs") and cell.get("execution_count") is None, file
