# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands take."""

from __future__ import annotations

import argparse
from pathlib import Path

from base.paths import ROOT
from hosts.registry import HOST_KINDS


def results(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--results", type=Path, default=ROOT / "results", metavar="DIR", help="where results are (default: results/)"
    )


def host(command: argparse.ArgumentParser) -> None:
    command.add_argument("--host", choices=list(HOST_KINDS), default=None, help="kind of host (default: the file's)")


def selection(command: argparse.ArgumentParser) -> None:
    """An experiment, its host, and which of its runs."""
    command.add_argument("experiment", type=Path, help="experiment file")
    host(command)
    command.add_argument("--jobs", type=int, default=0, metavar="N", help="runs in parallel (default: one per CPU)")
    command.add_argument("--only", default="", metavar="EXPR", help="only these runs, e.g. cca=medley,buffer=50p|250p")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="this seed instead of the file's")
    results(command)
