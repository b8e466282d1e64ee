# SPDX-License-Identifier: Apache-2.0
"""What one run of each experiment that decides or explains an entry takes: wall seconds of its guest, and bytes that stay.

    ./warpbed exec python -m benchmarks.reproduction_cost [--only TEXT] [--jobs N] [--record]

On an idle machine. Of each experiment the first seed of the cell in the middle, by what passes its bottleneck, is run as a user runs
it, into a folder that is then removed. With --record the numbers go to docs/reproduction/speeds.json, by which `./warpbed reproduce
--list` says how long the missing runs take. The last lines: how much longer commands took than their guests, what all runs would take.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from base.paths import ROOT
from plan.model import Plan
from testbed.experiments import Prepared, prepare
from testbed.reproduction import costs
from testbed.reproduction.bindings import Bound, read
from testbed.reproduction.deciding import Decider
from testbed.runs import PlannedRun
from testbed.selection import BETWEEN, select

RECORD = ROOT / "docs/reproduction"


@dataclass(frozen=True)
class Sample:
    """A run to be timed: its file and what chooses it."""

    file: str
    only: str
    seed: int
    plan: Plan


def sample(bound: Bound) -> Sample:
    """The first seed of the cell in the middle."""
    prepared = prepare(bound.path)
    first: dict[str, tuple[PlannedRun, Plan]] = {}
    for run, plan in zip(prepared.runs, prepared.plans, strict=True):
        first.setdefault(repr(run.params), (run, plan))
    ordered = sorted(first.values(), key=lambda one: costs.gbit_of(one[1]))
    run, plan = ordered[len(ordered) // 2]
    return Sample(bound.file, _expression(prepared, run), run.seed, plan)


def _expression(prepared: Prepared, wanted: PlannedRun) -> str:
    """What `--only` takes for a run's cell; a value that it could not tell from two choices is left out.

    Raises ValueError where that leaves more than one cell.
    """
    parts = [f"{name}={value}" for name, value in wanted.params.items() if _is_plain(str(value))]
    expression = ",".join(parts)
    left = {repr(run.params) for run in select(list(prepared.runs), expression)}
    if left != {repr(wanted.params)}:
        raise ValueError(
            f"{prepared.document.file}: --only {expression} leaves {len(left)} cells; give their values names without | and comma"
        )
    return expression


def _is_plain(value: str) -> bool:
    return "|" not in value and not BETWEEN.search(value)


def measure(one: Sample) -> tuple[costs.Measured, float]:
    """What the run took, and the whole command's wall seconds.

    Raises CalledProcessError where the command fails.
    """
    with tempfile.TemporaryDirectory(prefix="warpbed-cost-", dir="/var/tmp") as folder:
        command = [str(ROOT / "warpbed"), "run", one.file, f"--seed={one.seed}", "--jobs=1", f"--results={folder}"]
        command += ["--only", one.only] if one.only else []
        began = time.monotonic()
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        took_s = time.monotonic() - began
        (run,) = Path(folder).glob("*/*/run.json")
        timing = json.loads(run.read_text())["timing"]
        kept = sum(path.lstat().st_size for path in run.parent.rglob("*") if path.is_file() and not path.is_symlink())
    gbit = costs.gbit_of(one.plan)
    return costs.Measured(one.plan.duration_s, round(gbit, 4), timing["wall_s"], kept), took_s


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Time one run of each experiment of the theses.")
    parser.add_argument("--only", default="", metavar="TEXT", help="files whose name contains this")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--record", action="store_true", help=f"write {costs.SPEEDS} beside the recorded runs")
    options = parser.parse_args(arguments)
    bindings = read()
    bounds = [bound for bound in bindings.experiments if options.only in bound.file]
    files = {bound.file for bound in bindings.experiments}
    measured = {file: one for file, one in costs.read(RECORD).items() if file in files}
    beside, failed = [], 0
    print(f"{'virtual s':>10} {'Gbit':>8} {'guest, s':>9} {'command, s':>10} {'Gbit a s':>9} {'MB':>7}  experiment")
    with ThreadPoolExecutor(options.jobs) as pool:
        began = [(bound, pool.submit(measure, sample(bound))) for bound in bounds]
        for bound, waiting in began:
            try:
                one, took_s = waiting.result()
            except subprocess.CalledProcessError as error:
                print(f"{bound.file}: {error.stderr.decode(errors='replace')[-500:]}", file=sys.stderr)
                failed += 1
                continue
            measured[bound.file] = one
            beside.append(took_s - one.wall_s)
            times = f"{one.virtual_s:10.0f} {one.gbit:8.2f} {one.wall_s:9.2f} {took_s:10.2f} {one.speed:9.3f}"
            print(f"{times} {one.kept_bytes / 1e6:7.2f}  {bound.file}", flush=True)
            if options.record:
                costs.write(RECORD, measured)
    if beside:
        print(f"commands took {sum(beside) / len(beside):.2f} s more than their guests in the mean")
    everything = Decider(bindings, Path("nowhere").resolve(), {}, measured).cost(bindings.experiments)
    print(f"all experiments that decide or explain: {everything.words(2)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
