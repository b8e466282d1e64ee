# SPDX-License-Identifier: Apache-2.0
"""Claims against runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.errors import ExpectationError
from analysis.expectations import check, check_all, parse
from analysis.results import Run


def run(name: str, value: float | None, verdict: str = "valid", status: str = "complete", **params: Any) -> Run:
    return Run("e", name, Path(name), 1, params, "virtual", status, "", verdict, (), {"queue_max_packets": value})


RUNS = (
    run("a", 5, cca="medley", buffer="50p"),
    run("b", 9, cca="medley", buffer="250p"),
    run("c", 250, cca="cubic", buffer="250p"),
)


def outcome(claim: dict[str, Any], runs: tuple[Run, ...] = RUNS) -> tuple[str, str]:
    finding = check(parse({"metric": "queue_max_packets", **claim}), runs)
    return finding.outcome, finding.reason


def test_a_claim_holds_when_every_run_that_it_is_about_keeps_to_it() -> None:
    assert outcome({"where": {"cca": "medley"}, "max": 12}) == ("holds", "")
    assert outcome({"where": {"cca": "medley"}, "within": [5, 9]}) == ("holds", "")
    assert outcome({"where": {"cca": "cubic"}, "equals": 250}) == ("holds", "")


def test_one_run_is_enough_to_break_a_claim() -> None:
    assert outcome({"max": 12}) == ("does not hold", "not in 1 of 3 runs")
    assert outcome({"where": {"cca": "medley"}, "min": 6, "max": 12})[0] == "does not hold"


def test_what_cannot_be_compared_says_why() -> None:
    assert outcome({"where": {"cca": "bbr"}, "max": 1}) == ("not comparable", "no run has these parameters")
    assert outcome({"where": {"delay": "1s"}, "max": 1})[1] == "no run has a parameter delay; there are cca, buffer"
    unknown = (run("a", None, cca="reno"),)
    result, reason = outcome({"max": 1}, unknown)
    assert result == "not comparable"
    assert reason.startswith("queue_max_packets is unknown in all of them: needs samples of the bottleneck's queue")
    failed = (run("a", None, status="failed", verdict="", cca="reno"), run("b", 5, verdict="invalid", cca="reno"))
    assert outcome({"max": 1}, failed) == ("not comparable", "no run of these counts (1 failed, 1 invalid)")


def test_runs_left_out_and_suspect_ones_are_reported() -> None:
    runs = (run("a", 5, cca="x"), run("b", 6, verdict="suspect", cca="x"), run("c", 99, verdict="invalid", cca="x"))
    assert outcome({"max": 12}, runs) == ("holds", "1 runs left out (1 invalid); 1 of the runs are suspect")


def test_nulls_of_the_resolved_experiment_are_no_bounds() -> None:
    claim = parse({"metric": "utilization", "where": {}, "min": 0.99, "max": None, "source": None})
    assert claim.bound == "≥ 0.99"


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"metric": "queue_max", "max": 1}, "did you mean .*queue_max_packets"),
        ({"metric": "utilization"}, "has no bound; write"),
        ({"metric": "utilization", "min": 1, "equals": 1}, "write min, max or both"),
        ({"metric": "utilization", "within": 3}, r"write \[low, high\]"),
        ({"metric": "utilization", "min": "a lot"}, "'a lot' is not a number"),
        ({"metric": "utilization", "maximum": 1}, "expectation has maximum"),
        ({"min": 1}, "names None as its metric"),
    ],
)
def test_a_malformed_claim_is_refused(claim: dict[str, Any], message: str) -> None:
    with pytest.raises(ExpectationError, match=message):
        parse(claim)


def test_all_claims_are_checked_in_order() -> None:
    findings = check_all(
        [{"metric": "queue_max_packets", "max": 12}, {"metric": "queue_max_packets", "max": 999}], RUNS
    )
    assert [finding.outcome for finding in findings] == ["does not hold", "holds"]
