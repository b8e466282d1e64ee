# SPDX-License-Identifier: Apache-2.0
"""The report's table of a paper's claims: each with its statements, what was measured, and the interval that decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from analysis import claims
from analysis.contrasts import Spread
from analysis.results import Run, load_experiment
from analysis.statistics import Interval
from analysis.table import number
from schema.claims import Claim
from schema.repeats import Repeats

MOST_STATEMENTS = 60
"""Statements of one claim that the page lists; the rest is in `./warpbed compare --format csv`."""


@dataclass(frozen=True)
class StatementRow:
    """where: the combination; text: what is said; measured, interval: as text, with the bounds of what was said

    lack: why nothing was measured, "" where something was
    """

    where: str
    text: str
    bounds: str
    measured: str
    interval: str
    seeds: str
    outcome: str
    lack: str


@dataclass(frozen=True)
class ClaimRow:
    text: str
    says: str
    source: str
    outcome: str
    reason: str
    statements: tuple[StatementRow, ...]
    left_out: int


def claim_rows(spec: Mapping[str, Any], runs: Sequence[Run], folder: Path) -> tuple[tuple[ClaimRow, ...], str]:
    """The claims of an experiment file as plain data, and what is wrong with them where they cannot be read."""
    listed = spec.get("claims")
    try:
        asked = (
            [Claim.model_validate(row) for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
        )
        looks = _looks(spec)
    except ValidationError as error:
        return (), str(error)
    findings = claims.check_all(asked, runs, lambda name: load_experiment(folder.parent / name), looks)
    return tuple(map(_row, findings)), ""


def _looks(spec: Mapping[str, Any]) -> int:
    """How often the claims may have been judged before they were decided. Raises ValidationError for repeats that no file may have."""
    repeats = spec.get("repeats")
    return Repeats.model_validate(repeats).looks if isinstance(repeats, Mapping) else 1


def _row(finding: claims.Finding) -> ClaimRow:
    rows = [_statement(part.label, seen) for part in finding.parts for seen in part.seen]
    rows.sort(key=lambda row: row.outcome == "holds")  # those that do not hold first
    return ClaimRow(
        text=finding.words,
        says=finding.claim.says,
        source=finding.claim.source,
        outcome=finding.outcome,
        reason=finding.reason,
        statements=tuple(rows[:MOST_STATEMENTS]),
        left_out=max(0, len(rows) - MOST_STATEMENTS),
    )


def _statement(where: str, seen: claims.Seen) -> StatementRow:
    statement, spread, interval = seen.statement, seen.spread, seen.interval
    low, high = (number(bound) if abs(bound) < float("inf") else "" for bound in (statement.low, statement.high))
    sign = (">" if statement.strict else "≥") if not high else "≤"
    return StatementRow(
        where=where or "all runs",
        text=statement.words,
        bounds=f"{low} … {high}" if low and high else f"{sign} {low or high}",
        measured="" if spread is None else number(spread.mean),
        interval=_interval(spread, interval),
        seeds="0" if spread is None else f"{spread.n}{' paired' if spread.paired else ''}",
        outcome=seen.outcome,
        lack=claims.lack(statement) if spread is None else "",
    )


def _interval(spread: Spread | None, interval: Interval | None) -> str:
    """The interval, or in words why a number has none."""
    if spread is None:
        return ""
    if spread.exact:
        return "no seed changes it"
    return "one observation" if interval is None else f"{number(interval.low)} … {number(interval.high)}"
