# SPDX-License-Identifier: Apache-2.0
"""`./warpbed cache`: what the cache holds, and removing what nothing has used for long."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from base.paths import cache_dir
from base.screen import print_table
from kernels import upkeep
from testbed.commands.output import add_format, render

HELP = "list the cache's entries, or prune those no longer used"

DAY = 86400.0


def arguments(command: argparse.ArgumentParser) -> None:
    sub = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = sub.add_parser("list", help="every entry with its size and the days since it was used", allow_abbrev=False)
    prune = sub.add_parser("prune", help="remove entries unused for long; they are made again when needed")
    prune.add_argument(
        "--unused-for", type=_days, default=30.0, metavar="DAYS", help="0 removes everything; default: 30"
    )
    prune.add_argument("--dry-run", action="store_true", help="list the entries without removing them")
    for action in (show, prune):
        add_format(action)


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < 36500:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days between 0 and 36500")
    return days


def main(options: argparse.Namespace) -> int:
    entries = list(upkeep.entries(cache_dir()))
    if options.action == "prune":
        limit = options.unused_for * DAY
        # this very process runs from one of the environments
        entries = [entry for entry in entries if entry.idle >= limit and not sys.prefix.startswith(str(entry.path))]
        if not options.dry_run:
            entries = upkeep.prune(cache_dir(), entries, limit)
    print_table(render([_row(entry) for entry in entries], options.format))
    if options.format == "table":
        verb = "removed" if options.action == "prune" and not options.dry_run else "found"
        print(f"{len(entries)} entries, {sum(entry.size for entry in entries) / 1e6:.0f} MB {verb} in {cache_dir()}")
    return 0


def _row(entry: upkeep.Entry) -> dict[str, Any]:
    return {
        "entry": f"{entry.kind}/{entry.path.name}",
        "is": upkeep.KINDS[entry.kind],
        "MB": round(entry.size / 1e6, 1),
        "idle_days": round(entry.idle / DAY, 1),
    }
