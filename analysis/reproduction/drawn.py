# SPDX-License-Identifier: Apache-2.0
"""Figures of models, and of runs beside them: of each entry a function that draws on an axis, and the experiment whose runs it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FormatStrFormatter

from analysis.models import ho2008, tokuda2003
from analysis.palette import COLOURS
from analysis.reproduction.measured import climb, windows
from analysis.results import Run

Drawing = Callable[[Axes, Sequence[Run]], None]
DRAWN: dict[str, tuple[str, Drawing]] = {}
"""entry → (name of the experiment, or nothing; the function)"""
MODEL: Any = {"color": "black", "linewidth": 0.8, "linestyle": "--"}


def draws(entry: str, experiment: str = "") -> Callable[[Drawing], Drawing]:
    def register(function: Drawing) -> Drawing:
        DRAWN[entry] = (experiment, function)
        return function

    return register


@draws("ho2008-fig4.2", "ho2008-fig4")
def _figure_4_2(axis: Axes, runs: Sequence[Run]) -> None:
    for run in runs:
        if run.counted and run.params.get("rate") == "50mbit" and run.seed == 1:
            shown = [(t_s / 0.1, cwnd) for t_s, cwnd in windows(run) if t_s < 14]
            axis.plot([t for t, _ in shown], [cwnd for _, cwnd in shown], color=COLOURS[0], label="window in a run")
    steps = ho2008.decreases(ho2008.MU_D, 25)
    axis.plot(
        [t for t, _ in steps],
        [W for _, W in steps],
        "o",
        mfc="none",
        mec="black",
        markersize=4,
        label="model, W at t_j",
    )
    axis.set_xlabel("round trips")
    axis.set_ylabel("packets")


@draws("ho2008-fig4.3")
def _figure_4_3(axis: Axes, _: Sequence[Run]) -> None:
    steps = ho2008.decreases(ho2008.MU_D, 20)
    bounds = ho2008.bounds(steps)
    t = [step for step, _ in steps]
    axis.plot(t, ho2008.sent(steps), color=COLOURS[0], label="model")
    axis.plot(t, [low for _, low, _ in bounds], label="lower bound", **MODEL)
    axis.plot(t, [high for _, _, high in bounds], label="upper bound", color="black", linewidth=0.8, linestyle=":")
    axis.set_xlabel("round trips")
    axis.set_ylabel("packets sent")


@draws("ho2008-fig4.4", "ho2008-fig4")
def _figure_4_4(axis: Axes, runs: Sequence[Run]) -> None:
    points = sorted(one for run in runs if run.counted and run.seed == 1 and (one := climb(run)) is not None)
    paths = [mu_d * 8 for mu_d, _, _, _ in points]
    axis.plot(paths, [here for _, here, _, _ in points], "o-", color=COLOURS[0], markersize=3, label="runs")
    axis.plot(paths, [model for _, _, model, _ in points], label="model", **MODEL)
    late: Any = {**MODEL, "linestyle": ":"}
    axis.plot(paths, [late for _, _, _, late in points], label="model, RTTs a round late", **late)
    axis.set_xlabel("BDP, kbit")
    axis.set_ylabel("BaseRTTs")


def _figure_6(access: float) -> Drawing:
    def draw(axis: Axes, _: Sequence[Run]) -> None:
        points = tokuda2003.figure_6(access)
        axis.plot(
            [x for x, _, _ in points],
            [fast for _, _, fast in points],
            "o--",
            color=COLOURS[0],
            markersize=3,
            label="HighSpeed, analysis",
        )
        axis.plot(
            [x for x, _, _ in points],
            [reno for _, reno, _ in points],
            "s--",
            color=COLOURS[1],
            markersize=3,
            label="Reno, analysis",
        )
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        axis.set_xlabel("delay of the link, ms")
        axis.set_ylabel("Mbit/s")

    return draw


for _letter, _access in zip("abc", tokuda2003.ACCESS_MBPS, strict=True):
    draws(f"tokuda2003-fig6{_letter}")(_figure_6(_access))
