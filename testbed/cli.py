# SPDX-License-Identifier: Apache-2.0
"""The command line: `./warpbed COMMAND`. Each command is short for a playbook or a program that README.md names.

Exit codes: 0 done; 1 a run failed or a check did not hold; 2 bad usage or a bad file, nothing was started.
"""

from __future__ import annotations

import argparse
import signal
import sys

from base.errors import WarpbedError
from base.version import VERSION
from testbed.commands import (
    build_kernels,
    cache,
    calibrate,
    campaign,
    check,
    collect,
    compare,
    dashboards,
    execute,
    listing,
    metrics,
    new_algorithm,
    report,
    run,
    schema,
    status,
    store,
    test,
)

COMMANDS = (
    run,
    execute,
    check,
    calibrate,
    listing,
    collect,
    metrics,
    report,
    compare,
    status,
    build_kernels,
    cache,
    campaign,
    new_algorithm,
    store,
    dashboards,
    schema,
    test,
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    top = _Parser(
        prog="warpbed", description="A TCP testbed in virtual time, on VMs and on real hosts.", allow_abbrev=False
    )
    top.add_argument("--version", action="version", version=f"warpbed {VERSION}")
    sub = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    for module in COMMANDS:
        command = sub.add_parser(module.NAME, help=module.HELP, description=module.HELP, allow_abbrev=False)
        command.set_defaults(function=module.main)
        module.arguments(command)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["test"]:  # whatever follows belongs to pytest, options too
        return test.run_pytest(arguments[1:])
    options = parser().parse_args(arguments)
    try:
        code: int = options.function(options)
    except WarpbedError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 1
    return code
