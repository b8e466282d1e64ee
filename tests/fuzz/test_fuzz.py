# SPDX-License-Identifier: Apache-2.0
"""Changed files are read or refused in a message: some of each kind here, by hand as long as one likes (tests/fuzz/whole.py)."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.fuzz import whole
from tests.fuzz.mutate import changed
from tests.fuzz.targets import TARGETS, FactsFile, InventedRun

INPUTS = {"experiment": 80, "campaign": 80, "bundle": 40}
"""Of each target; others take longer each."""
OTHERS = 10


@pytest.mark.parametrize("name", TARGETS)
def test_changed_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    outcome = whole.run(name, tmp_path, 1, inputs=INPUTS.get(name, OTHERS))
    assert outcome.findings == {}
    assert outcome.inputs == INPUTS.get(name, OTHERS)


@pytest.mark.parametrize(
    "facts", [b"{}", b"[]", b'{"start_realtime_ns": "x"}', b'{"start_realtime_ns": 1' + b"0" * 30 + b"}"]
)
def test_raw_files_that_say_what_no_run_s_do_are_refused(tmp_path: Path, facts: bytes) -> None:
    assert "what no run writes" in FactsFile(tmp_path).read(facts)


@pytest.mark.parametrize("part", ["kernel", "build"])
def test_an_environment_that_is_a_text_is_stored_without_it(tmp_path: Path, part: str) -> None:
    target = InventedRun(tmp_path)
    document = json.loads(target.content)
    document["environment"][part] = "x"
    assert target.read(json.dumps(document).encode()) == ""


def test_nesting_without_end_can_be_changed_further() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    assert {changed(deep, [b"{}"], random.Random(number)) != deep for number in range(20)} == {True}


def test_a_reader_that_breaks_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_target: object, data: bytes) -> str:
        return "" if data.startswith(b"# SPDX") else str(1 // (len(data) * 0))

    monkeypatch.setattr(TARGETS["campaign"], "read", read)
    outcome = whole.run("campaign", tmp_path, 1, inputs=200)
    (finding,) = outcome.findings
    assert finding.startswith("ZeroDivisionError at ")
