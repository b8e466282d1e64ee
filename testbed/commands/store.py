# SPDX-License-Identifier: Apache-2.0
"""`./warpbed store`: put results into the database, keep it in order, and ask questions of it or of the files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from base.errors import UsageError
from base.paths import ROOT
from testbed.commands.output import add_format

HELP = "load results into the database, maintain and query it"


def arguments(command: argparse.ArgumentParser) -> None:
    sub = command.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        action = sub.add_parser(name, help=text, description=text, allow_abbrev=False)
        action.add_argument(
            "--database",
            metavar="URL",
            help="postgresql://HOST:PORT/NAME (default: WARPBED_DATABASE, or the dashboards' own)",
        )
        return action

    init = add("init", "create roles, database and tables (needs a superuser once)")
    init.add_argument("--admin", default="postgres", metavar="USER", help="the superuser (password from PGPASSFILE)")
    init.add_argument(
        "--passwords",
        type=Path,
        required=True,
        metavar="FILE",
        help="pgpass file with warpbed_owner, _writer and _reader; made with mode 0600 where it is missing",
    )
    add("migrate", "bring the tables to this version")
    load = add("load", "store the runs of a results folder, an experiment's or a run's")
    load.add_argument("path", type=Path)
    forget = add("forget", "remove runs from the database; their files stay")
    forget.add_argument("experiment")
    forget.add_argument("run", nargs="?")
    prune = add("prune", "remove old runs from the database; their files stay")
    prune.add_argument("--keep-days", type=int, required=True, metavar="N")
    add_format(add("status", "show the database's contents"))
    ask = add("ask", "answer one of the named questions, from the database or from files")
    ask.add_argument("question", nargs="?", help="without one: list the questions")
    ask.add_argument(
        "--results", type=Path, metavar="DIR", help="answer from the Parquet files below DIR, without a server"
    )
    ask.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the question")
    add_format(ask)


def main(options: argparse.Namespace) -> int:
    # what needs libpq is loaded only here
    from store import actions

    if options.action == "load":
        return actions.load(options.path, options.database, sys.stdout)
    if options.action == "init":
        return actions.init(options.database, options.admin, options.passwords)
    if options.action == "migrate":
        return actions.migrate(options.database)
    if options.action == "forget":
        return actions.forget(options.database, options.experiment, options.run)
    if options.action == "prune":
        return actions.prune(options.database, options.keep_days)
    if options.action == "status":
        return actions.status(options.database, options.format)
    parameters = {}
    for pair in options.set:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--set {pair!r}: write NAME=VALUE")
        parameters[name] = value
    if options.question and not options.database and not options.results and not _known():
        options.results = ROOT / "results"
    return actions.ask(options.question, parameters, options.database, options.results, options.format)


def _known() -> bool:
    from store.connect import database_url
    from store.errors import StoreUsageError

    try:
        return bool(database_url())
    except StoreUsageError:
        return False
