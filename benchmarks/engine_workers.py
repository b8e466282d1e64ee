# SPDX-License-Identifier: Apache-2.0
"""How much faster two workers are than one: whole commands, and the time in which runs are made.

    WARPBED_EXTRAS=dask ./warpbed exec python -m benchmarks.engine_workers --repeats 6

The quickstart's runs by `--engine dask` on processes of this machine, with one worker and with two, into folders that are removed.
Printed: seconds of the whole command, of them before the first run and after the last, what a run took on its worker, CPU time, and
the ratios. Runs that take longer beside another one are the machine's doing (memory, clock), and not the engine's.
"""

from __future__ import annotations

import argparse
import re
import resource
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from base.paths import ROOT
from benchmarks.command import environment, execute

DONE = re.compile(r"^\[\d+/\d+\] \S+: .* in ([0-9.]+) s ")


@dataclass(frozen=True)
class Taken:
    """Seconds of one command: all of it, before the first run began and after the last ended, each run's, and the CPU's."""

    whole_s: float
    before_s: float
    after_s: float
    run_s: float
    cpu_s: float

    @property
    def runs_s(self) -> float:
        return self.whole_s - self.before_s - self.after_s


def taken(file: Path, workers: int, folder: Path) -> Taken:
    """Execute the experiment's runs with so many workers."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun, first_s, last_s, each = time.monotonic(), 0.0, 0.0, list[float]()
    command = execute(file, folder / f"with-{workers}", "--engine", "dask", "--workers", str(workers))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment()) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if done := DONE.match(line):
                last_s = time.monotonic() - begun
                each.append(float(done[1]))
                first_s = first_s or last_s - each[0]
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    whole_s, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(whole_s, first_s, whole_s - last_s, statistics.mean(each), cpu_s)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the quickstart's runs with one worker and with two.")
    parser.add_argument("--repeats", type=int, default=2, help="seeds of each of the six combinations (2)")
    parser.add_argument("--duration", default="60s", help="of a run (60s)")
    asked = parser.parse_args()
    text = (ROOT / "experiments/quickstart.yml").read_text()
    text = re.sub(r"(?m)^repeats: .*$", f"repeats: {asked.repeats}", text)
    text = re.sub(r"(?m)^duration: .*$", f"duration: {asked.duration}", text)
    print("workers   whole s  before first  after last  runs s  a run s  CPU s")
    with tempfile.TemporaryDirectory(prefix="warpbed-workers-") as folder:
        file = Path(folder) / "quickstart.yml"
        file.write_text(text)
        times = [taken(file, workers, Path(folder)) for workers in (1, 2)]
    for workers, one in enumerate(times, 1):
        print(
            f"{workers:7}{one.whole_s:10.1f}{one.before_s:14.2f}{one.after_s:12.2f}{one.runs_s:8.1f}{one.run_s:9.2f}{one.cpu_s:7.1f}"
        )
    alone, both = times
    print(
        f"two beside one: {alone.whole_s / both.whole_s:.2f} times as fast, the runs alone {alone.runs_s / both.runs_s:.2f} times; "
        f"a run takes {both.run_s / alone.run_s:.2f} times as long beside another"
    )


if __name__ == "__main__":
    main()
