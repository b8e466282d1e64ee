# SPDX-License-Identifier: Apache-2.0
"""Settings of Yu 2009 in ns-2, the thesis' own simulator, beside what the thesis prints.

    ./warpbed exec python -m benchmarks.ns2 [windows | held | pairs | transfers | starts | graphs] [--seeds N] [--record] [--page]

As root: apt-get install ns2 (Debian 12 has 2.35; the thesis used 2.28). No run of Warpbed takes part: what the thesis leaves open is right
where ns-2 then has the thesis' numbers.

  windows    the cross traffic of Fig 4-33 when the connection in question begins, at 500 s; minutes per rate and seed
  held       what a connection loses there whose slow start ends at a threshold that Table 4-1 prints (Figs 4-34 to 4-36)
  pairs      what SPM estimates there from packet pairs, for each reading of what it does where no gap qualifies (Table 4-1)
  transfers  Reno's connections of Figs 2-2 and 2-3 at 16 Mbit/s, for delays of the access links, which are lost with Fig 2-2
  starts     what LISS, ISS and JS deliver there in all, over Reno, at 20 Mbit/s (Figs 2-3B, 2-5B and 2-8B)
  graphs     what MISS and JS deliver on random graphs, over Reno (Figs 2-11 to 2-16)

--record keeps what ns-2 printed in docs/reproduction/ns2.json, by the script and its arguments, and does not ask again for what is
there; what a changed script has printed goes. analysis/models/yu2009_ns2.py shows with it which contradictions are ns-2's, too.
--page writes the tables of docs/reproduction.md.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from analysis.models import simulator, yu2009_graphs, yu2009_spm
from analysis.models.yu2009_ns2 import ACCESS_MS as STARTS_ACCESS_MS
from analysis.models.yu2009_ns2 import CROSS_SSTHRESH as FIRST_SSTHRESH
from analysis.models.yu2009_ns2 import GROWTH_S as UNTIL_S
from analysis.models.yu2009_ns2 import HELD, HELD_HOSTS_S, HOSTS_S, IN_S, STAR_UNTIL_S, STARTS_MBPS
from benchmarks import ns2_graphs
from benchmarks.recorder import Ask, Recorder
from benchmarks.reproduction_page import show
from schema.catalogue import catalogues

PARKING_LOT, STAR, PAIRS, GRAPH = (
    Path(__file__).parent / f"ns2_{name}.tcl" for name in ("parking_lot", "star", "pairs", "graph")
)
SCRIPTS = {PARKING_LOT: (), STAR: (), PAIRS: (PARKING_LOT,), GRAPH: ()}
"""Each with the scripts that it reads."""
ENTRY, TABLE = "yu2009-claim4.6.3", "yu2009-tab4.1"
RATES_MBPS = (25, 50)
"""Where connections lose packets within that time. A run at more takes minutes, for what 500 s without a loss add."""
OVERHEAD_S = HELD_HOSTS_S[1]
"""A host takes a random time up to this one for a packet: what one takes at 25 Mbit/s. The thesis names none, and ns-2 has none."""
STAR_MBPS, STAR_OVERHEAD_S = 16, HOSTS_S[1]
ACCESS_MS = (1, 5, 10, 15, 20, 25, 30, 35, 40)
PAIRS_MBPS = (25, 50, 100)
STARTS, SHAPES = ("liss", "iss", "miss", "js"), (1.35, 1.05)


def asked(script: Path, *arguments: float | str) -> list[float]:
    """The numbers that ns-2 prints. Raises CalledProcessError where it fails."""
    network = ns2_graphs.lines(int(arguments[0]), int(arguments[1])) if script == GRAPH else ""
    done = subprocess.run(
        ["ns", str(script), *map(str, arguments)], input=network, check=True, capture_output=True, text=True
    )
    return [float(word) for word in done.stdout.split()]


def window(rate_mbps: int, seed: int, overhead_s: float, until_s: float = UNTIL_S, ask: Ask = asked) -> float:
    """Mean window of the five connections over the whole path, packets."""
    return ask(PARKING_LOT, rate_mbps, seed, FIRST_SSTHRESH, overhead_s, until_s)[0]


def printed_rows(name: str) -> list[dict[str, float]]:
    """The first table of an entry's numbers, a dictionary of its columns per row."""
    entry = next(entry for entry in catalogues()["yu2009"].entries if entry.id == name)
    numbers = entry.published.numbers
    assert isinstance(numbers, list)
    return [dict(zip(numbers[0]["columns"], map(float, row), strict=True)) for row in numbers[0]["rows"]]


