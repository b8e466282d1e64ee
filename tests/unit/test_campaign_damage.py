# SPDX-License-Identifier: Apache-2.0
"""One damaged run in a campaign's results is shown as damaged, and all others stay in status, table and claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.results import FORMAT
from testbed.campaign import known_ends, remote
from testbed.campaign.ends import End
from testbed.campaign.journal import Journal
from testbed.campaign.model import load
from testbed.campaign.outcome import of_run, runs_in
from testbed.campaign.schedule import run_of
from testbed.commands import campaign as command
from tests import lab
from tests.campaign_text import campaign as campaign_text

CAMPAIGN = campaign_text(runs="1", claims="[{source: x, metric: completion_s, where: {cca: reno}, bounds: {min: 0.5}}]")
GOOD: dict[str, Any] = {
    "format": FORMAT, "status": "complete", "host": "wan",
    "params": {"receiver": "b", "cca": "reno", "size": "1MB", "run": 1},
    "verdict": {"value": "valid", "reasons": []}, "metrics": {"flows": [{"flow": "t", "completion_s": 2.0}]},
}  # fmt: skip
DAMAGED = {
    "empty": "", "cut": "{", "list": "[]", "word": '"x"', "null": "null", "deep": "[" * 100_000,
    "binary": "\ud800\udcff",
    "params": json.dumps({**GOOD, "params": []}), "flows": json.dumps({**GOOD, "metrics": {"flows": [3]}}),
    "newer": json.dumps({**GOOD, "format": 99}), "no format": "{}",
}  # fmt: skip


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results in which the campaign's only transfer is there."""
    monkeypatch.setenv("WARPBED_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(remote, "ask", lambda *_arguments, **_more: {"transfers": {}})
    monkeypatch.setattr(command, "stop_on_signals", lambda _: None)
    campaign, _ = load(lab.write(tmp_path, CAMPAIGN, "c.yml"))
    (transfer,) = run_of(campaign, 1, "wan")
    ends = {name: End(address=f"192.0.2.{i}", host="h", agent="/a", consent="x") for i, name in enumerate("ab", 1)}
    known_ends.write(tmp_path / "results/demo", ends)
    put(tmp_path / "results", transfer.id, json.dumps(GOOD))
    return tmp_path / "results"


def put(results: Path, name: str, content: str) -> None:
    (results / "demo" / name).mkdir(parents=True)
    (results / "demo" / name / "run.json").write_bytes(content.encode(errors="surrogatepass"))


def campaign(results: Path, *words: str) -> str:
    return lab.inside("campaign", words[0], results.with_name("c.yml"), *words[1:], "--results", results)


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_run_is_named_and_the_others_stay(results: Path, content: str) -> None:
    put(results, "r0009-b", content)
    status = campaign(results, "status")
    assert "demo: not begun; 1 of about 1 transfers (100%), 0.00 GB" in status
    assert "damaged: r0009-b: " in status and "run.json" in status
    assert list(json.loads(campaign(results, "status", "--format", "json"))["damaged"]) == ["r0009-b"]
    table = campaign(results, "table")
    assert "2 (n=1, 1.00×)" in table and "damaged: r0009-b: " in table and "undecided: completion_s" in table
    executed = campaign(results, "execute", "--host", "wan")
    assert "2 (n=1, 1.00×)" in executed and "damaged: r0009-b: " in executed


def test_a_folder_without_a_runs_document_is_damaged_and_what_failed_is_not(results: Path) -> None:
    (results / "demo/r0008-b").mkdir()
    put(results, "r0007-b.failed-1", "{")
    assert "damaged: r0008-b: no run.json" in campaign(results, "status")
    assert "r0007-b" not in campaign(results, "status")


def test_a_journal_with_times_that_are_none_is_shown(results: Path) -> None:
    journal = Journal(results / "demo")
    journal.add("begun", host="wan")
    with open(journal.file, "a") as file:
        file.write('{"time": 1e300, "event": "over"}\n{"time": NaN, "event": "over"}\n')
    assert "demo: over; 1 of about 1" in campaign(results, "status")


@pytest.mark.parametrize("seconds", ["0", "-1", "true", '"x"', "null", "{}"])
def test_a_time_that_no_transfer_takes_is_no_outcome(results: Path, seconds: str) -> None:
    put(results, "r0009-b", json.dumps(GOOD).replace("2.0", seconds))
    good, other = runs_in(results / "demo")
    assert of_run(good) is not None and of_run(other) is None
    assert "(n=1" in campaign(results, "table")


@pytest.mark.parametrize("seconds", ["NaN", "1e999", "0", "[" * 100_000], ids=["NaN", "endless", "none", "deep"])
def test_what_the_program_said_of_a_cut_capture_has_to_be_a_time(results: Path, seconds: str) -> None:
    reasons = [{"rule": "capture-cut", "severity": "warning", "message": "x"}]
    put(results, "r0009-b", json.dumps({**GOOD, "verdict": {"value": "suspect", "reasons": reasons}}))
    (results / "demo/r0009-b/raw").mkdir()
    (results / "demo/r0009-b/raw/t.client.json").write_text(f'{{"seconds": {seconds}}}')
    assert [of_run(run) is None for run in runs_in(results / "demo")] == [False, True]
