# SPDX-License-Identifier: Apache-2.0
"""The command line: `./warpbed COMMAND`. Each command is short for a playbook or a program that README.md names.

Exit codes: 0 done; 1 a run failed or a check did not hold; 2 bad usage or a bad file, nothing was started.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from base import screen
from base.errors import WarpbedError
from base.text import clean
from base.version import VERSION

COMMANDS = {
    "run": "run",
    "execute": "execute",
    "check": "check",
    "calibrate": "calibrate",
    "list": "listing",
    "collect": "collect",
    "metrics": "metrics",
    "report": "report",
    "compare": "compare",
    "reproduce": "reproduce",
    "evaluate": "evaluate",
    "bisect": "bisect",
    "packetdrill": "packetdrill",
    "diff": "diff",
    "bundle": "bundle",
    "rerun": "rerun",
    "status": "status",
    "build-kernels": "build_kernels",
    "cache": "cache",
    "campaign": "campaign",
    "new-algorithm": "new_algorithm",
    "store": "store",
    "dashboards": "dashboards",
    "schema": "schema",
    "test": "test",
}
"""The commands and their modules in testbed/commands, which are imported when they are needed: all of them take a second."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of these commands."""
    top = _Parser(
        prog="warpbed", description="A TCP testbed in virtual time, on VMs and on real hosts.", allow_abbrev=False
    )
    top.add_argument("--version", action="version", version=f"warpbed {VERSION}")
    sub = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    for name in names:
        module = _module(name)
        command = sub.add_parser(name, help=module.HELP, description=module.HELP, allow_abbrev=False)
        command.set_defaults(function=module.main)
        module.arguments(command)
    return top


def _named(arguments: Sequence[str]) -> Iterable[str]:
    """The commands that a command line can be about: the one that it begins with, or all where the answer lists them."""
    if arguments == ["--version"]:
        return ()
    return arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS


def _module(name: str) -> Any:
    return importlib.import_module(f"testbed.commands.{COMMANDS[name]}")


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns its exit code.

    As a program of its own (no *argv*) it ends without words when whoever reads its output goes away (base.screen).
    """
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["test"]:  # whatever follows belongs to pytest, options too
        code: int = _module("test").run_pytest(arguments[1:])
        return code
    if argv is not None:
        with screen.installed():
            return _main(arguments)
    screen.install()  # to the end: a traceback is printed last
    try:
        return _main(arguments)
    finally:
        sys.stdout.flush()


def _main(arguments: Sequence[str]) -> int:
    options = parser(_named(arguments)).parse_args(arguments)
    return ended(lambda: options.function(options))


def ended(command: Callable[[], int]) -> int:
    """A command's exit code; what stops it is told in a sentence, not in a traceback."""
    try:
        return command()
    except WarpbedError as error:
        print(error.shown, file=sys.stderr)
        return error.exit_code
    except OSError as error:  # a full disk, a folder that cannot be read: it names the file, and the same call resumes
        said = f"{error.filename or 'a file'}: {error.strerror or error}; nothing half is left, run it again"
        print(clean(said), file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    return 1
