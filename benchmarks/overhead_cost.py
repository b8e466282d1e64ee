# SPDX-License-Identifier: Apache-2.0
"""What hosts that take time cost: CPU seconds of a run with `overhead: auto` and with `none`, in turn, guest included.

    ./warpbed exec python -m benchmarks.overhead_cost [--times N] [--only NAME]

Times of pairs, and the median of their ratios: other programs on the machine change both of a pair.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from base.paths import ROOT
from benchmarks.paired import EXPERIMENT, RUNS, cpu_s


def seconds(case: str, overhead: str, folder: Path, number: int) -> float:
    file = folder / f"{overhead}.yml"
    file.write_text(EXPERIMENT.format(**RUNS[case]) + f"hosts: {{overhead: {overhead}}}\n")
    return cpu_s(["run", str(file), "--jobs=1", f"--results={folder / f'{overhead}-{number}'}"], ROOT)


def main() -> None:
    parser = argparse.ArgumentParser(description="What a run with overhead costs over one without.")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    options = parser.parse_args()
    for case in (case for case in RUNS if options.only in case):
        ratios = []
        with tempfile.TemporaryDirectory(prefix="warpbed-overhead-", dir="/var/tmp") as folder:
            for number in range(options.times):
                # who comes first changes from pair to pair
                order = ("none", "auto") if number % 2 else ("auto", "none")
                took = {overhead: seconds(case, overhead, Path(folder), number) for overhead in order}
                ratios.append(took["auto"] / took["none"])
                print(f"{case:20} none {took['none']:7.2f} auto {took['auto']:7.2f} ratio {ratios[-1]:.3f}", flush=True)
        print(f"{case:20} median of {len(ratios)} ratios: {statistics.median(ratios):.3f}", flush=True)


if __name__ == "__main__":
    main()
