# SPDX-License-Identifier: Apache-2.0
"""How many replays of the golden runs had the packets that the repository knows: benchmarks/replays.json, and the table made from it.

A count is one of replays with these packets: where the digest of a golden run changes, its count begins anew. Kernel and modules may
change meanwhile, as long as the packets do not.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from base.files import replace_text
from base.paths import ROOT

FILE, PAGE = ROOT / "benchmarks/replays.json", ROOT / "docs/virtual-time.md"
MARK = re.compile(r"(<!-- measured: replays -->\n).*?(<!-- end -->)", re.DOTALL)

Counts = dict[str, Any]
"""Identity (benchmarks.golden) → {"on", "runs": {run: {"packets", kind: {condition: n}}}}, for the kinds below."""
SAME, DIFFERING, FAILED = KINDS = ("same", "differing", "failed")


def read(file: Path = FILE) -> Counts:
    counts: Counts = json.loads(file.read_text()) if file.exists() else {}
    return counts


def add(file: Path, identity: str, run: str, condition: str, packets: str, kind: str) -> None:
    """Count a replay of a run whose packets have the digest `packets` in the repository. Several processes may count at once."""
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        counts = read(file)
        entry = counts.setdefault(identity, {"on": "", "runs": {}})
        entry["on"] = datetime.now(UTC).date().isoformat()
        of_run = _of_these(entry["runs"].get(run), packets)
        of_run[kind][condition] = of_run[kind].get(condition, 0) + 1
        entry["runs"][run] = of_run
        replace_text(file, json.dumps(counts, indent=1, sort_keys=True) + "\n")
    finally:
        os.close(folder)


def _of_these(there: Mapping[str, Any] | None, packets: str) -> dict[str, Any]:
    """The counts of a run, if they are those of these packets."""
    empty: dict[str, Any] = {"packets": packets, **{kind: {} for kind in KINDS}}
    return dict(there) if there is not None and there["packets"] == packets else empty


def valid(counts: Counts, identity: str, digests: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Run → its counts, of the packets that the repository knows now."""
    runs = counts.get(identity, {}).get("runs", {})
    return {run: _of_these(runs.get(run), packets) for run, packets in digests.items()}


def total(runs: Mapping[str, Mapping[str, Any]], *kinds: str, condition: str | None = None) -> int:
    """Replays that came out so, under one condition or all."""
    return sum(
        n for run in runs.values() for kind in kinds for name, n in run[kind].items() if condition in (None, name)
    )


def rarest(runs: Mapping[str, Mapping[str, Any]], conditions: Iterable[str]) -> list[tuple[str, str]]:
    """The runs with the conditions under which they were replayed least often."""
    often = {
        (run, condition): total({run: counts}, *KINDS, condition=condition)
        for run, counts in runs.items()
        for condition in conditions
    }
    return [pair for pair, count in often.items() if count == min(often.values())]


def table(counts: Counts, digests: Mapping[str, Mapping[str, str]], conditions: Iterable[str]) -> Iterator[str]:
    """A row for each condition, a column for each kernel: replays, and how many of them had other packets."""
    columns = {
        name: runs
        for name in sorted(digests, key=_version)
        if total(runs := valid(counts, name, digests[name]), *KINDS)
    }
    yield "| replays of the golden runs | " + " | ".join(f"Linux {_linux(name)}" for name in columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for condition in (*conditions, None):
        yield f"| {condition or 'all'} | " + " | ".join(_cell(runs, condition) for runs in columns.values()) + " |"
    yield "| last counted | " + " | ".join(counts[name]["on"] for name in columns) + " |"


def _cell(runs: Mapping[str, Mapping[str, Any]], condition: str | None) -> str:
    done, differing, failed = (
        total(runs, *kinds, condition=condition) for kinds in ((SAME, DIFFERING), (DIFFERING,), (FAILED,))
    )
    if not done and not failed:
        return "–"
    text = f"{done}, {differing or 'none'} {'differ' if differing > 1 else 'differs'}"
    return text + (f", {failed} more failed" if failed else "")


def _linux(identity: str) -> str:
    """The kernel's version in an identity."""
    return identity.partition(",")[0].removeprefix("linux ")


def _version(identity: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", _linux(identity))]


def page(text: str, lines: Iterable[str]) -> str:
    """The page with its table as the counts say."""
    text, places = MARK.subn(lambda match: f"{match[1]}{chr(10).join(lines)}\n{match[2]}", text)
    if places != 1:
        raise ValueError(f"{PAGE}: {places} places for the table of replays")
    return text
