# SPDX-License-Identifier: Apache-2.0
"""Template variables and macros of Grafana's PostgreSQL data source, expanded as Grafana does (pkg/tsdb/grafana-postgresql-datasource,
macros.go: an argument ends at the first closing parenthesis), so that each panel's SQL can be run without one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.paths import ROOT

BOARDS = sorted((ROOT / "dashboards/json").glob("*.json"))
MACRO = re.compile(r"\$__(?!interval)([a-zA-Z]+)\(([^)]*)\)")
VARIABLE = re.compile(r"\$\{(\w+)(?::(\w+))?\}|\$(?!_)(\w+)")
MAX_DATA_POINTS = 1000


@dataclass(frozen=True)
class Range:
    """Seconds since 1970."""

    start_s: float
    end_s: float

    @property
    def interval_ms(self) -> int:
        """What Grafana makes of a range and a panel: rounded to steps of 1, 2 and 5."""
        wanted = (self.end_s - self.start_s) * 1000 / MAX_DATA_POINTS
        steps: list[int] = [factor * int(10**power) for power in range(9) for factor in (1, 2, 5)]
        return next((step for step in steps if step >= wanted), steps[-1])


def board(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def queries(content: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(panel's title, target)"""
    for panel in content["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target


def expand(sql: str, values: Mapping[str, list[str]], time: Range, *, timescale: bool = True) -> str:
    sql = interpolate(sql, values)
    sql = sql.replace("$__interval_ms", str(time.interval_ms)).replace("$__interval", f"{time.interval_ms}ms")
    return MACRO.sub(
        lambda match: _macro(match[1], [part.strip() for part in match[2].split(",")], time, timescale), sql
    )


def interpolate(sql: str, values: Mapping[str, list[str]]) -> str:
    """`sqlstring` quotes each value and joins them with commas; anything else would put values into the text as they are."""

    def put(match: re.Match[str]) -> str:
        name, form = match[1] or match[3], match[2]
        assert form == "sqlstring", (
            f"variable {name} is not written ${{{name}:sqlstring}}: its value could end the quotes"
        )
        return ",".join("'" + value.replace("'", "''") + "'" for value in values[name])

    return VARIABLE.sub(put, sql)


def _macro(name: str, arguments: list[str], time: Range, timescale: bool) -> str:
    if name == "timeFilter":
        return f"{arguments[0]} BETWEEN to_timestamp({time.start_s}) AND to_timestamp({time.end_s})"
    if name == "timeGroup":
        seconds = int(arguments[1].strip("'").removesuffix("ms")) / 1000
        return (
            f"time_bucket('{seconds:.3f}s',{arguments[0]})"
            if timescale
            else f"floor(extract(epoch from {arguments[0]})/{seconds})*{seconds}"
        )
    if name in ("unixEpochFrom", "unixEpochTo"):
        return str(int(time.start_s if name.endswith("From") else time.end_s))
    raise AssertionError(f"macro $__{name} is none of Grafana's that are known here")
