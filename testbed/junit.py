# SPDX-License-Identifier: Apache-2.0
"""What became of claims, guards, published numbers and entries as JUnit XML, which CI services read."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from analysis.evaluation.outcomes import Judged as Criterion
from analysis.reproduction.outcomes import Judged
from analysis.results import show
from base.files import replace_bytes
from base.text import clean
from testbed.baseline import Change
from testbed.outcomes import Outcomes, claim_line, guard_line


@dataclass(frozen=True)
class Case:
    """One thing that was judged. failed: what makes the command end with 1; skipped: undecided, not run, or known and explained."""

    group: str
    name: str
    outcome: Literal["passed", "failed", "skipped"]
    message: str = ""


def of_outcomes(judged: Outcomes) -> list[Case]:
    """The guards, claims and published numbers of an experiment."""
    cases = [
        Case(
            "guards",
            f"{one.expectation.metric} {one.expectation.bound}{_where(one.expectation.where)}",
            "passed" if one.outcome == "holds" else "failed",
            guard_line(one),
        )
        for one in judged.guards
    ]
    for claim in judged.claims:
        outcome: Literal["passed", "failed", "skipped"] = "passed" if claim.outcome == "holds" else "skipped"
        cases.append(
            Case(
                "claims",
                f"{claim.claim.source}: {claim.words}",
                "failed" if claim.failed else outcome,
                claim_line(claim),
            )
        )
    for row in judged.published:
        failed = row.outcome == "disagrees" and not row.known
        passed: Literal["passed", "skipped"] = "passed" if row.outcome == "agrees" else "skipped"
        message = f"{row.outcome}: published {row.published}, measured {row.measured} {row.reason}".strip()
        cases.append(
            Case("published", f"{row.source}: {row.metric}, {row.place}", "failed" if failed else passed, message)
        )
    return cases


def of_entries(judged: Sequence[Judged]) -> list[Case]:
    """The entries of theses. An explained contradiction is skipped, with its reason."""
    cases = []
    for one in judged:
        passed: Literal["passed", "skipped"] = "passed" if one.outcome.startswith("agrees") else "skipped"
        outcome: Literal["passed", "failed", "skipped"] = "failed" if one.failed else passed
        thesis = one.entry.id.partition("-")[0]
        cases.append(
            Case(thesis, f"{one.entry.id}: {one.entry.title}", outcome, f"{one.word}: {one.reason}".rstrip(": "))
        )
    return cases


def of_criteria(criteria: Sequence[Criterion]) -> list[Case]:
    """The claims of an evaluation, by criterion; what is not decided is skipped."""
    outcomes: dict[str, Literal["passed", "failed", "skipped"]] = {"holds": "passed", "contradicted": "failed"}
    return [
        Case(
            one.name,
            said.says,
            outcomes.get(said.outcome, "skipped"),
            f"{said.outcome}: {said.words} ({said.reason}) [{one.document}, {one.section}: {one.level} {one.asks}]".replace(
                " ()", ""
            ),
        )
        for one in criteria
        for said in one.said
    ]


def of_changes(changes: Sequence[Change]) -> list[Case]:
    """What was compared with a baseline."""
    return [
        Case("baseline", f"{one.metric}{_where(one.params)}", "failed" if one.changed else "passed", one.words)
        for one in changes
    ]


def write(file: Path, suite: str, cases: Sequence[Case]) -> None:
    """Write them as one test suite; the file appears whole."""
    count = {name: str(sum(case.outcome == name for case in cases)) for name in ("failed", "skipped")}
    top = ET.Element("testsuites")
    numbers = {"tests": str(len(cases)), "failures": count["failed"], "errors": "0", "skipped": count["skipped"]}
    node = ET.SubElement(top, "testsuite", {"name": clean(suite), **numbers})
    for case in cases:
        element = ET.SubElement(
            node, "testcase", {"classname": clean(f"{suite}.{case.group}"), "name": clean(case.name), "time": "0"}
        )
        if case.outcome == "failed":
            ET.SubElement(element, "failure", {"message": clean(case.message)})
        elif case.outcome == "skipped":
            ET.SubElement(element, "skipped", {"message": clean(case.message)})
    ET.indent(top, " ")
    replace_bytes(file, ET.tostring(top, encoding="utf-8", xml_declaration=True) + b"\n")


def _where(params: object) -> str:
    pairs = dict(params) if isinstance(params, dict) else {}
    return f" where {', '.join(f'{name}={show(value)}' for name, value in pairs.items())}" if pairs else ""
