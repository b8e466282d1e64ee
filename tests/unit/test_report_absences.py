# SPDX-License-Identifier: Apache-2.0
"""A table that has no value says why: in the report, no cell is empty or a dash alone."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from analysis.report import build
from benchmarks.make_results import Case, make_results
from testbed.commands.output import render
from testbed.outcome_rows import rows_of
from testbed.outcomes import Outcomes

LACKING = "jain_index", "queue_mean_packets", "queue_max_packets", "queue_drops"
SPEC: dict[str, Any] = {
    "guards": [{"metric": "queue_drops", "max": 5}, {"metric": "utilization", "min": 0.1, "source": "own"}],
    "claims": [
        {
            "greater": {"metric": "queue_mean_packets", "cca": ["reno", "cubic"]},
            "source": "Fig 1",
        },
        {"greater": {"metric": "goodput_mbps", "cca": ["reno", "cubic"]}, "source": "Fig 2"},
    ],
    "published": [
        {
            "metric": "queue_max_packets",
            "source": "Table 1",
            "tolerance": "1%",
            "values": [{"where": {"cca": "reno"}, "value": 3}],
        },
        {
            "metric": "goodput_mbps",
            "source": "Table 2",
            "tolerance": "1%",
            "values": [{"where": {"cca": "cubic"}, "value": 3}, {"where": {"cca": "reno"}, "value": None}],
        },
    ],
}


class Cells(HTMLParser):
    """The text of each cell of a table's body, with the titles of what is in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.cells: list[list[str]] = []
        self._open = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("td", "th"):
            self.cells.append(["", ""])
            self._open = True
        elif self._open and dict(attrs).get("title"):
            self.cells[-1][1] += str(dict(attrs)["title"])

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            self.cells[-1][0] += data.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two algorithms without samples of the queue, one of them with a single seed, a failed run, and one that is cut off."""
    cases = [
        Case("reno", 50, 1),
        Case("reno", 50, 2),
        Case("cubic", 50, 1),
        Case("medley", 50, 1, kind="failed"),
        Case("medley", 50, 2, kind="cut-off"),
    ]
    folders = make_results(tmp_path, cases, duration_s=2.0, spec=SPEC)
    for file in folders.glob("*/run.json"):
        run = json.loads(file.read_text())
        run["metrics"] = {name: value for name, value in run["metrics"].items() if name not in LACKING}
        if run["metrics"]:
            row = {
                "flow": "ftp",
                "app": "transfers",
                "src": "s1",
                "dst": "d1",
                "completed": 0,
                "completion_mean_s": None,
            }
            run["metrics"]["applications"] = [row]
        file.write_text(json.dumps(run))
    return folders


def test_every_cell_without_a_number_says_why(folder: Path) -> None:
    html = build(folder)
    cells = Cells(html).cells
    dashes = [title for text, title in cells if text == "–"]
    assert len(dashes) > 20
    assert [cell for cell in cells if cell[0] == "–" and len(cell[1]) <= 15] == []
    remarks = [text for text, _ in cells if not text]
    assert len(remarks) <= 2  # of claims and guards about which there is nothing to remark
    assert any("needs samples of the bottleneck's queue" in title for title in dashes)
    assert any("the run is failed" in title for title in dashes)
    assert any("the run is unreadable" in title for title in dashes)
    assert any("lost in the paper" in title for title in dashes)
    assert "without a value: completion_mean_s" in html
    assert ["one observation", ""] in cells


def test_reasons_stand_below_the_tables_too(folder: Path) -> None:
    html = build(folder)
    assert html.count('<ul class="lacking">') == 2
    remedy = "needs samples of the bottleneck&#39;s queue (queues); write samplers.queues: 10ms, and a topology with a bottleneck"
    assert f"{remedy}</li>" in html


def test_guards_have_their_numbers_in_csv_as_well(folder: Path) -> None:
    from analysis.expectations import check_all
    from analysis.results import load_experiment

    guards = check_all(SPEC["guards"], load_experiment(folder))
    text = render(rows_of(Outcomes(guards, (), ())), "csv").splitlines()
    drops, used = text[1:]
    assert "queue_drops is unknown in all of them: needs samples of the bottleneck's queue" in drops
    assert float(used.split(",")[7]) <= float(used.split(",")[8])
