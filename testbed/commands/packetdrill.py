# SPDX-License-Identifier: Apache-2.0
"""`./warpbed packetdrill FILE… --binary PATH`: a packetdrill of your own on scripts, in a guest in virtual time."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from base.errors import UsageError
from base.nearest import nearest
from base.screen import print_table
from kernels import module_source
from schema.names import algorithms
from testbed.commands.output import add_format, render

HELP = "run scripts of packetdrill, whose binary you give, in a guest in virtual time"
LONGEST_S = 3600.0
LINES = 3


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("scripts", nargs="+", type=Path, metavar="FILE", help="scripts")
    command.add_argument(
        "--binary", type=Path, required=True, metavar="PATH", help="packetdrill, as built on this machine"
    )
    command.add_argument(
        "--root", type=Path, metavar="FOLDER", help="holds the scripts and all that they name (default: theirs)"
    )
    command.add_argument("--algorithm", default="", metavar="CCA", help="of sockets for which the script says none")
    command.add_argument("--series", default="default", help="the guest's kernel")
    command.add_argument(
        "--limit", type=float, default=60.0, metavar="S", help="virtual seconds per script (default: 60)"
    )
    command.add_argument(
        "--argument", action="append", default=[], metavar="WORD", help="for packetdrill, such as --argument=--verbose"
    )
    add_format(command)


def main(options: argparse.Namespace) -> int:
    """1 where a script fails."""
    from hosts.virtual import scripts  # only for this: no other command needs it
    from hosts.virtual.kernel import find

    if not 0 < options.limit <= LONGEST_S:
        raise UsageError(f"--limit takes seconds above 0 and up to {LONGEST_S:g}")
    if options.algorithm and options.algorithm not in algorithms():
        raise UsageError(f"--algorithm: there is no {options.algorithm!r}; {nearest(options.algorithm, algorithms())}")
    files = [Path(os.path.abspath(script)) for script in options.scripts]
    root = (
        Path(os.path.abspath(options.root))
        if options.root
        else Path(os.path.commonpath([file.parent for file in files]))
    )
    own = module_source.by_name().get(options.algorithm)
    answers = scripts.run(
        find(options.series),
        Path(os.path.abspath(options.binary)),
        files,
        root=root,
        module=f"tcp_{own.stem}" if own is not None else "",
        algorithm=options.algorithm,
        arguments=options.argument,
        limit_s=options.limit,
    )
    rows = [_row(answer, root) for answer in answers]
    print_table(render(rows, options.format))
    failed = sum(answer.code != 0 for answer in answers)
    if options.format == "table":
        print(f"{len(answers) - failed} of {len(answers)} scripts pass")
    return 1 if failed else 0


def _row(answer: Any, root: Path) -> dict[str, object]:
    said = [line.strip() for line in answer.output.splitlines() if line.strip()]
    why = "" if answer.code == 0 else " / ".join(said[-LINES:]) or f"exit code {answer.code}"
    outcome = "passes" if answer.code == 0 else "not at its end" if answer.code is None else "fails"
    return {
        "script": str(answer.script.relative_to(root)),
        "outcome": outcome,
        "virtual_s": answer.virtual_s,
        "why": why,
    }
