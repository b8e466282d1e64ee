# SPDX-License-Identifier: Apache-2.0
"""What users' commands cost in this checkout and in another one: CPU seconds, guest included, each command in both in turn.

    ./warpbed exec python -m benchmarks.paired OTHER_CHECKOUT [--times N] [--only NAME]

The other one is a worktree of an older commit (`git worktree add --detach ../older COMMIT`), and both have built what they need:
run an experiment in each before. CPU time is user and system time of all processes that the command waits for. It depends less on
what else the machine does than the clock's time, and more than nothing: times in pairs, the median of several, and their ratio.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from base.paths import ROOT

EXPERIMENT = """\
warpbed: 1
name: paired
title: A default run
duration: {duration}
topology: {{name: line, params: {{rate: {rate}, delay: 25ms, buffer: {buffer}}}}}
flows:
  - {{name: f1, cca: cubic, from: s1, to: d1}}
{more}"""
SECOND = "  - {name: f2, cca: cubic, from: s1, to: d1}\n"
RUNS = {
    "5 s at 10 Mbit/s": {"duration": "5s", "rate": "10mbit", "buffer": "125KB"},
    "60 s at 100 Mbit/s": {"duration": "60s", "rate": "100mbit", "buffer": "1250KB"},
    "11 s at 1 Gbit/s": {"duration": "11s", "rate": "1gbit", "buffer": "12500KB"},
    "150 s at 0.8 Mbit/s, two flows": {"duration": "150s", "rate": "800kbit", "buffer": "15p", "more": SECOND},
}
SMALLEST = next(iter(RUNS))
NOTHING, QUICKSTART = "nothing to do", "quickstart"
CASES = ("check", NOTHING, "collect", *RUNS, QUICKSTART)
QUICKSTART_FILE = "experiments/quickstart.yml"
"""Each checkout runs its own: twelve runs of 60 s on two cores."""


def cpu_s(command: Sequence[str], checkout: Path) -> float:
    """CPU seconds of `./warpbed COMMAND` in a checkout.

    Raises CalledProcessError where it does not end with 0.
    """
    before = _children_s()
    subprocess.run([checkout / "warpbed", *command], cwd=checkout, check=True, capture_output=True)
    return _children_s() - before


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command_of(case: str, folder: Path, number: int, existing: Path) -> list[str]:
    """The command of a case; number: of the repetition, which has results of its own. existing: results that are there already."""
    if case == "check":
        return ["check", QUICKSTART_FILE]
    if case == "collect":
        (capture,) = existing.glob("paired/*/raw/s1-eth0.pcap")
        return ["collect", str(capture), "--out", str(folder / f"collected-{number}")]
    results = existing if case == NOTHING else folder / f"results-{number}"
    if case == QUICKSTART:
        return ["run", QUICKSTART_FILE, f"--results={results}"]
    return ["run", str(experiment(SMALLEST if case == NOTHING else case, folder)), "--jobs=1", f"--results={results}"]


def experiment(name: str, folder: Path) -> Path:
    file = folder / f"{name.replace('/', ' ').replace(' ', '-')}.yml"
    file.write_text(EXPERIMENT.format(**{"more": "", **RUNS[name]}))
    return file


def measure(case: str, checkouts: Mapping[str, Path], times: int, folder: Path) -> dict[str, list[float]]:
    """CPU seconds of a case in each checkout, which take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in checkouts}
    for name, checkout in checkouts.items():
        (folder / name).mkdir(exist_ok=True)
        if case in (NOTHING, "collect"):
            cpu_s(command_of(SMALLEST, folder / name, 0, folder), checkout)
    for number in range(1, times + 1):
        for name, checkout in checkouts.items():
            here = folder / name
            seconds[name].append(cpu_s(command_of(case, here, number, here / "results-0"), checkout))
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare what commands cost in two checkouts.")
    parser.add_argument("other", type=Path, help="the checkout to compare with")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    options = parser.parse_args()
    checkouts = {"here": ROOT, "other": options.other.resolve()}
    print(f"{'case':30} {'other, CPU s':>13} {'here':>8} {'ratio':>7}")
    for case in (case for case in CASES if options.only in case):
        with tempfile.TemporaryDirectory(prefix="warpbed-paired-", dir="/var/tmp") as folder:
            seconds = measure(case, checkouts, options.times, Path(folder))
        other, here = (statistics.median(seconds[name]) for name in ("other", "here"))
        print(f"{case:30} {other:13.2f} {here:8.2f} {here / other:7.2f}", flush=True)


if __name__ == "__main__":
    main()
