# SPDX-License-Identifier: Apache-2.0
"""The report's figures, drawn by what draws them for the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.results import Run
from analysis.statistics import cells
from base.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("svg", "pdf", "png")


@dataclass(frozen=True)
class Drawing:
    """A figure of the report; notebooks show it. `figure` is Matplotlib's, to be changed at will."""

    name: str
    figure: Figure

    def save(self, file: str | Path) -> Path:
        """Write it as SVG, PDF or PNG, by the name's ending."""
        target = Path(file)
        kind = target.suffix.removeprefix(".")
        if kind not in KINDS:
            raise UsageError(f"{target}: a figure is written as {', '.join(KINDS)}, by its ending")
        target.write_bytes(self._drawn(kind))
        return target

    def _drawn(self, kind: str) -> bytes:
        from analysis.report.static import drawn

        (content,) = drawn(self.figure, (kind,))
        return content

    def _repr_svg_(self) -> str:
        return self._drawn("svg").decode()


def drawings(runs: Sequence[Run]) -> dict[str, Drawing]:
    """All figures that the report of these runs has."""
    from analysis.report.data import figure_data  # these load Matplotlib
    from analysis.report.static import figures

    return {name: Drawing(name, figure) for name, figure in figures(figure_data(runs, cells(runs))).items()}