def published() -> dict[int, float]:
    """Mbit/s → the window that the thesis prints, packets."""
    return {int(row["Bandwidth_mbps"]): row["cwnd"] for row in printed_rows(ENTRY)}


def windows(ask: Ask, seeds: int, jobs: int, rates: Sequence[int] = RATES_MBPS) -> Iterator[str]:
    """Markdown, a row per rate: the thesis' window, and ns-2's as the mean over seeds with the least and the largest."""
    printed = published()
    yield "| Mbit/s | thesis | ns-2 | ns-2, hosts take up to 0.333 ms for a packet |"
    yield "|---|---|---|---|"
    with ThreadPoolExecutor(jobs) as pool:
        runs = {
            (rate, overhead_s): [pool.submit(window, rate, seed, overhead_s, ask=ask) for seed in range(1, seeds + 1)]
            for rate in rates
            for overhead_s in (0.0, OVERHEAD_S)
        }
        for rate in rates:
            found = [[run.result() for run in runs[rate, overhead_s]] for overhead_s in (0.0, OVERHEAD_S)]
            cells = [f"{statistics.fmean(w):.1f} ({min(w):.1f} to {max(w):.1f})" for w in found]
            yield f"| {rate} | {printed[rate]} | {' | '.join(cells)} |"


def held(ask: Ask, seeds: int, jobs: int) -> Iterator[str]:
    """Markdown, a row per rate and threshold: runs in which the connection sends packets again in its first 15 s, and how many."""
    yield "| Mbit/s | threshold | packets | lossy runs | sent again | lossy runs, hosts take up to 0.333 ms for a packet | sent again |"
    yield "|---|---|---|---|---|---|---|"
    rows = [(rate, name, packets) for rate, of_rate in HELD.items() for name, packets in of_rate.items()]
    with ThreadPoolExecutor(jobs) as pool:
        runs = {
            (row, overhead_s): [
                pool.submit(ask, PARKING_LOT, row[0], seed, FIRST_SSTHRESH, overhead_s, UNTIL_S, row[2], IN_S)
                for seed in range(1, seeds + 1)
            ]
            for row in rows
            for overhead_s in (0.0, OVERHEAD_S)
        }
        for row in rows:
            cells = []
            for overhead_s in (0.0, OVERHEAD_S):
                sent = [run.result()[1] for run in runs[row, overhead_s]]
                cells += [
                    f"{sum(packets > 0 for packets in sent)} of {len(sent)}",
                    f"{min(sent):.0f} to {max(sent):.0f}",
                ]
            yield f"| {' | '.join(map(str, row))} | {' | '.join(cells)} |"


def pairs(ask: Ask, seeds: int, jobs: int, rates: Sequence[int] = PAIRS_MBPS) -> Iterator[str]:
    """Markdown, a row per rate: SPM's mean ± deviation in Table 4-1, and those of each reading over all starts."""
    columns = [
        f"{words}{hosts}" for hosts in ("", ", hosts take up to 0.333 ms") for words in yu2009_spm.READINGS.values()
    ]
    yield f"| Mbit/s | thesis | {' | '.join(columns)} |"
    yield f"|---|---{'|---' * len(columns)}|"
    with ThreadPoolExecutor(jobs) as pool:
        runs = {
            (rate, hosts_s): [
                pool.submit(ask, PAIRS, *yu2009_spm.asked(rate, seed, hosts_s)[1:]) for seed in range(1, seeds + 1)
            ]
            for rate in rates
            for hosts_s in HELD_HOSTS_S
        }
        for row in printed_rows(TABLE):
            rate, cells = int(row["Bandwidth_mbps"]), [f"{row['SPM_avg']} ± {row['SPM_dev']}"]
            if rate not in rates:
                continue
            for hosts_s in HELD_HOSTS_S:
                numbers = [run.result() for run in runs[rate, hosts_s]]
                for reading in yu2009_spm.READINGS:
                    found = [packets for run in numbers for packets in yu2009_spm.estimates(run, reading)]
                    cells.append(f"{statistics.fmean(found):.0f} ± {statistics.stdev(found):.0f}")
            yield f"| {rate} | {' | '.join(cells)} |"


