# SPDX-License-Identifier: Apache-2.0
"""Progress of a campaign, from its result folders and its journal, whether or not a process conducts it."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from base import quantities
from base.text import json_text
from testbed.campaign.journal import Journal
from testbed.campaign.model import Campaign
from testbed.campaign.outcome import is_damaged, of_run, runs_in
from testbed.campaign.times import estimated_runs, shortest_run_s

RECENT = 5


@dataclass(frozen=True)
class Status:
    """state: "not begun", "under way", "interrupted" (no process conducts it), "stopped" or "over".

    expected is an estimate while runs take longer than their pauses alone; left_s is None where nothing is known.
    missing: transfers that were given up, with the reason; failures that a later attempt has made good are not there
    damaged: folders in the place of transfers that cannot be read, with the reason; they count as not done
    """

    state: str
    done: int
    expected: int
    bytes_done: int
    left_s: float | None
    now: str = ""
    missing: dict[str, str] = field(default_factory=dict)
    recent: list[dict[str, Any]] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> str:
        return json_text(asdict(self))


def read(campaign: Campaign, folder: Path) -> Status:
    """The status of the campaign whose results are in `folder`."""
    journal = Journal(folder)
    events = journal.events()
    there = runs_in(folder)
    complete = [run for run in there if not is_damaged(run)]
    damaged = {run.path.name: run.error for run in there if is_damaged(run)}
    names = {run.path.name for run in complete}
    missing: dict[str, str] = {}
    for entry in events:
        if entry["event"] == "missing" and entry["transfer"] not in names:
            missing[entry["transfer"]] = str(entry.get("reason", ""))
    spent = [outcome.seconds for run in complete if (outcome := of_run(run)) is not None]
    per_run = len(campaign.receivers) * len(campaign.algorithms) * len(campaign.sizes)
    mean_s = sum(spent) / len(spent) if spent else 0.0
    runs = estimated_runs(campaign, shortest_run_s(campaign) + per_run * mean_s)
    expected = max(runs * per_run, len(complete) + len(missing))
    virtual = bool(complete) and complete[-1].host == "virtual"
    left = expected - len(complete) - len(missing)
    state = _state(journal, events, left)
    left_s = None
    if state in ("under way", "interrupted") and not virtual:
        left_s = left * (quantities.seconds(campaign.pause) + mean_s)
    sizes = [str(run.params.get("size", "0B")) for run in complete]
    return Status(
        state, len(complete), expected, sum(map(_bytes, sizes)), left_s, _doing(events) if state == "under way" else "",
        missing, events[-RECENT:], damaged,
    )  # fmt: skip


def _bytes(text: str) -> int:
    try:
        return quantities.size_bytes(text)
    except ValueError:
        return 0


def _state(journal: Journal, events: list[dict[str, Any]], left: int) -> str:
    if journal.is_held():
        return "under way"
    last = next((e["event"] for e in reversed(events) if e["event"] in ("begun", "resumed", "stopped", "over")), None)
    if last is None:
        return "not begun"
    if last == "over" or left <= 0:
        return "over"
    return "stopped" if last == "stopped" else "interrupted"


def _doing(events: list[dict[str, Any]]) -> str:
    for entry in reversed(events):
        if entry["event"] in ("started", "waiting", "pause"):
            since = max(0.0, time.time() - entry["time"])
            subject = entry.get("transfer", "")
            return f"{entry['event']} {subject} {entry.get('reason', '')}".strip() + f" for {since:.0f} s"
    return ""


def render(campaign: Campaign, status: Status) -> str:
    """For people."""
    left = "" if status.left_s is None else f", about {_span(status.left_s)} left"
    share = status.done / status.expected if status.expected else 1.0
    lines = [
        (
            f"{campaign.campaign}: {status.state}; {status.done} of about {status.expected} transfers ({share:.0%}), "
            f"{status.bytes_done / 1e9:.2f} GB{left}"
        )
    ]
    lines += [f"now: {status.now}"] if status.now else []
    lines += [f"missing: {transfer}: {reason}" for transfer, reason in sorted(status.missing.items())]
    lines += [f"damaged: {transfer}: {reason}" for transfer, reason in sorted(status.damaged.items())]
    for entry in status.recent:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(entry["time"]))
        detail = " ".join(str(entry[key]) for key in ("transfer", "host", "reason") if entry.get(key))
        lines.append(f"{stamp}Z {entry['event']} {detail}".rstrip())
    return "\n".join(lines) + "\n"


def _span(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86400)
    hours, minutes = divmod(rest // 60, 60)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes} min" if hours else f"{minutes} min"
