# SPDX-License-Identifier: Apache-2.0
"""An entry's figure from the runs that decide it: means with intervals over a swept parameter, and the printed points on it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.metrics import find
from analysis.palette import COLOURS
from analysis.report.static import MARKS, PANEL_INCHES, STYLE
from analysis.reproduction.drawn import DRAWN, Drawing
from analysis.reproduction.outcomes import Judged
from analysis.reproduction.recorded import NOWHERE
from analysis.results import Run, parameters, quantity, show
from analysis.statistics import Cell, cells
from base.files import replace_bytes
from schema.claims import Claim
from schema.model import Experiment

MOST_PANELS = 6


def draw(folder: Path, entries: Sequence[Judged], experiments: Mapping[str, Any]) -> dict[str, Path]:
    """A figure for each entry that runs decide: entry → file, written into `folder`."""
    drawn: dict[str, Path] = {}
    with mpl.rc_context({**STYLE, "svg.fonttype": "none"}):  # text as text: a tenth of the size
        for one in entries:
            target = folder / f"{one.entry.id}.svg"
            if target.exists() and not _drawable(one, experiments):
                drawn[one.entry.id] = target
                continue
            panels = list(_panels(one, experiments))[:MOST_PANELS]
            if not panels:
                continue
            rows, columns = -(-len(panels) // 2), min(2, len(panels))
            figure = Figure(figsize=(PANEL_INCHES[0] * columns, PANEL_INCHES[1] * rows))
            axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
            for axis in axes[len(panels) :]:
                axis.set_axis_off()
            for axis, panel in zip(axes, panels, strict=False):
                panel(axis)
                axis.set_ylim(bottom=None if axis.get_yscale() == "log" else min(0.0, axis.get_ylim()[0]))
                axis.legend(fontsize=6, loc="best")  # said: of a default Matplotlib warns on a busy machine
            out = io.BytesIO()
            figure.savefig(out, format="svg", metadata={"Date": None})
            replace_bytes(target, out.getvalue())
            drawn[one.entry.id] = target
    return drawn


def _drawable(one: Judged, experiments: Mapping[str, Any]) -> bool:
    """Whether the records are there that the entry's own drawing needs."""
    name, _ = DRAWN.get(one.entry.id, ("", None))
    runs = [run for experiment, runs in experiments.values() if name and experiment.name == name for run in runs]
    return all(run.path != NOWHERE for run in runs)


def _panels(one: Judged, experiments: Mapping[str, Any]) -> Iterator[Callable[[Axes], None]]:
    """The entry's own drawing, and each metric that an experiment's claims use to decide it."""
    name, drawing = DRAWN.get(one.entry.id, ("", None))
    runs = next((runs for experiment, runs in experiments.values() if experiment.name == name), ())
    if drawing is not None and (runs or not name):
        yield _with(drawing, runs)
    for file in dict.fromkeys(e.by for e in one.evidence if not e.explains):
        if file not in experiments:
            continue
        experiment, runs = experiments[file]
        mine = [
            c
            for c in (*experiment.claims, *experiment.published)
            if any(d.startswith(f"{one.entry.id}/") for d in c.decides)
        ]
        for metric in dict.fromkeys(
            name for c in mine for name in (c.metrics if isinstance(c, Claim) else (c.metric,))
        ):
            if any(cell.estimate(metric) for cell in cells(runs)):
                yield _of_metric(experiment, runs, metric, one.entry.id)


def _with(drawing: Drawing, runs: Sequence[Run]) -> Callable[[Axes], None]:
    return lambda axis: drawing(axis, runs)


def _of_metric(experiment: Experiment, runs: Sequence[Run], metric: str, entry: str) -> Callable[[Axes], None]:
    return lambda axis: _panel(axis, experiment, runs, metric, entry)


