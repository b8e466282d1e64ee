# SPDX-License-Identifier: Apache-2.0
"""The first record that two runs do not share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.errors import ResultsError
from analysis.records import in_turn
from base.small_files import small_json

Row = dict[str, Any]


@dataclass(frozen=True)
class OtherRecord:
    """Two rows of one kind at the same place; None where one run has fewer."""

    kind: str
    number: int
    ours: Row | None
    theirs: Row | None

    @property
    def t_s(self) -> float:
        times = [
            float(row["t_s"]) for row in (self.ours, self.theirs) if row is not None and row.get("t_s") is not None
        ]
        return min(times, default=math.inf)

    def words(self) -> str:
        if self.ours is None or self.theirs is None:
            return f"{self.kind}: record {self.number} exists only in the {'second' if self.theirs else 'first'} run"
        changed = [name for name in self.ours if self.ours[name] != self.theirs.get(name)]
        text = "; ".join(f"{name} {_apart(self.ours[name], self.theirs.get(name))}" for name in changed)
        place = ", ".join(
            f"{name} {self.ours[name]}"
            for name in ("t_s", "flow", "node", "interface")
            if self.ours.get(name) is not None
        )
        return f"{self.kind}: record {self.number} ({place}): {text}"


def _apart(one: Any, other: Any) -> str:
    """Two values; of two lists the first element that differs."""
    if isinstance(one, list) and isinstance(other, list):
        pairs = itertools.zip_longest(one, other)
        number, pair = next((number, pair) for number, pair in enumerate(pairs, 1) if pair[0] != pair[1])
        return f"entry {number}: {pair[0]}, {pair[1]}"
    return f"{one}, {other}"


def first(ours: Path, theirs: Path) -> OtherRecord | None:
    """The earliest record that differs, of all kinds that both folders have; what programs reported has no time and comes last."""
    kinds = ({file.name for kind in ("parquet", "json") for file in side.glob(f"*.{kind}")} for side in (ours, theirs))
    names = sorted(set.intersection(*kinds))
    others = [difference for name in names if (difference := _of(ours / name, theirs / name)) is not None]
    return min(others, key=lambda difference: difference.t_s, default=None)


def _of(ours: Path, theirs: Path) -> OtherRecord | None:
    for number, (one, other) in enumerate(itertools.zip_longest(_rows(ours), _rows(theirs)), 1):
        if one != other:
            return OtherRecord(ours.stem, number, one, other)
    return None


def _rows(file: Path) -> Iterator[Row]:
    """Rows in the file's order; what is no number equals itself. Raises ResultsError where a JSON file has none."""
    if file.suffix == ".json":
        try:
            content = small_json(file)
        except (OSError, ValueError) as error:
            raise ResultsError(f"{file}: {error}") from error
        if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
            raise ResultsError(f"{file}: not a list of objects")
        yield from content
        return
    for row in in_turn(file):
        yield {name: "NaN" if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
