# SPDX-License-Identifier: Apache-2.0
"""The table of an experiment's runs for a terminal, and the same as JSON and CSV.

python -m analysis.table RESULTS_DIR/EXPERIMENT [--format table|json|csv]
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis import terminal
from analysis.errors import AnalysisError
from analysis.metrics import REGISTRY
from analysis.metrics.absence import why
from analysis.results import Run, load_experiment, parameters, show
from analysis.statistics import is_number
from analysis.terminal import GAP, Style, cut
from base import screen
from base.text import clean, json_text, safe

# The most telling first: what does not fit the terminal goes from the right.
COLUMNS = (
    ("utilization", "util"),
    ("jain_index", "Jain"),
    ("goodput_mbps", "goodput Mbit/s"),
    ("queue_mean_packets", "queue mean"),
    ("queue_max_packets", "max"),
    ("queue_drops", "drops"),
    ("rtt_mean_ms", "RTT ms"),
)
STANDING_COLOURS = {
    "valid": "green",
    "suspect": "yellow",
    "invalid": "red",
    "failed": "red",
    "unreadable": "red",
    "missing": "yellow",
}
UNKNOWN = "–"


def render(runs: Sequence[Run], style: Style) -> str:
    """One line per run, at most `style.width` wide, and below it what went wrong and why a number is missing."""
    if not runs:
        return "no runs\n"
    names = parameters(runs)
    header = [*names, "seed", "verdict", *(label for _, label in COLUMNS)]
    lines = [
        [*_parameters(run, names), run.standing, *(number(run.metrics.get(name)) for name, _ in COLUMNS)]
        for run in runs
    ]
    fixed = len(names) + 2  # parameters, seed and verdict are what a line is about; metrics may give way
    keep = len(header)
    widths = [max(len(row[index]) for row in [header, *lines]) for index in range(len(header))]
    while keep > fixed and sum(widths[:keep]) + GAP * (keep - 1) > style.width:
        keep -= 1
    whole = [index >= len(names) for index in range(keep)]
    numeric = [index >= fixed for index in range(keep)]
    shown = [row[:keep] for row in lines]
    out = terminal.table(
        header[:keep], shown, style, numeric=numeric, whole=whole, colours=STANDING_COLOURS
    ).splitlines()
    left_out = [name for name, _ in COLUMNS][keep - fixed :]
    if left_out:
        out.append(cut(f"not shown for width: {', '.join(left_out)} (--format json has all)", style.width))
    for run in runs:
        for problem in problems(run):
            out.append(cut(f"{run.run}: {problem}", style.width))
    for name, label in COLUMNS[: keep - fixed]:
        for reason in dict.fromkeys(why(name, run.sources) for run in runs if run.complete and _lacks(run, name)):
            out += textwrap.wrap(f"{UNKNOWN} {label}: {clean(reason)}", style.width, subsequent_indent="  ")
    return "\n".join(out) + "\n"


def _lacks(run: Run, name: str) -> bool:
    return not is_number(run.metrics.get(name))


def problems(run: Run) -> list[str]:
    """What a reader has to know before using the run's numbers."""
    messages = [run.error.splitlines()[0]] if run.error else []
    return messages + [f"{reason.severity} {reason.rule}: {reason.message}" for reason in run.reasons if not run.error]


def as_json(runs: Sequence[Run]) -> str:
    """The metrics contract: {experiment, run, seed, params, verdict, metrics} per run, and its status."""
    rows = [
        {
            "experiment": run.experiment,
            "run": run.run,
            "seed": run.seed,
            "params": run.params,
            "status": run.status,
            "verdict": run.verdict or None,
            "metrics": run.metrics,
        }
        for run in runs
    ]
    return json_text(rows) + "\n"


def as_csv(runs: Sequence[Run]) -> str:
    """One row per run and one column per metric that is a single number; parameters as `param.<name>`."""
    names = parameters(runs)
    scalars = [metric.name for metric in REGISTRY.values() if not metric.keyed]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["experiment", "run", "seed", *(safe(f"param.{name}") for name in names), "verdict", *scalars])
    for run in runs:
        params = [show(run.params[name]) if name in run.params else "" for name in names]
        values = [run.metrics.get(name) for name in scalars]
        row = [run.experiment, run.run, run.seed, *params, run.standing, *values]
        writer.writerow([safe(cell) if isinstance(cell, str) else cell for cell in row])
    return out.getvalue()


def number(value: Any) -> str:
    """Four significant digits, whole numbers whole."""
    if not is_number(value):
        return UNKNOWN
    if value == 0:
        return "0"
    if isinstance(value, int) or abs(value) >= 1e3:
        return f"{value:.0f}"
    return f"{value:#.4g}" if abs(value) >= 1e-3 else f"{value:.1e}"


def spread(value: float) -> str:
    """Two significant digits: more would say that the spread itself is known that well."""
    if value < 1e-12:  # rounding of equal values
        return "0"
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def _parameters(run: Run, names: Sequence[str]) -> list[str]:
    params: Mapping[str, Any] = run.params
    if not run.params and names:
        return [clean(run.run), *("" for _ in names[1:]), ""]
    return [*(clean(show(params.get(name))) for name in names), "" if run.seed is None else str(run.seed)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="analysis.table", description="Table of an experiment's runs.")
    parser.add_argument("folder", type=Path, help="results/<experiment>")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    arguments = parser.parse_args()
    try:
        runs = load_experiment(arguments.folder)
    except AnalysisError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if arguments.format == "json":
        sys.stdout.write(as_json(runs))
    elif arguments.format == "csv":
        sys.stdout.write(as_csv(runs))
    else:
        sys.stdout.write(render(runs, Style.of_terminal()))
    return 0


if __name__ == "__main__":
    screen.install()
    sys.exit(main())
