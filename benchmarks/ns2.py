# SPDX-License-Identifier: Apache-2.0
"""The cross traffic of Yu 2009 Fig 4-33 in ns-2, the thesis' own simulator, beside the windows that the thesis prints.

    ./warpbed exec python -m benchmarks.ns2 [--seeds N] [--page]

As root: apt-get install ns2 (Debian 12 has 2.35; the thesis used 2.28). What the thesis leaves open (the first threshold, the place of the
fifth pair, that hosts take no time) is right where ns-2 then has the thesis' windows after 500 s. No run of Warpbed takes part.
Some minutes per rate and seed. --page writes the table of docs/reproduction.md.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from base.files import replace_text
from base.paths import ROOT
from schema.catalogue import catalogues

SCRIPT = Path(__file__).parent / "ns2_parking_lot.tcl"
PAGE = ROOT / "docs/reproduction.md"
MARK = re.compile(r"(<!-- measured: ns-2 -->\n).*?(<!-- end -->)", re.DOTALL)
ENTRY = "yu2009-claim4.6.3"
RATES_MBPS = (25, 50, 100)
FIRST_SSTHRESH, UNTIL_S = 32, 500
OVERHEADS_S = {"none": 0.0, "a packet's time at 25 Mbit/s": 0.000333}
"""What a host takes for a packet: a random time up to this one. The thesis names none, and ns-2's default is none."""


def window(rate_mbps: int, seed: int, overhead_s: float, until_s: float = UNTIL_S) -> float:
    """Mean window of the five connections over the whole path, packets. Raises CalledProcessError where ns-2 fails."""
    arguments = [str(value) for value in (rate_mbps, seed, FIRST_SSTHRESH, overhead_s, until_s)]
    done = subprocess.run(["ns", str(SCRIPT), *arguments], check=True, capture_output=True, text=True)
    return float(done.stdout)


def published() -> dict[int, float]:
    """Mbit/s → the window that the thesis prints, packets."""
    entry = next(entry for entry in catalogues()["yu2009"].entries if entry.id == ENTRY)
    numbers = entry.published.numbers
    assert isinstance(numbers, list)
    return {int(rate): float(value) for rate, value in numbers[0]["rows"]}


def table(seeds: int, rates: Sequence[int] = RATES_MBPS, until_s: float = UNTIL_S, jobs: int = 2) -> Iterator[str]:
    """Markdown, a row per rate: the thesis' window, and ns-2's with each overhead as the mean over seeds and the least and largest."""
    printed = published()
    yield f"| Mbit/s | thesis | {' | '.join(f'ns-2, overhead {name}' for name in OVERHEADS_S)} |"
    yield "|---" * (2 + len(OVERHEADS_S)) + "|"
    with ThreadPoolExecutor(jobs) as pool:
        asked = {
            (rate, name): [pool.submit(window, rate, seed, overhead_s, until_s) for seed in range(1, seeds + 1)]
            for rate in rates
            for name, overhead_s in OVERHEADS_S.items()
        }
        for rate in rates:
            found = [[one.result() for one in asked[rate, name]] for name in OVERHEADS_S]
            cells = [f"{statistics.fmean(w):.1f} ({min(w):.1f} to {max(w):.1f})" for w in found]
            yield f"| {rate} | {printed[rate]} | {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ns2", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--page", action="store_true", help="write the table of docs/reproduction.md")
    options = parser.parse_args()
    if shutil.which("ns") is None:
        parser.error("ns-2 is not installed. As root: apt-get install --no-install-recommends ns2")
    lines = []
    for line in table(options.seeds, jobs=options.jobs):
        print(line, flush=True)
        lines.append(line)
    if options.page:
        block = "\n".join(lines)
        replace_text(PAGE, MARK.sub(lambda match: f"{match[1]}{block}\n{match[2]}", PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