def transfers(ask: Ask, seeds: int, jobs: int, delays_ms: Sequence[int] = ACCESS_MS) -> Iterator[str]:
    """Markdown, a row per delay: packets of all connections in their first 5 s, and in all; means over seeds."""
    yield "| access links | first 5 s | in all | first 5 s, hosts take up to 0.52 ms for a packet | in all |"
    yield "|---|---|---|---|---|"
    overheads = (0.0, STAR_OVERHEAD_S)
    with ThreadPoolExecutor(jobs) as pool:
        runs = {
            (delay, overhead_s): [
                pool.submit(ask, STAR, STAR_MBPS, seed, delay, overhead_s, STAR_UNTIL_S, SHAPES[0], "reno")
                for seed in range(1, seeds + 1)
            ]
            for delay in delays_ms
            for overhead_s in overheads
        }
        for delay in delays_ms:
            cells = []
            for overhead_s in overheads:
                counts = [run.result()[1:] for run in runs[delay, overhead_s]]
                cells += [f"{statistics.fmean(column):.0f}" for column in zip(*counts, strict=True)]
            yield f"| {delay} ms | {' | '.join(cells)} |"


def starts(ask: Ask, seeds: int, jobs: int, delays_ms: Sequence[int] = STARTS_ACCESS_MS) -> Iterator[str]:
    """Markdown, a row per shape and delay: each start's total over Reno's with the same arrivals; least and largest of the seeds."""
    overheads = (0.0, STAR_OVERHEAD_S)
    names = [kind.upper() for kind in STARTS]
    yield f"| shape | access links | {' | '.join([*names, *(f'{name}, hosts take up to 0.52 ms' for name in names)])} |"
    yield f"|---|---{'|---' * len(STARTS) * len(overheads)}|"
    rows = [(shape, delay) for shape in SHAPES for delay in delays_ms]
    with ThreadPoolExecutor(jobs) as pool:
        runs = {
            (row, overhead_s, kind): [
                pool.submit(ask, STAR, STARTS_MBPS, seed, row[1], overhead_s, STAR_UNTIL_S, row[0], kind)
                for seed in range(1, seeds + 1)
            ]
            for row in rows
            for overhead_s in overheads
            for kind in ("reno", *STARTS)
        }
        for row in rows:
            cells = []
            for overhead_s in overheads:
                reno, *others = ([run.result()[2] for run in runs[row, overhead_s, kind]] for kind in ("reno", *STARTS))
                for other in others:
                    ratios = [start / plain for start, plain in zip(other, reno, strict=True)]
                    cells.append(f"{min(ratios):.3f} to {max(ratios):.3f}")
            yield f"| {row[0]} | {row[1]} ms | {' | '.join(cells)} |"


def graphs(ask: Ask, seeds: int, jobs: int) -> Iterator[str]:
    """Markdown, a row per size: each start's packets of the first 5 s, and in all, over Reno's; mean, least and largest of the graphs."""
    names = [kind.upper() for kind in yu2009_graphs.STARTS]
    yield f"| nodes | length | {' | '.join(f'{name}, first 5 s | {name}, in all' for name in names)} |"
    yield f"|---|---{'|---' * 2 * len(names)}|"
    with ThreadPoolExecutor(jobs) as pool:
        runs = {
            (nodes, kind): [
                pool.submit(ask, GRAPH, *yu2009_graphs.asked(nodes, graph, kind)[1:]) for graph in range(1, seeds + 1)
            ]
            for nodes in yu2009_graphs.UNTIL_S
            for kind in ("reno", *yu2009_graphs.STARTS)
        }
        for nodes, length_s in yu2009_graphs.UNTIL_S.items():
            reno = [run.result() for run in runs[nodes, "reno"]]
            cells = []
            for kind in yu2009_graphs.STARTS:
                start = [run.result() for run in runs[nodes, kind]]
                for what in (yu2009_graphs.EARLY, yu2009_graphs.WHOLE):
                    ratios = [one[what] / plain[what] for one, plain in zip(start, reno, strict=True)]
                    cells.append(f"{statistics.fmean(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
            yield f"| {nodes} | {length_s} s | {' | '.join(cells)} |"


TABLES: dict[str, Callable[[Ask, int, int], Iterator[str]]] = {
    "windows": windows,
    "held": held,
    "pairs": pairs,
    "transfers": transfers,
    "starts": starts,
    "graphs": graphs,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ns2", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("table", nargs="?", choices=TABLES, help="one of them (default: all)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--record", action="store_true", help="keep what ns-2 printed, and do not ask again for what is kept"
    )
    parser.add_argument("--page", action="store_true", help="write the tables of docs/reproduction.md")
    options = parser.parse_args()
    if shutil.which("ns") is None:
        parser.error("ns-2 is not installed. As root: apt-get install --no-install-recommends ns2")
    ask = Recorder(simulator.NS2, SCRIPTS, asked) if options.record else asked
    for name in [options.table] if options.table else TABLES:
        show(f"ns-2 {name}", TABLES[name](ask, options.seeds, options.jobs), is_written=options.page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
