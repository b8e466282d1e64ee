# SPDX-License-Identifier: Apache-2.0
"""Mean transmission times by receiver, size and algorithm, beside published ones (the form of Ho 2008 Tables 6.2-6.4)."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from analysis import terminal
from base import quantities
from base.text import clean, json_text
from testbed.campaign.model import Campaign
from testbed.campaign.outcome import of_run, runs_in

Z_95 = 1.96
ALL = terminal.Style(width=10_000, colour=False)
"""Cells are never cut: the table is also kept in a file."""


@dataclass(frozen=True)
class Cell:
    """One combination. Times in seconds, rates in payload Mbit/s; `published_s` is None where nothing was published.

    gain: time of the file's first algorithm over this one's, same receiver and size; published_gain likewise
    """

    receiver: str
    size: str
    cca: str
    transfers: int
    suspect: int
    mean_s: float | None
    half_width_95_s: float | None
    mbps: float | None
    published_s: float | None
    gain: float | None
    published_gain: float | None


def measured(folder: Path) -> dict[tuple[str, str, str], list[tuple[float, str]]]:
    """Seconds and verdict of every complete transfer below a campaign's results, by (receiver, size, cca)."""
    times: dict[tuple[str, str, str], list[tuple[float, str]]] = {}
    for run in runs_in(folder):
        outcome = of_run(run)
        key = tuple(str(run.params.get(name)) for name in ("receiver", "size", "cca"))
        if outcome is not None and outcome.verdict != "invalid":
            times.setdefault((key[0], key[1], key[2]), []).append((outcome.seconds, outcome.verdict))
    return times


def cells(campaign: Campaign, times: Mapping[tuple[str, str, str], Sequence[tuple[float, str]]]) -> list[Cell]:
    """All combinations of the file in its order."""
    return [
        _cell(campaign, times, receiver, size, cca)
        for receiver in campaign.receivers
        for size in campaign.sizes
        for cca in campaign.algorithms
    ]


def _cell(
    campaign: Campaign,
    times: Mapping[tuple[str, str, str], Sequence[tuple[float, str]]],
    receiver: str,
    size: str,
    cca: str,
) -> Cell:
    here = times.get((receiver, size, cca), [])
    values = [seconds for seconds, _ in here]
    mean = statistics.fmean(values) if values else None
    spread = Z_95 * statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
    first = [seconds for seconds, _ in times.get((receiver, size, campaign.algorithms[0]), [])]
    published = campaign.published.get(receiver, {}).get(size, {})
    published_s, published_first_s = published.get(cca), published.get(campaign.algorithms[0])
    return Cell(
        receiver, size, cca, len(values), sum(verdict == "suspect" for _, verdict in here), mean, spread,
        None if mean is None else quantities.size_bytes(size) * 8e-6 / mean, published_s,
        statistics.fmean(first) / mean if mean and first else None,
        published_first_s / published_s if published_s and published_first_s else None,
    )  # fmt: skip


def as_json(rows: Sequence[Cell]) -> str:
    return json_text([asdict(row) for row in rows])


def render(campaign: Campaign, rows: Sequence[Cell]) -> str:
    """One table per receiver: a line per size, and for each algorithm time, number of transfers and the published time."""
    parts = []
    for receiver, details in campaign.receivers.items():
        lines = []
        for size in campaign.sizes:
            lines.append([size, *(_text(row) for row in rows if row.receiver == receiver and row.size == size)])
        title = f"{campaign.sender} – {receiver}{': ' + details.title if details.title else ''}"
        about = f"(seconds, mean of n; gain over {campaign.algorithms[0]})"
        body = terminal.table(["size", *campaign.algorithms], lines, ALL)
        parts.append(f"{clean(title)} {about}\n{body}")
    return "\n".join(parts)


def _text(row: Cell) -> str:
    if row.mean_s is None:
        text = "none yet"
    else:
        spread = f" ±{_seconds(row.half_width_95_s)}" if row.half_width_95_s else ""
        text = f"{_seconds(row.mean_s)}{spread} (n={row.transfers}"
        text += f", {row.gain:.2f}×)" if row.gain is not None else ")"
    if row.published_s is not None:
        text += f" | published {_seconds(row.published_s)}"
        text += f" ({row.published_gain:.2f}×)" if row.published_gain is not None else ""
    return text


def _seconds(value: float) -> str:
    """Three significant digits without an exponent."""
    return re.sub(r"\.?0+$", "", f"{value:.4f}") if value < 1 else f"{value:.3g}" if value < 1000 else f"{value:.0f}"
