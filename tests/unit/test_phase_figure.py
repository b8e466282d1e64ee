# SPDX-License-Identifier: Apache-2.0
"""The table of the phase effect: its intervals, by hand."""

from __future__ import annotations

import numpy as np

from benchmarks.phase_figure import figure, table


def test_rows_have_means_intervals_and_extremes() -> None:
    none, auto = {0.5: np.array([0.7, 0.7])}, {0.5: np.array([0.9, 1.0])}
    assert table(none, auto).splitlines() == [
        "| access delay of the second flow, ms | 0.5 |",
        "|---|---|",
        "| `overhead: none` | 0.700 |",
        "| `overhead: auto`, mean of 2 seeds | 0.950 |",
        "| … half of its 95 % interval | 0.635 |",  # 12.706 × 0.0707 / √2
        "| … least and greatest | 0.900 1.000 |",
    ]
    (axis,) = figure(none, auto).axes
    legend = axis.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "overhead: none, every seed",
        "overhead: auto, mean of 2 seeds, 95 %",
    ]
