# SPDX-License-Identifier: Apache-2.0
"""The measurements behind docs/reliability.md: docs/reliability.json, and the tables made from it.

    python -m tests.reliability      writes the tables between their marks in docs/reliability.md

Who measures calls `add`; what was measured before in the same way is replaced, or added to where it is a sum. `mended` is written by hand:
what was found by measurements of a row, and is held by a test since.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from base.files import replace_text
from base.paths import ROOT

DATA, PAGE = ROOT / "docs/reliability.json", ROOT / "docs/reliability.md"
COMMANDS = {
    "transfer": "campaign's transfer",
    "collect": "`collect`",
    "run": "`execute`, after the host",
    "reproduce": "`reproduce`, after the host",
    "store load": "`store load`, messages with the database included",
}
ERRORS = {"EIO": "EIO", "ENOSPC": "ENOSPC", "SHORT": "half of what was asked"}


def read() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(DATA.read_text())
    return content


def add(section: str, name: str, entry: Mapping[str, Any], sums: tuple[str, ...] = ()) -> None:
    """Put a measurement into the file; the numbers that `sums` names are added to those that are there."""
    data = read()
    there = data.setdefault(section, {}).get(name, {})
    total = {key: entry[key] + there.get(key, 0) for key in sums}
    kept = {"mended": there["mended"]} if "mended" in there else {}
    data[section][name] = {**kept, **entry, **total, "on": datetime.now(UTC).date().isoformat()}
    replace_text(DATA, json.dumps(data, indent=1, sort_keys=True) + "\n")


def faults(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "| command | calls that count | error | from there on | repetitions | refused, then completed | violations | on |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in sorted(rows.values(), key=lambda row: (list(COMMANDS).index(row["case"]), row["error"], row["stays"])):
        which = "every call" if row["step"] == 1 and row["first"] == 1 else f"every {row['step']}th"
        how = "all fail" if row["stays"] else "one is short" if row["error"] == "SHORT" else "one fails"
        yield (
            f"| {COMMANDS[row['case']]} | {row['calls']} | {ERRORS[row['error']]} | {how} | {row['faults']} ({which}) "
            f"| {row['refused']} | {row['violations']} | {row['on']} |"
        )


def kills(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "| command | kills | of them while it ran | left behind, lost or doubled | on |"
    yield "|---|---|---|---|---|"
    for name, row in sorted(rows.items()):
        mended = f" ({row['mended']} more are mended)" if row.get("mended") else ""
        yield f"| {name} | {row['kills']} | {row['running']} | {row['violations']}{mended} | {row['on']} |"


def power(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "| command | calls | of them syncs | states looked at | of them completed by the next command | violations | on |"
    yield "|---|---|---|---|---|---|---|"
    for name in sorted(rows, key=list(COMMANDS).index):
        row = rows[name]
        numbers = " | ".join(str(row[key]) for key in ("calls", "synced", "states", "again", "violations", "on"))
        yield f"| {COMMANDS[name]} | {numbers} |"


def together(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "| command | twice at once | of them one refused | lost, doubled or half there | on |"
    yield "|---|---|---|---|---|"
    for name, row in sorted(rows.items()):
        yield f"| {name} | {row['times']} | {row['refused']} | {row['violations']} | {row['on']} |"


def fuzzing(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "| input | by | CPU hours | inputs | findings open | on |"
    yield "|---|---|---|---|---|---|"
    for name, row in sorted(rows.items()):
        yield f"| {name} | {row['by']} | {row['cpu_s'] / 3600:.2f} | {row['inputs']} | {row['open']} | {row['on']} |"
    yield f"| all | | {sum(row['cpu_s'] for row in rows.values()) / 3600:.2f} | | {sum(row['open'] for row in rows.values())} | |"


TABLES = {"faults": faults, "power": power, "kills": kills, "together": together, "fuzzing": fuzzing}


def page(text: str, data: Mapping[str, Any]) -> str:
    """The page with its tables as the data says."""
    for name, table in TABLES.items():
        mark = re.compile(rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        lines = "\n".join(table(data.get(name, {})))
        text, count = mark.subn(lambda match, lines=lines: f"{match[1]}{lines}\n{match[2]}", text)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"{PAGE}: {count} places for the table {name}")
    return text


def main(file: Path = PAGE) -> None:
    replace_text(file, page(file.read_text(), read()))


if __name__ == "__main__":
    main()
