# SPDX-License-Identifier: Apache-2.0
"""The figures for papers: there for every quantity, the same file for the same data, with fonts that publishers take."""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from analysis.report import write_report
from analysis.report.data import figure_data
from analysis.report.static import write_figures
from analysis.results import load_experiment
from analysis.statistics import cells
from benchmarks.make_results import Case, make_results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cases = [Case(cca, buffer, 1) for cca in ("reno", "medley") for buffer in (50, 250)]
    return make_results(tmp_path_factory.mktemp("figures"), cases, duration_s=4.0)


@pytest.fixture(scope="module")
def report(results: Path) -> Path:
    """The report with its figures, which takes ten seconds to draw."""
    return write_report(results, figures=True)


def digests(files: list[Path]) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_every_quantity_is_drawn_as_svg_and_pdf(report: Path) -> None:
    drawn = sorted((report.parent / "figures").iterdir())
    names = {file.stem for file in drawn}
    assert {"throughput", "goodput", "cwnd", "rtt", "queue", "sequence", "rtt-cdf", "sweep-utilization"} <= names
    assert {file.suffix for file in drawn} == {".svg", ".pdf"}
    assert len(drawn) == 2 * len(names)
    for file in drawn:
        if file.suffix == ".svg":
            ET.parse(file)
        else:
            assert b"/Type3" not in file.read_bytes()


def test_the_same_data_give_the_same_files(report: Path, tmp_path: Path) -> None:
    """Every figure but most of the sweeps, which one function draws: two of them stand for all."""
    runs = load_experiment(report.parent)
    data = figure_data(runs, cells(runs))
    few = {**data, "metrics": [metric for metric in data["metrics"] if metric["name"] in ("utilization", "rtt_min_ms")]}
    again = write_figures(few, tmp_path)
    assert {file.stem for file in again} >= {
        "throughput",
        "sequence",
        "rtt-cdf",
        "sweep-utilization",
        "sweep-rtt_min_ms",
    }
    assert digests(again) == digests([report.parent / "figures" / file.name for file in again])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(file.name for file in again)


def test_the_report_names_the_files_beside_it(report: Path, tmp_path: Path) -> None:
    text = report.read_text()
    for file in (report.parent / "figures").iterdir():
        assert f'href="figures/{file.name}"' in text
    assert "figures/" not in write_report(report.parent, tmp_path / "plain.html").read_text()
    assert "figures" not in {run.run for run in load_experiment(report.parent)}


def test_algorithms_that_share_a_path_get_bars_with_their_fair_share(tmp_path: Path) -> None:
    folder = make_results(tmp_path, [Case("reno", 50, seed, flows=4) for seed in (1, 2)], duration_s=2.0)
    runs = load_experiment(folder)
    for run in runs:
        for index, row in enumerate(run.metrics["flows"]):
            row["cca"] = "reno" if index else "medley"
            row["goodput_mbps"] = 1.0 if index else 7.0
    (cell,) = figure_data(runs, cells(runs))["shares"]
    assert [(part["algorithm"], part["flows"], part["fair"], part["mean"]) for part in cell["parts"]] == [
        ("medley", 1, 0.25, 0.7),
        ("reno", 3, 0.75, 0.3),
    ]
    shares_only = {**figure_data(runs, cells(runs)), "figures": [], "distributions": [], "metrics": []}
    drawn = write_figures(shares_only, tmp_path / "figures")
    assert {file.name for file in drawn} == {"shares.pdf", "shares.svg"}
