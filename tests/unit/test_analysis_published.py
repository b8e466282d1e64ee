# SPDX-License-Identifier: Apache-2.0
"""A paper's numbers beside measured ones: when they agree, when they do not, and when that cannot be said."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from analysis import published
from analysis.report import Written, write_report
from analysis.results import Run
from benchmarks.make_results import make_results
from schema.published import Published


def runs(values: Mapping[str, Sequence[float]]) -> list[Run]:
    """Valid runs of one metric, some seeds per algorithm."""
    return [
        Run(
            "x",
            f"{cca}-{seed}",
            Path("x"),
            seed,
            {"cca": cca},
            status="complete",
            verdict="valid",
            metrics={"utilization": value},
        )
        for cca, measured in values.items()
        for seed, value in enumerate(measured, 1)
    ]


def table(values: Mapping[str, float | None], **more: Any) -> Published:
    rows = [{"where": {"cca": cca}, "value": value} for cca, value in values.items()]
    return Published.model_validate({"source": "Table 1", "metric": "utilization", "values": rows, **more})


def outcomes(claim: Published, measured: Mapping[str, Sequence[float]]) -> list[str]:
    return [row.outcome for row in published.compare([claim], runs(measured))]


def test_a_mean_within_the_tolerance_agrees_and_one_outside_does_not() -> None:
    claim = table({"reno": 0.8, "cubic": 0.8}, tolerance="5%")
    assert outcomes(claim, {"reno": [0.839], "cubic": [0.841]}) == ["agrees", "disagrees"]


def test_an_interval_that_reaches_the_tolerance_agrees_and_says_so() -> None:
    (row,) = published.compare([table({"reno": 0.8}, tolerance=0.01)], runs({"reno": [0.75, 0.85, 0.87]}))
    assert row.outcome == "agrees"
    assert row.reason == "3% above the published value; its interval reaches the tolerance"
    assert row.runs == 3


def test_an_order_is_contradicted_by_means_the_other_way_round() -> None:
    claim = table({"reno": 0.7, "cubic": 0.8, "medley": 0.9}, order=True)
    assert outcomes(claim, {"reno": [0.5], "cubic": [0.6], "medley": [0.7]}) == ["agrees"] * 3
    rows = published.compare([claim], runs({"reno": [0.5], "cubic": [0.7], "medley": [0.6]}))
    assert [row.outcome for row in rows] == ["agrees", "disagrees", "disagrees"]
    assert rows[1].reason == "the other way round with cca = medley"


def test_overlapping_intervals_do_not_decide_an_order() -> None:
    claim = table({"reno": 0.7, "cubic": 0.8}, order=True)
    assert outcomes(claim, {"reno": [0.5, 0.7], "cubic": [0.45, 0.7]}) == ["not comparable"] * 2


def test_means_whose_difference_is_sure_decide_an_order_where_their_intervals_overlap() -> None:
    """By hand, of five values each with a variance of 1: intervals are 1.241 wide to either side (t of 4), and the difference's 1.458
    (2.306, t of 8, times the root of 2/5), so that means 1.45 apart decide nothing and 1.47 apart do."""
    spread = [math.sqrt(2), -math.sqrt(2), 0, 0, 0]
    claim = table({"reno": 0.8, "cubic": 0.9}, order=True)
    for apart, outcome in ((1.45, "not comparable"), (1.47, "disagrees"), (2.5, "disagrees")):
        measured = {"reno": [10 + apart + value for value in spread], "cubic": [10 + value for value in spread]}
        assert outcomes(claim, measured) == [outcome, outcome]


def test_what_was_not_measured_or_is_lost_is_not_comparable() -> None:
    claim = table({"reno": 0.8, "cubic": None, "bic": 0.8}, tolerance="5%")
    rows = published.compare([claim], runs({"reno": [0.8], "cubic": [0.9]}))
    assert [row.outcome for row in rows] == ["agrees", "not comparable", "not comparable"]
    assert rows[1].measured == 0.9
    assert rows[2].reason == "not measured: no run has these parameters"


def test_a_value_that_several_combinations_match_names_the_parameter_that_is_open() -> None:
    rows = [
        Run(
            "x",
            f"{buffer}",
            Path("x"),
            1,
            {"cca": "reno", "buffer": buffer},
            status="complete",
            verdict="valid",
            metrics={"utilization": 0.8},
        )
        for buffer in ("50p", "250p")
    ]
    (row,) = published.compare([table({"reno": 0.8}, tolerance="5%")], rows)
    assert row.reason == "2 combinations match; `where` has to name buffer"


def test_invalid_runs_do_not_count() -> None:
    bad = Run(
        "x", "r", Path("x"), 1, {"cca": "reno"}, status="complete", verdict="invalid", metrics={"utilization": 0.8}
    )
    (row,) = published.compare([table({"reno": 0.8}, tolerance="5%")], [bad])
    assert (row.outcome, row.measured) == ("not comparable", None)


def test_a_disagreement_that_the_file_explains_does_not_fail() -> None:
    measured = runs({"reno": [0.5]})
    explained = published.compare([table({"reno": 0.8}, tolerance="5%", differs="PRR since Linux 3.2")], measured)
    assert explained[0].outcome == "disagrees"
    assert explained[0].reason.endswith("known: PRR since Linux 3.2")
    assert not published.failed(explained)
    assert published.failed(published.compare([table({"reno": 0.8}, tolerance="5%")], measured))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "need a tolerance"),
        ({"tolerance": "much"}, "write a share such as 5%"),
        ({"tolerance": -0.1}, "write a share such as 5%"),
        ({"not_comparable": "lost", "order": True}, "nothing is compared"),
        ({"order": True}, "two values or more"),
    ],
)
def test_a_table_that_claims_nothing_or_nonsense_is_refused(more: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        table({"reno": 0.8}, **more)


def test_the_report_shows_the_table_of_the_file_as_it_is_now(tmp_path: Path) -> None:
    folder = make_results(tmp_path, duration_s=4.0)
    claims = [
        {
            "source": "Ho 2008 <b>Fig 5.2</b>",
            "metric": "utilization",
            "tolerance": "30%",
            "values": [{"where": {"cca": cca, "buffer": "250p"}, "value": 1.0} for cca in ("reno", "medley")],
        }
    ]
    text = write_report(folder, asked=Written("my experiments/x.yml", {"published": claims})).read_text()
    assert "Beside the paper" in text
    assert "Ho 2008 &lt;b&gt;Fig 5.2&lt;/b&gt;" in text
    assert "./warpbed run &#39;my experiments/x.yml&#39;" in text
    assert "cannot be read" not in text
    broken = write_report(folder, asked=Written("x.yml", {"published": [{"metric": 1}]})).read_text()
    assert "cannot be read" in broken


def test_rows_become_json_that_can_be_read_back() -> None:
    rows = published.compare([table({"reno": 0.8}, tolerance="5%")], runs({"reno": [0.8, 0.81]}))
    (row,) = json.loads(json.dumps(published.as_data(rows)))
    assert row["where"] == {"cca": "reno"}
    assert row["interval"][0] < row["measured"] < row["interval"][1]