def _panel(axis: Axes, experiment: Experiment, runs: Sequence[Run], metric: str, entry: str) -> None:
    """Lines over the parameter with the most numbers, one for each combination of the others; bars without one."""
    every = [cell for cell in cells(runs) if cell.estimate(metric) is not None]
    over = _along(runs, every)
    groups: dict[str, list[Cell]] = {}
    for cell in every:
        name = ", ".join(_brief(show(v)) for k, v in cell.params.items() if k != over and _varies(every, k))
        groups.setdefault(name, []).append(cell)
    for i, (name, members) in enumerate(groups.items()):
        points = (
            sorted((_place(cell, over, every), cell) for cell in members)
            if over
            else [(float(i), cell) for cell in members]
        )
        x = [point for point, _ in points]
        means = [cell.estimate(metric) for _, cell in points]
        y = [e.mean for e in means if e]
        low = [e.mean - e.t_interval.low if e.t_interval else 0.0 for e in means if e]
        axis.errorbar(
            x,
            y,
            yerr=low,
            label=_brief(name) or "measured",
            color=COLOURS[i % len(COLOURS)],
            marker=MARKS[i % len(MARKS)],
            markersize=3,
            capsize=2,
            linestyle="-" if over else "none",
        )
    _printed(axis, experiment, metric, entry, over, every, list(groups))
    axis.set_title(f"{find(metric).label}" + (f" ({metric.partition('.')[2]})" if "." in metric else ""), fontsize=8)
    unit = find(metric).unit
    axis.set_ylabel("" if unit == "1" else unit)
    axis.set_xlabel(
        f"{over}, %" if any(quantity(cell.params.get(over)) is None for cell in every) and over else over or ""
    )
    if over and not any(_number(cell.params.get(over)) is not None for cell in every):
        values = list(dict.fromkeys(show(cell.params.get(over)) for cell in every))
        axis.set_xticks(range(len(values)), [_brief(value) for value in values])


def _printed(
    axis: Axes, experiment: Experiment, metric: str, entry: str, over: str, every: Sequence[Cell], groups: Sequence[str]
) -> None:
    """The thesis' numbers as open circles, at the place of the cells that they belong to; a number for all as a dashed line."""
    for table in experiment.published:
        if table.metric != metric or not any(name.startswith(f"{entry}/") for name in table.decides):
            continue
        for value in table.values:
            for cell in every:
                if value.value is not None and all(show(cell.params.get(k)) == show(v) for k, v in value.where.items()):
                    at = _place(cell, over, every) if over else float(_index(cell, every, groups))
                    axis.plot([at], [value.value * table.times], "o", mfc="none", mec="black", markersize=6)
    for claim in experiment.claims:
        near = claim.near
        if near is not None and metric in claim.metrics and any(name.startswith(f"{entry}/") for name in claim.decides):
            axis.axhline(near.value, color="black", linewidth=0.6, linestyle="--")
        elif (
            claim.bounds is not None
            and metric in claim.metrics
            and any(name.startswith(f"{entry}/") for name in claim.decides)
        ):
            for bound in (claim.bounds.min, claim.bounds.max):
                if bound is not None:
                    axis.axhline(bound, color="black", linewidth=0.6, linestyle=":")


def _index(cell: Cell, every: Sequence[Cell], groups: Sequence[str]) -> int:
    name = ", ".join(_brief(show(v)) for k, v in cell.params.items() if _varies(every, k))
    return list(groups).index(name) if name in groups else 0


def _along(runs: Sequence[Run], every: Sequence[Cell]) -> str:
    """The parameter with the most values that are numbers, from two on; else none."""
    widest = ""
    most = 1
    for name in parameters(runs):
        values = {show(cell.params.get(name)) for cell in every}
        if len(values) > most and all(_number(value) is not None for value in values):
            widest, most = name, len(values)
    return widest


def _place(cell: Cell, over: str, every: Sequence[Cell]) -> float:
    value = cell.params.get(over)
    number = _number(value)
    if number is not None:
        return number
    return float(list(dict.fromkeys(show(other.params.get(over)) for other in every)).index(show(value)))


def _number(value: Any) -> float | None:
    """A quantity, or the loss of a model's text, in percent."""
    number = quantity(value)
    return _share(show(value)) if number is None else number


def _share(text: str) -> float | None:
    match = re.search(r"loss=([0-9.]+)%", text)
    return float(match.group(1)) if match else None


def _varies(every: Sequence[Cell], name: str) -> bool:
    return len({show(cell.params.get(name)) for cell in every}) > 1


def _brief(text: str) -> str:
    return re.sub(r"(bit-errors |red_packets | of=\S+)", "", text)[:28]
