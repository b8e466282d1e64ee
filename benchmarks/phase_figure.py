# SPDX-License-Identifier: Apache-2.0
"""The figure and the table of the phase effect in docs/numbers.md, from the runs of experiments/phase-effects.yml.

    ./warpbed run experiments/phase-effects.yml
    ./warpbed exec python -m benchmarks.phase_figure [--results DIR]

Writes docs/images/phase-effects.svg and prints the table. The runs are the same on every machine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.palette import COLOURS
from analysis.results import load_experiment
from analysis.statistics import estimate
from base import quantities
from base.paths import ROOT

IMAGE = ROOT / "docs/images/phase-effects.svg"
INCHES = (6.0, 3.2)
Cells = dict[float, NDArray[np.float64]]
"""Access delay of the second flow in ms → Jain's index of each seed."""


def cells(folder: Path, overhead: str) -> Cells:
    """Of the complete runs with this overhead, by delay; the first word of the parameter is the first flow's."""
    runs = [run for run in load_experiment(folder) if run.complete and run.params["overhead"] == overhead]
    by_cell: dict[float, list[float]] = {}
    for run in runs:
        delay = quantities.delay_ns(str(run.params["delay"]).split()[1]) / 1e6
        by_cell.setdefault(delay, []).append(run.metrics["jain_index"])
    return {delay: np.array(by_cell[delay]) for delay in sorted(by_cell)}


def table(none: Cells, auto: Cells) -> str:
    """The rows of the page's table."""
    rows = {
        "access delay of the second flow, ms": [f"{delay:g}" for delay in auto],
        "`overhead: none`": [f"{values.mean():.3f}" for values in none.values()],
        f"`overhead: auto`, mean of {seeds(auto)} seeds": [f"{values.mean():.3f}" for values in auto.values()],
        "… half of its 95 % interval": [f"{half_width(values):.3f}" for values in auto.values()],
        "… least and greatest": [f"{values.min():.3f} {values.max():.3f}" for values in auto.values()],
    }
    lines = [f"| {' | '.join([name, *values])} |" for name, values in rows.items()]
    return "\n".join([lines[0], "|---" * (len(auto) + 1) + "|", *lines[1:]])


def half_width(values: NDArray[np.float64]) -> float:
    """Half of the 95 % interval of the mean."""
    interval = mean.t_interval if (mean := estimate(values.tolist())) is not None else None
    assert interval is not None, "one seed has no interval"
    return (interval.high - interval.low) / 2


def seeds(auto: Cells) -> int:
    return min(len(values) for values in auto.values())


def figure(none: Cells, auto: Cells) -> Figure:
    drawn = Figure(figsize=INCHES, layout="constrained")
    axis = drawn.subplots()
    means, widths = [values.mean() for values in auto.values()], [half_width(values) for values in auto.values()]
    axis.plot(
        list(none),
        [values.mean() for values in none.values()],
        "o--",
        color=COLOURS[1],
        label="overhead: none, every seed",
    )
    label = f"overhead: auto, mean of {seeds(auto)} seeds, 95 %"
    axis.errorbar(list(auto), means, widths, fmt="s-", capsize=3, color=COLOURS[0], label=label)
    axis.set_xlabel("access delay of the second flow (ms); the first has 0.5 ms")
    axis.set_ylabel("Jain's index")
    axis.set_xlim(left=0)
    axis.set_ylim(0.65, 1.01)
    axis.grid(linewidth=0.3)
    axis.legend(fontsize=8, loc="lower right")
    return drawn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    folder = parser.parse_args().results / "phase-effects"
    none, auto = cells(folder, "none"), cells(folder, "auto")
    if any(np.ptp(values) for values in none.values()):
        sys.exit("with overhead none some seeds differ: the legend says that they do not")
    figure(none, auto).savefig(IMAGE, format="svg", metadata={"Date": None})
    print(table(none, auto))
    return 0


if __name__ == "__main__":
    sys.exit(main())
