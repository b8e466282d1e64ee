# SPDX-License-Identifier: Apache-2.0
"""A criterion's runs and claims → what became of it, with the means of the algorithm under test and of those beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis import claims
from analysis.metrics import find
from analysis.results import Run, show
from analysis.statistics import cells

PASSES, FAILS, UNDECIDED, NOT_RUN = "passes", "fails", "undecided", "not run"
OUTCOMES = (PASSES, FAILS, UNDECIDED, NOT_RUN)


@dataclass(frozen=True)
class Value:
    """A mean with its 95 % interval (None: nothing is known of spread, or no seed changes anything).

    where: the other parameters, as text; copies: no seed changed anything
    """

    algorithm: str
    where: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    copies: bool


@dataclass(frozen=True)
class Measured:
    metric: str
    label: str
    unit: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Said:
    """A claim: what it says, what became of it, and the numbers that decided it."""

    says: str
    words: str
    outcome: str
    reason: str
    numbers: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Judged:
    """One criterion for one algorithm.

    title, question, document, section, level, asks: the file's; verdicts: runs by their standing; why_not: what the kernel lacks for it
    """

    name: str
    title: str
    question: str
    section: str
    level: str
    asks: str
    outcome: str
    said: tuple[Said, ...]
    measured: tuple[Measured, ...]
    verdicts: Mapping[str, int]
    report: str = ""
    document: str = "RFC 9743"
    why_not: str = ""


def outcome_of(outcomes: Sequence[str]) -> str:
    """From the claims' outcomes to the criterion's: it fails with one that is contradicted, and passes where all hold."""
    if not outcomes or all(word == "not comparable" for word in outcomes):
        return NOT_RUN
    if "contradicted" in outcomes:
        return FAILS
    return PASSES if all(word == "holds" for word in outcomes) else UNDECIDED


def said(findings: Sequence[claims.Finding]) -> tuple[Said, ...]:
    listed = []
    for finding, data in zip(findings, claims.as_data(findings), strict=True):
        numbers = [{"where": part["where"], **statement} for part in data["parts"] for statement in part["statements"]]
        listed.append(
            Said(finding.claim.says or finding.words, finding.words, finding.outcome, finding.reason, tuple(numbers))
        )
    return tuple(listed)


def measured(runs: Sequence[Run], metrics: Sequence[str], parameter: str) -> tuple[Measured, ...]:
    """Each metric's means by the value of `parameter` and the combination of the others."""
    table = []
    for name in metrics:
        metric = find(name)
        values = []
        for cell in cells(runs):
            others = {key: value for key, value in cell.params.items() if key != parameter}
            where = ", ".join(f"{key} {show(value)}" for key, value in others.items())
            estimate = cell.estimate(name)
            interval = None if estimate is None else estimate.t_interval
            values.append(
                Value(
                    show(cell.params.get(parameter)),
                    where,
                    None if estimate is None else estimate.mean,
                    None if interval is None else interval.low,
                    None if interval is None else interval.high,
                    0 if estimate is None else estimate.n,
                    bool(cell.copies),
                )
            )
        part = name.partition(".")[2]
        table.append(
            Measured(name, f"{metric.label} {part}".strip(), "" if metric.unit == "1" else metric.unit, tuple(values))
        )
    return tuple(table)


def verdicts(runs: Sequence[Run]) -> dict[str, int]:
    """Runs by verdict, or by status where they have none."""
    return dict(Counter(run.verdict if run.complete and run.verdict else run.status for run in runs))


def as_data(criteria: Sequence[Judged]) -> list[dict[str, Any]]:
    """Plain data for JSON."""
    return [
        {
            "criterion": one.name, "title": one.title, "question": one.question, "outcome": one.outcome,
            "rfc": {"document": one.document, "section": one.section, "level": one.level, "asks": one.asks},
            "claims": [
                {"says": s.says, "claim": s.words, "outcome": s.outcome, "reason": s.reason,
                    "statements": list(s.numbers)}
                for s in one.said
            ],
            "metrics": [
                {"metric": m.metric, "unit": m.unit, "values": [
                    {"cca": v.algorithm, "where": v.where, "mean": v.mean, "low": v.low, "high": v.high, "n": v.n,
                     "same_for_all_seeds": v.copies} for v in m.values]}
                for m in one.measured
            ],
            "runs": dict(one.verdicts), "report": one.report, "why_not": one.why_not,
        }
        for one in criteria
    ]  # fmt: skip
