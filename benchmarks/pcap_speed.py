# SPDX-License-Identifier: Apache-2.0
"""collectors.pcap beside tcptrace and tshark on the same captures: packets/s, memory, and what a second core gives.

    ./warpbed exec python -m benchmarks.pcap_speed [--quick] [--huge] [--json FILE]

Captures of 1.2 million packets with 1 and 64 flows are generated (96 bytes per packet, as the testbed captures).
Every figure is the best of --repeats: the machine may be shared, and nothing makes a program faster than it is.
CPU time is given too, since it does not depend on the neighbours as much. --huge streams 10 GB of 10 000 flows
through a pipe and watches the memory.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from collectors.pcap import analyze, generate  # noqa: E402

PACKETS = 1_200_000
FLOWS = (1, 64)
TSHARK_FIELDS = ("tcp.analysis.retransmission", "tcp.analysis.ack_rtt", "tcp.analysis.bytes_in_flight")
TWO = "warpbed, 2 processes"
"""What the machine's two CPUs give when nothing is shared; they may be halves of one core."""
HUGE_PACKETS, HUGE_FLOWS = 10_000_000, 10_000


def cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def cpu_s(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def timed(run: Callable[[], object], who: int = resource.RUSAGE_SELF) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), cpu_s(who)
    run()
    return time.perf_counter() - wall, cpu_s(who) - cpu


def best(times: list[tuple[float, float]]) -> dict[str, float]:
    """The least of several runs."""
    walls, cpus = zip(*times, strict=True)
    return {"wall_s": min(walls), "cpu_s": min(cpus)}


def alone(place: tuple[Path, Path]) -> None:
    analyze(*place, threads=1)


def command(*arguments: str | Path) -> None:
    subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def one_file(path: Path, out: Path, packets: int, repeats: int) -> dict[str, dict[str, float]]:
    path.read_bytes()  # Into the page cache, for all alike.
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        places = [(path, out / str(n)) for n in range(2)]
        ours: dict[str, Callable[[], object]] = {
            "warpbed, 1 thread(s)": lambda: analyze(path, out / "0", threads=1),
            "warpbed, 2 thread(s)": lambda: analyze(path, out / "0", threads=2),
            "warpbed, without Parquet": lambda: analyze(path, threads=1),
            TWO: lambda: list(pool.map(alone, places)),
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in ours}
        list(pool.map(alone, places))  # The processes are there, and have the module.
        for _ in range(repeats):  # In turns, so that a machine that is faster for a while is so for all.
            for name, run in ours.items():
                shutil.rmtree(out, ignore_errors=True)  # A file that takes another's name is written to the disk first.
                times[name].append(timed(run))
    rows = {name: best(runs) for name, runs in times.items()}
    children = resource.RUSAGE_CHILDREN
    if shutil.which("tcptrace"):
        runs = [timed(lambda: command("tcptrace", "-n", "-l", "-r", path), children) for _ in range(min(repeats, 3))]
        rows["tcptrace -l -r"] = best(runs)
    if shutil.which("tshark"):
        fields = [argument for field in TSHARK_FIELDS for argument in ("-e", field)]
        rows["tshark, 3 fields"] = best(
            [timed(lambda: command("tshark", "-n", "-r", path, "-T", "fields", *fields), children)]
        )
    for name, row in rows.items():
        done = packets * (1 + (name == TWO))
        row["mpps"] = done / row["wall_s"] / 1e6
        row["mpps_per_cpu"] = (
            packets / row["cpu_s"] / 1e6 if name != TWO else math.nan
        )  # they are no children of a call
    return rows


def huge(out: Path) -> dict[str, float]:
    """10 GB of whole packets through a pipe, never on disk; `seconds` holds the time that making them takes."""
    pipe = out.parent / "pipe"
    os.mkfifo(pipe)
    feed = (
        "import sys; from collectors.pcap import generate\n"
        f"generate(sys.argv[1], flows={HUGE_FLOWS}, packets={HUGE_PACKETS}, snap=0, rate_bps=4_000_000_000)"
    )
    script = (
        "import json, re, sys; from collectors.pcap import analyze\n"
        "s = analyze(sys.argv[1], sys.argv[2])\n"
        "peak = int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 1024\n"
        "print(json.dumps({'packets': s.packets, 'flows': s.flows, 'gigabytes': s.bytes_read / 1e9,"
        " 'seconds': s.seconds, 'peak_mib': peak, 'forgotten_segments': s.forgotten_segments}))"
    )
    with subprocess.Popen([sys.executable, "-c", feed, pipe], cwd=ROOT) as feeder:
        try:
            completed = subprocess.run(
                [sys.executable, "-c", script, pipe, out], capture_output=True, text=True, check=True, cwd=ROOT
            )
        finally:
            feeder.kill()
    return dict(json.loads(completed.stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the packets, for CI: shows that it runs")
    parser.add_argument("--huge", action="store_true", help="10 GB of 10 000 flows too")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    packets = PACKETS // 10 if options.quick else PACKETS
    figures: dict[str, Any] = {"cpu": cpu_model(), "cpus": os.cpu_count(), "load": os.getloadavg(), "packets": packets}
    with tempfile.TemporaryDirectory() as folder:
        for flows in FLOWS:
            path = Path(folder) / f"{flows}.pcap"
            generate(path, flows=flows, packets=packets)
            figures[f"{flows} flows"] = rows = one_file(path, Path(folder) / "out", packets, options.repeats)
            print(
                f"{packets} packets, {flows} flow(s), {path.stat().st_size / 1e6:.0f} MB; load {os.getloadavg()[0]:.1f}"
            )
            for name, row in rows.items():
                print(f"  {name:26} {row['mpps']:8.3f} Mpackets/s wall {row['mpps_per_cpu']:8.3f} per CPU second")
            one, two = rows["warpbed, 1 thread(s)"], rows["warpbed, 2 thread(s)"]
            ceiling = rows[TWO]["mpps"] / one["mpps"]
            print(
                f"  two threads over one: {one['wall_s'] / two['wall_s']:.2f}; two processes that share nothing: {ceiling:.2f}"
            )
        if options.huge:
            figures["huge"] = row = huge(Path(folder) / "out")
            print("  ".join(f"{key} {value:.6g}" for key, value in row.items()))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
