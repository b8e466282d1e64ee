# SPDX-License-Identifier: Apache-2.0
"""NewReno and Westwood+ on Afifi 2014's lossy paths in ns-3, the thesis' own simulator, beside what the thesis prints.

    ./warpbed exec python -m benchmarks.ns3_lossy [--seeds N] [--record] [--page]

As root: apt-get install libns3-dev g++ pkg-config (Debian 12 has 3.37). No run of Warpbed takes part. --record keeps what ns-3 printed
in docs/reproduction/ns3.json, by the program and its arguments, and does not ask again for what is there; what a changed program has
printed goes. analysis/models/afifi2014_ns3.py shows with it which contradictions are ns-3's, too. --page writes the table of
docs/reproduction.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from analysis.models import simulator
from analysis.models.afifi2014_ns3 import LARGEST, NAMES, PROGRAM, SECONDS, SEEDS, SEQUENCE, SETTINGS, printed
from benchmarks import ns3
from benchmarks.recorder import Ask, Recorder
from benchmarks.reproduction_page import show
from schema.catalogue import catalogues

SOURCE = Path(__file__).with_name(PROGRAM)
TABLE = "ns-3 lossy"
ENTRIES = {"one": ("afifi2014-fig15", "afifi2014-fig13"), "four": ("afifi2014-fig29", "afifi2014-fig27")}
"""Topology → where the thesis prints the sequence numbers, and the windows."""


def lines(ask: Ask, seeds: int, jobs: int) -> Iterator[str]:
    """Markdown, a row per topology and algorithm: the thesis' numbers, and ns-3's as the mean over seeds with the least and the largest."""
    yield "| topology | algorithm | highest sequence number, thesis | ns-3 | largest window, thesis | ns-3, after the first loss |"
    yield "|---|---|---|---|---|---|"
    entries = {entry.id: entry for entry in catalogues()["afifi2014"].entries}
    with ThreadPoolExecutor(jobs) as pool:
        runs = {
            (topology, algorithm): [
                pool.submit(ask, SOURCE, algorithm, *setting, seed, SECONDS) for seed in range(1, seeds + 1)
            ]
            for topology, setting in SETTINGS.items()
            for algorithm in NAMES
        }
        for (topology, algorithm), asked in runs.items():
            cells = []
            for entry, what in zip(ENTRIES[topology], (SEQUENCE, LARGEST), strict=True):
                found = [run.result()[what] for run in asked]
                cells += [
                    f"{printed(entries[entry])[NAMES[algorithm]]:.0f}",
                    f"{statistics.fmean(found):.0f} ({min(found):.0f} to {max(found):.0f})",
                ]
            yield f"| {topology} | {NAMES[algorithm]} | {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ns3_lossy", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--record", action="store_true", help="keep what ns-3 printed, and do not ask again for what is kept"
    )
    parser.add_argument("--page", action="store_true", help="write the table of docs/reproduction.md")
    options = parser.parse_args()
    if not ns3.is_there():
        parser.error(f"ns-3 is not installed. {ns3.REMEDY}")
    with tempfile.TemporaryDirectory(prefix="warpbed-ns3-") as folder:
        ask: Ask = ns3.Program(SOURCE, Path(folder))
        if options.record:
            ask = Recorder(simulator.NS3, {SOURCE: ()}, ask)
        show(TABLE, lines(ask, options.seeds, options.jobs), is_written=options.page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
