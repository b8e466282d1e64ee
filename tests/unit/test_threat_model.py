# SPDX-License-Identifier: Apache-2.0
"""The tests that docs/threat-model.md names are there, and every finding names one."""

from __future__ import annotations

import ast
import re

from base.paths import ROOT

PAGE = (ROOT / "docs/threat-model.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
LAST = {"H": 3, "M": 12, "L": 15, "A": 3, "B": 12, "C": 5}
FINDINGS = [f"{kind}{n}" for kind, last in LAST.items() for n in range(1, last + 1)]


def missing(page: str) -> list[str]:
    """Tests that a page names and that are not there."""
    return [f"{file}::{test}" for file, test in NAMED.findall(page) if test not in functions_of(file)]


def functions_of(file: str) -> set[str]:
    path = ROOT / file
    if not path.is_file():
        return set()
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_page_names_is_there() -> None:
    assert missing(PAGE) == []


def test_a_test_that_was_renamed_is_noticed() -> None:
    name, renamed = "test_a_path_is_never_a_template", "test_a_path_is_no_template"
    assert missing(PAGE.replace(name, renamed)) == [f"tests/unit/test_hostile_files.py::{renamed}"]


def test_every_finding_of_the_reviews_names_its_test() -> None:
    rows = dict(re.findall(r"^\| ([A-Z]\d+) [^|]+\| (.+) \|$", PAGE, re.MULTILINE))
    assert list(rows) == FINDINGS
    assert [finding for finding, tests in rows.items() if not NAMED.search(tests)] == []
