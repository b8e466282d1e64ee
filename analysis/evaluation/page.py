# SPDX-License-Identifier: Apache-2.0
"""An evaluation as one HTML file: a row for each criterion, then each with its claims and the values beside CUBIC's and Reno's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from analysis.evaluation.outcomes import OUTCOMES, Judged, Measured, Value
from analysis.report.build import content_hash, templates
from analysis.table import number

HERE = Path(__file__).parent
STYLE = HERE.parent / "report/report.css"
OWN_STYLE = HERE / "page.css"


def page(algorithm: str, criteria: Sequence[Judged], about: Mapping[str, Any]) -> str:
    """The page. about: `kernel`, `quick`, `command` and `files` (name → file beside the page)."""
    style = STYLE.read_text(encoding="utf-8") + OWN_STYLE.read_text(encoding="utf-8")
    counts = Counter(one.outcome for one in criteria)
    return (
        templates(HERE)
        .get_template("page.html.j2")
        .render(
            algorithm=algorithm,
            found=criteria,
            counts={name: counts[name] for name in OUTCOMES if counts[name]},
            about=about,
            shown=shown,
            bars=bars,
            style=Markup(style),  # noqa: S704 (this package's own files)
            style_hash=content_hash(style),
        )
    )


def shown(value: Value) -> str:
    """A mean with its interval."""
    if value.mean is None:
        return "no valid run has it"
    if value.low is None or value.high is None or value.copies:
        return number(value.mean)
    return f"{number(value.mean)} ({number(value.low)} … {number(value.high)})"


def bars(measured: Measured) -> list[dict[str, Any]]:
    """Each value with its length as a share of the longest, in per cent."""
    most = max((abs(value.mean) for value in measured.values if value.mean is not None), default=0.0)
    return [
        {"value": value, "length": 0.0 if not most or value.mean is None else round(100 * abs(value.mean) / most, 2)}
        for value in measured.values
    ]
