# SPDX-License-Identifier: Apache-2.0
"""Recorded runs beside the same runs made again: each figure is the same, or where it first differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.report.data import figure_data
from analysis.results import Run, show
from analysis.statistics import cells

SAME, DIFFERS, MISSING = "same", "differs", "not made"
LEVELS = ("lo", "hi", "lo2", "hi2")


@dataclass(frozen=True)
class Row:
    """outcome: same, differs, or not made; where: the first place that differs, with both values"""

    experiment: str
    figure: str
    outcome: str
    where: str = ""


def compare(recorded: Sequence[Run], repeated: Sequence[Run]) -> list[Row]:
    """Each figure of the report, each metric, and the packets, over the runs of equal parameters and seed.

    Recorded runs that were not made again are one row each.
    """
    new = {_key(run): run for run in repeated if run.complete}
    pairs = [(run, new[_key(run)]) for run in recorded if _key(run) in new]
    name = recorded[0].experiment if recorded else ""
    rows = []
    if pairs:
        old_data, new_data = (figure_data(runs, cells(runs)) for runs in zip(*pairs, strict=True))
        rows = [Row(name, figure, DIFFERS if where else SAME, where) for figure, where in _figures(old_data, new_data)]
        rows.append(_row(name, "metrics", _metrics(pairs)))
        if any(old.packets and again.packets for old, again in pairs):
            rows.append(_row(name, "packets", _packets(pairs)))
    return rows + [Row(name, "all", MISSING, _words(run)) for run in recorded if _key(run) not in new]


def _row(name: str, figure: str, where: str) -> Row:
    return Row(name, figure, DIFFERS if where else SAME, where)


def _key(run: Run) -> tuple[Any, ...]:
    return (*sorted((name, show(value)) for name, value in run.params.items()), run.seed)


def _words(run: Run) -> str:
    return ", ".join([*(f"{name}={show(value)}" for name, value in run.params.items()), f"seed {run.seed}"])


def _figures(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name of each figure that either has, and where they differ; empty where they do not."""
    names = [one["name"] for data in (old, new) for one in (*data["figures"], *data["distributions"])]
    for name in dict.fromkeys(names):
        lines = [_lines(data, name) for data in (old, new)]
        if any(lines):
            yield name, _first_line(lines[0], lines[1], float(old["duration_s"]) / max(1, int(old["buckets"])), name)
    for name in ("shares", "gaps"):
        if old[name] or new[name]:
            yield name, "" if old[name] == new[name] else "the drawn values are others"
    for metric in (one["name"] for one in old["metrics"]):
        means = {round(cell["metrics"][metric]["mean"], 12) for cell in old["cells"] if metric in cell["metrics"]}
        if len(means) > 1:  # as the report decides it
            yield f"sweep-{metric}", _first_cell(old["cells"], new["cells"], metric)


def _lines(data: Mapping[str, Any], name: str) -> dict[tuple[str, str], Mapping[str, Any]]:
    """A figure's lines by run and flow."""
    lines = {}
    for run in data["runs"]:
        where = ", ".join(
            f"{key}={value}" if key != "seed" else f"seed {value}" for key, value in run["attributes"].items()
        )
        for line in (*run["series"], *run["distributions"]):
            if line["figure"] == name:
                lines[(where, str(line.get("algorithm") or line["flow"] or ""))] = line
    return lines


def _first_line(
    old: Mapping[tuple[str, str], Mapping[str, Any]],
    new: Mapping[tuple[str, str], Mapping[str, Any]],
    width_s: float,
    name: str,
) -> str:
    for key in dict.fromkeys((*old, *new)):
        place = f"{key[0]}{f', flow {key[1]}' if key[1] else ''}"
        if key not in old or key not in new:
            return f"{place}: only {'recorded' if key in old else 'made now'}"
        before, after = old[key], new[key]
        if "x" in before and before["x"] != after.get("x"):
            at = _first(before["x"], after.get("x", ()))
            return (
                f"{place}: quantile {at} of {len(before['x'])}: {_at(before['x'], at)} → {_at(after.get('x', ()), at)}"
            )
        for level in LEVELS:
            if before.get(level) != after.get(level):
                low = before.get(level, before.get("lo", ())), after.get(level, after.get("lo", ()))
                at = _first(*low)
                return f"{place}: from {at * width_s:.4g} s on: {_at(low[0], at)} → {_at(low[1], at)}"
    return ""


def _first(one: Sequence[Any], other: Sequence[Any]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _at(values: Sequence[Any], place: int) -> str:
    return f"{values[place]}" if place < len(values) and values[place] is not None else "nothing"


def _first_cell(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]], metric: str) -> str:
    after = {tuple(cell["attributes"].items()): cell["metrics"].get(metric) for cell in new}
    for cell in old:
        before, now = cell["metrics"].get(metric), after.get(tuple(cell["attributes"].items()))
        if before != now:
            where = ", ".join(f"{name}={value}" for name, value in cell["attributes"].items()) or "all runs"
            return f"{where}: {before['mean'] if before else 'nothing'} → {now['mean'] if now else 'nothing'}"
    return ""


def _metrics(pairs: Sequence[tuple[Run, Run]]) -> str:
    """Metrics that only one of the two programs knows say nothing of the runs."""
    for old, new in pairs:
        for name in old.metrics:
            if name in new.metrics and old.metrics[name] != new.metrics[name]:
                return f"{_words(old)}: {name}: {_short(old.metrics[name])} → {_short(new.metrics[name])}"
        if old.verdict != new.verdict:
            return f"{_words(old)}: verdict: {old.verdict} → {new.verdict}"
    return ""


def _short(value: Any) -> str:
    text = show(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _packets(pairs: Sequence[tuple[Run, Run]]) -> str:
    for old, new in pairs:
        if old.packets and new.packets and old.packets != new.packets:
            return f"{_words(old)}: ./warpbed diff shows the first that differs, where the bundle has captures"
    return ""
