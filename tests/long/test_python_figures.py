# SPDX-License-Identifier: Apache-2.0
"""`import warpbed` draws what the report draws, and needs no checkout to read results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import warpbed
from analysis.report import static
from base.paths import ROOT
from benchmarks.make_results import make_results
from tests.few_figures import draw_few

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_results(tmp_path_factory.mktemp("results"), duration_s=6.0)


@pytest.fixture(scope="module")
def experiment(folder: Path) -> warpbed.Experiment:
    return warpbed.load(folder)


def test_the_figures_are_those_of_the_report(
    folder: Path, experiment: warpbed.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static, "KINDS", ("svg",))
    draw_few(monkeypatch)
    written = {file.name: file.read_bytes() for file in _figures(folder, tmp_path)}
    drawn = experiment.figures()
    assert {f"{name}.svg" for name in drawn} == {name for name in written if name.endswith(".svg")}
    assert drawn["cwnd"].save(tmp_path / "cwnd.svg").read_bytes() == written["cwnd.svg"]
    with pytest.raises(warpbed.UsageError, match="svg, pdf, png"):
        drawn["cwnd"].save(tmp_path / "cwnd.exe")


def _figures(folder: Path, place: Path) -> list[Path]:
    from analysis.report import write_report

    write_report(folder, place / "report.html", figures=True)
    return list((place / "figures").iterdir())


def test_without_a_checkout_results_load_and_runs_are_refused(folder: Path, tmp_path: Path) -> None:
    """The wheel, unpacked by pip: what it brings is enough to read results and files, and it says what it cannot do."""
    pip = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    before = set(ROOT.iterdir())
    subprocess.run([*pip, "--target", tmp_path / "site", ROOT], check=True, capture_output=True, timeout=110)
    assert set(ROOT.iterdir()) == before, "nothing is left in the checkout"
    code = f"""
import warpbed, base.paths
assert base.paths.ROOT.is_relative_to({str(tmp_path)!r}), base.paths.ROOT
experiment = warpbed.load({str(folder)!r})
print(len(experiment), len(experiment.metrics()), experiment.report())
from testbed.experiments import prepare
from pathlib import Path
print(len(prepare(Path({str(ROOT / "experiments/quickstart.yml")!r})).runs))
for call in (lambda: warpbed.run("x.yml"), lambda: warpbed.command("list"), lambda: warpbed.checkout()):
    try:
        call()
    except warpbed.UsageError as error:
        print(error)
"""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path / "site"), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("12 12 ") and lines[1] == "12"
    assert len(lines) == 5 and all("WARPBED_CHECKOUT" in line and "kernels are built" in line for line in lines[2:])
