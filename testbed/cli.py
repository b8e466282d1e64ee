# SPDX-License-Identifier: Apache-2.0
"""The command line: `./warpbed COMMAND`. Each command is short for a playbook or a program that README.md names.

Exit codes: 0 done; 1 a run failed or a check did not hold; 2 bad usage or a bad file, nothing was started.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from testbed import commands
from testbed.cache import ROOT
from testbed.errors import WarpbedError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(2, f"{self.prog}: {message}; {self.prog} --help shows what there is\n")


def parser() -> argparse.ArgumentParser:
    top = _Parser(prog="warpbed", description="A TCP testbed in virtual time, on VMs and on real hosts.", allow_abbrev=False)
    sub = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    def add(name: str, function: object, text: str) -> argparse.ArgumentParser:
        command = sub.add_parser(name, help=text, description=text, allow_abbrev=False)
        command.set_defaults(function=function)
        return command

    def results(command: argparse.ArgumentParser) -> None:
        command.add_argument("--results", type=Path, default=ROOT / "results", metavar="DIR", help="where results are (default: results/)")

    def selection(command: argparse.ArgumentParser) -> None:
        command.add_argument("experiment", type=Path, help="experiment file")
        command.add_argument("--host", choices=["virtual"], default=None, help="kind of host (default: the file's)")
        command.add_argument("--jobs", type=int, default=0, metavar="N", help="runs side by side (default: one per CPU)")
        command.add_argument("--only", default="", metavar="EXPR", help="only these runs, e.g. cca=medley,buffer=50p|250p")
        command.add_argument("--seed", type=int, default=0, metavar="N", help="this seed instead of the file's")
        results(command)

    selection(add("run", commands.run, "install, build, execute what is missing, report"))
    selection(add("execute", commands.execute, "execute what is missing, report; install and build nothing"))
    check = add("check", commands.check, "validate an experiment file and lint its fidelity; runs nothing")
    check.add_argument("experiment", type=Path)
    check.add_argument("--quiet", action="store_true", help="say nothing where all is well")
    check.add_argument("--kernel", action="store_true", help="print the kernel series that the experiment needs")
    listing = add("list", commands.listing, "list what there is")
    listing.add_argument("what", choices=["experiments", "algorithms", "topologies", "hosts", "metrics"])
    collect = add("collect", commands.collect, "make the records, metrics and verdicts of result folders again")
    collect.add_argument("path", type=Path, help="a run's folder or an experiment's")
    metrics = add("metrics", commands.metrics, "the metrics of an experiment's runs")
    metrics.add_argument("experiment", help="experiment file or name")
    metrics.add_argument("--format", choices=["table", "json", "csv"], default="table")
    results(metrics)
    report = add("report", commands.report, "write an experiment's report.html")
    report.add_argument("experiment", help="experiment file or name")
    results(report)
    compare = add("compare", commands.compare, "hold an experiment's expectations against what was measured")
    compare.add_argument("experiment", help="experiment file or name")
    results(compare)
    kernels = add("build-kernels", commands.build_kernels, "build the guest kernel and the modules")
    kernels.add_argument("--series", default="default", help="6.1, 6.12, 7.2 or default")
    kernels.add_argument("--source", type=Path, help="a kernel tree or tarball instead of Debian's source")
    schema = add("schema", commands.schema, "print the JSON Schema of experiment files, for editors")
    schema.add_argument("--check", action="store_true", help="fail where docs/experiment.schema.json is out of date")
    test = add("test", commands.test, "run the tests")
    test.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments for pytest")
    return top


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["test"]:  # whatever follows belongs to pytest, options too
        return commands.test_with(arguments[1:])
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
