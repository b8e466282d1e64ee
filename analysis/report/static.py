# SPDX-License-Identifier: Apache-2.0
"""The report's figures as SVG and PDF files, for papers: one file per quantity, lines distinguishable without colour."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import palette
from analysis.arrays import np
from analysis.palette import COLOURS
from base.files import replace_bytes

KINDS = ("svg", "pdf")
MOST_PANELS = 12
MOST_LINES = 12
PANEL_INCHES = (3.4, 2.3)  # a column of a two-column paper
DASHES = ("-", "--", "-.", ":")
MARKS = "os^DvPX*"
STYLE: Any = {
    "font.size": 8, "axes.linewidth": 0.6, "lines.linewidth": 0.9, "axes.grid": True, "grid.color": "#e3e6e9",
    "grid.linewidth": 0.5, "legend.frameon": False, "figure.constrained_layout.use": True,
    "pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "warpbed", "text.parse_math": False,
}  # fmt: skip
"""Type 42: publishers refuse Matplotlib's default type 3 fonts. The salt makes the same data the same file."""


def write_figures(data: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw `data` (analysis.report.data.figure_data) into `folder`; each file appears whole. Returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with mpl.rc_context(STYLE):
        for name, figure in _figures(data):
            for kind, content in zip(KINDS, drawn(figure, KINDS), strict=True):
                target = folder / f"{name}.{kind}"
                replace_bytes(target, content)
                written.append(target)
    return written


def figures(data: Mapping[str, Any]) -> dict[str, Figure]:
    """All figures of `data` by their names."""
    with mpl.rc_context(STYLE):
        return dict(_figures(data))


def drawn(figure: Figure, kinds: Sequence[str]) -> list[bytes]:
    """A figure as files' contents, the same for the same data; kinds: some of Matplotlib's formats.

    It is laid out once, without drawing; a figure with a layout engine would be so for each format.
    """
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    contents, engine = [], figure.get_layout_engine()
    with mpl.rc_context(STYLE):
        figure.draw_without_rendering()
        with mpl.rc_context({"figure.constrained_layout.use": False}):
            figure.set_layout_engine(None)
            try:
                for kind in kinds:
                    file = io.BytesIO()
                    figure.savefig(file, format=kind, metadata=undated.get(kind))
                    contents.append(file.getvalue())
            finally:
                figure.set_layout_engine(engine)
    return contents


def _figures(data: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    runs = _first_of_each(data["runs"])
    colour = _colour_by(runs)
    panels = _panels(runs, colour)
    for quantity in data["figures"]:
        if any(line["figure"] == quantity["name"] for run in runs for line in run["series"]):
            yield quantity["name"], _against_time(quantity, panels, colour, data)
    for kind in data["distributions"]:
        if any(line["figure"] == kind["name"] for run in runs for line in run["distributions"]):
            yield kind["name"], _distribution(kind, panels, colour, data)
    if data["shares"]:
        yield "shares", _shares(data["shares"])
    if data["gaps"]:
        yield "gaps", _gaps(data["gaps"])
    for metric in data["metrics"]:
        values = {
            round(cell["metrics"][metric["name"]]["mean"], 12)
            for cell in data["cells"]
            if metric["name"] in cell["metrics"]
        }
        if len(values) > 1:
            yield f"sweep-{metric['name']}", _sweep(metric, data)


def _first_of_each(runs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """One run of each combination, the first that is not invalid: a figure against time shows a run, not a mean."""
    firsts: dict[str, Mapping[str, Any]] = {}
    for run in runs:
        if run["standing"] != "invalid":
            firsts.setdefault(_key(run["attributes"], "seed"), run)
    return list(firsts.values())


def _key(attributes: Mapping[str, str], *without: str) -> str:
    return ", ".join(f"{name} {value}" for name, value in attributes.items() if name not in without)


def _colour_by(runs: Sequence[Mapping[str, Any]]) -> str:
    """The parameter whose values share a panel: the algorithm where it is swept, else the first that varies."""
    names = [name for name in (runs[0]["attributes"] if runs else ()) if name != "seed"]
    varying = [name for name in names if len({run["attributes"][name] for run in runs}) > 1]
    return next((name for name in ("cca", "algorithm") if name in varying), varying[0] if varying else "")


def _panels(runs: Sequence[Mapping[str, Any]], colour: str) -> dict[str, list[Mapping[str, Any]]]:
    names = [name for name in (runs[0]["attributes"] if runs else ()) if name not in ("seed", colour)]
    fixed = [name for name in names if len({run["attributes"][name] for run in runs}) < 2]
    panels: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        panels.setdefault(_key(run["attributes"], "seed", colour, *fixed), []).append(run)
    return dict(list(panels.items())[:MOST_PANELS])


def _grid(count: int, titles: Sequence[str]) -> tuple[Figure, list[Axes]]:
    columns = 1 if count == 1 else 2
    rows = -(-count // columns)
    figure = Figure(figsize=(PANEL_INCHES[0] * columns, PANEL_INCHES[1] * rows))
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for empty in axes[count:]:
        empty.set_axis_off()
    for axis, title in zip(axes, titles, strict=False):
        axis.set_title(title, fontsize=8)
    return figure, axes[:count]


def _lines(run: Mapping[str, Any], kind: str, colour: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A run's lines of a figure with what the legend calls them."""
    for line in run[kind]:
        name = run["attributes"].get(colour, "")
        flow = line.get("algorithm") or line["flow"]
        ccas = set(run["ccas"].values())
        if flow is not None and len(run["ccas"]) > 1:
            name = " ".join(part for part in (name, run["ccas"].get(flow, flow) if len(ccas) > 1 else flow) if part)
        yield name or str(flow or ""), line


def _place(name: str, index: int) -> int:
    """Of an algorithm its own, so that its colour is the same in each figure; of other names that in the figure."""
    return palette.place(name) if name in palette.ALGORITHMS else index


def _look(order: dict[str, int], name: str) -> dict[str, Any]:
    index = _place(name, order.setdefault(name, len(order)))
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": DASHES[index // len(COLOURS) % len(DASHES) or index % len(DASHES)],
    }


def _against_time(
    quantity: Mapping[str, Any], panels: Mapping[str, Sequence[Mapping[str, Any]]], colour: str, data: Mapping[str, Any]
) -> Figure:
    figure, axes = _grid(len(panels), list(panels))
    edges_s = (np.arange(data["buckets"]) + 0.5) * data["duration_s"] / data["buckets"]
    order: dict[str, int] = {}
    for axis, runs in zip(axes, panels.values(), strict=True):
        named: set[str] = set()
        for run in runs:
            for name, line in list(_lines(run, "series", colour))[: MOST_LINES * len(data["figures"])]:
                if line["figure"] != quantity["name"]:
                    continue
                low = np.array([np.nan if value is None else value for value in line["lo"]], dtype=float)
                high = np.array(
                    [np.nan if value is None else value for value in line.get("hi", line["lo"])], dtype=float
                )
                known = np.isfinite(low)
                # down and up again within each bucket: nothing that was there is lost between two points
                x = np.repeat(edges_s[known], 2)
                y = np.stack([low[known], high[known]], axis=1).ravel()
                axis.plot(x, y, label=None if name in named else name, **_look(order, name), rasterized=len(x) > 5000)
                named.add(name)
        axis.set_xlabel("Time, s")
        axis.set_ylabel(f"{quantity['title']}, {quantity['unit']}")
        axis.set_xlim(0, data["duration_s"])
        if quantity["zero"]:
            axis.set_ylim(bottom=0)
        _legend(axis)
    return figure


def _distribution(
    kind: Mapping[str, Any], panels: Mapping[str, Sequence[Mapping[str, Any]]], colour: str, data: Mapping[str, Any]
) -> Figure:
    figure, axes = _grid(len(panels), list(panels))
    order: dict[str, int] = {}
    for axis, runs in zip(axes, panels.values(), strict=True):
        named: set[str] = set()
        for run in runs:
            for name, line in list(_lines(run, "distributions", colour))[:MOST_LINES]:
                if line["figure"] == kind["name"]:
                    axis.plot(line["x"], data["quantiles"], label=None if name in named else name, **_look(order, name))
                    named.add(name)
        axis.set_xlabel(kind["label"])
        axis.set_ylabel(kind["share"])
        axis.set_ylim(0, 1)
        _legend(axis)
    return figure


def _shares(cells: Sequence[Mapping[str, Any]]) -> Figure:
    figure = Figure(figsize=(max(PANEL_INCHES[0], 0.55 * len(cells) + 1.2), PANEL_INCHES[1]))
    axis = figure.subplots()
    names = list(dict.fromkeys(part["algorithm"] for cell in cells for part in cell["parts"]))
    wide = 0.8 / len(names)
    for place, name in enumerate(names):
        label: str | None = name
        for index, cell in enumerate(cells):
            for part in cell["parts"]:
                if part["algorithm"] != name:
                    continue
                at = index + (place - (len(names) - 1) / 2) * wide
                error = (
                    None
                    if part["interval"] is None
                    else [[part["mean"] - part["interval"][0]], [part["interval"][1] - part["mean"]]]
                )
                axis.bar(
                    at,
                    part["mean"],
                    wide * 0.92,
                    yerr=error,
                    label=label,
                    color=COLOURS[palette.place(name) % len(COLOURS)],
                    hatch=("", "///", "...", "xx")[place % 4],
                    edgecolor="white",
                    error_kw={"linewidth": 0.7},
                )
                axis.hlines(part["fair"], at - wide / 2, at + wide / 2, color="black", linewidth=1.2)
                label = None
    varying = [name for name in cells[0]["attributes"] if len({cell["attributes"][name] for cell in cells}) > 1]
    axis.set_xticks(range(len(cells)), [" ".join(cell["attributes"][name] for name in varying) for cell in cells])
    axis.set_xlabel(", ".join(varying))
    axis.set_ylabel("Share of goodput (line: fair)")
    axis.set_ylim(0, 1)
    _legend(axis)
    return figure


def _gaps(lines: Sequence[Mapping[str, Any]]) -> Figure:
    figure, (axis,) = _grid(1, [""])
    varying = [name for name in lines[0]["attributes"] if len({line["attributes"][name] for line in lines}) > 1]
    for index, line in enumerate(lines[:MOST_LINES]):
        name = ", ".join([line["flow"], *(f"{one} {line['attributes'][one]}" for one in varying)])
        x, y = ([point[key] for point in line["points"]] for key in ("input", "output"))
        reach = [
            [point["output"] - point["low"] for point in line["points"]],
            [point["high"] - point["output"] for point in line["points"]],
        ]
        axis.errorbar(
            x,
            y,
            yerr=np.abs(np.array(reach)),
            label=name,
            color=COLOURS[index % len(COLOURS)],
            marker=MARKS[index % len(MARKS)],
            markersize=4,
            elinewidth=0.5,
        )
    end = min(axis.get_xlim()[1], axis.get_ylim()[1])
    axis.plot([0, end], [0, end], color="#888888", linestyle="--", linewidth=0.7)
    axis.set_xlim(left=0)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("Input gap, ms")
    axis.set_ylabel("Output gap, ms")
    _legend(axis)
    return figure


def _sweep(metric: Mapping[str, Any], data: Mapping[str, Any]) -> Figure:
    cells = [cell for cell in data["cells"] if metric["name"] in cell["metrics"]]
    numbers = data["numbers"]
    varying = [name for name in cells[0]["attributes"] if len({cell["attributes"][name] for cell in cells}) > 1]
    numeric = [name for name in varying if all(cell["attributes"][name] in numbers for cell in cells)]
    along = next(iter(numeric or varying), "")
    places = list(dict.fromkeys(cell["attributes"].get(along, "") for cell in cells))
    if numeric:
        places.sort(key=lambda text: numbers[text])
    figure, (axis,) = _grid(1, [""])
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        lines.setdefault(" ".join(cell["attributes"][name] for name in varying if name != along), []).append(cell)
    for index, (name, members) in enumerate(list(lines.items())[: len(MARKS) * 2]):
        members.sort(key=lambda cell: places.index(cell["attributes"].get(along, "")))
        values = [cell["metrics"][metric["name"]] for cell in members]
        means = [one["mean"] for one in values]
        errors = np.array(
            [
                (0, 0)
                if one["interval"] is None
                else (one["mean"] - one["interval"][0], one["interval"][1] - one["mean"])
                for one in values
            ]
        ).T
        x = [places.index(cell["attributes"].get(along, "")) for cell in members]
        axis.errorbar(
            x,
            means,
            yerr=np.abs(errors),
            label=name or None,
            color=COLOURS[_place(name, index) % len(COLOURS)],
            marker=MARKS[_place(name, index) % len(MARKS)],
            markersize=4,
            capsize=2,
            linestyle="-" if numeric else "none",
        )
    axis.set_xticks(range(len(places)), places)
    axis.set_xlabel(along)
    axis.set_ylabel(f"{metric['label']}{', ' + metric['unit'] if metric['unit'] else ''}")
    _legend(axis)
    return figure


def _legend(axis: Axes) -> None:
    _, labels = axis.get_legend_handles_labels()
    if any(labels):
        # said, although it is the default: of a default Matplotlib warns where finding the place takes a second of a busy machine
        axis.legend(fontsize=6.5, ncols=2 if len(labels) > 4 else 1, loc="best")
