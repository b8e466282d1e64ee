# SPDX-License-Identifier: Apache-2.0
"""How long do large networks take to start, and long or wide paths to run? Wall seconds on one CPU of the virtual host.

    ./warpbed exec python -m benchmarks.large_networks [--only NAME] [--cpu N]

`up` is the wall time from the start of the guest until the network stands, its settings are applied and recorded, and a first
echo has crossed it; `all` that of the whole run; memory is the guest's largest resident set.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from testbed.experiments import prepare
from testbed.virtual.kernel import find
from testbed.virtual.launch import GuestKernel, execute

EXPERIMENT = """\
warpbed: 1
name: large
title: Large networks and paths
duration: {duration}s
topology: {topology}
flows:
  - {{name: f1, cca: {cca}, from: {source}, to: {destination}}}
captures: {{at: none}}
samplers: {{tcp_probe: false, sockets: 1s, queues: off}}
"""


@dataclass(frozen=True)
class Case:
    """One measurement; the most wall seconds until the network is up, and of all (None: shown only)."""

    name: str
    topology: str
    source: str
    destination: str
    duration_s: int
    cca: str = "cubic"
    up_s: float | None = None
    all_s: float | None = None


CASES = (
    Case("200 nodes", "{name: transit_stub}", "t1a1", "t8c8", 2, up_s=25),
    Case("600 nodes", "{name: transit_stub, params: {nodes: 600}}", "t1a1", "t24c8", 2, up_s=90),
    Case(
        "10 Gbit/s, 200 ms", "{name: line, params: {rate: 10gbit, delay: 100ms, buffer: 250MB}}", "s1", "d1", 8,
        "{name: cubic, params: {hystart: 0}}",
    ),
    Case("1000 s of GEO", "{name: satellite, params: {loss: 0%}}", "s1", "d1", 1000, all_s=60),
)  # fmt: skip


def measure(case: Case, kernel: GuestKernel, cpu: int) -> dict[str, float]:
    """Execute one case.

    Raises RuntimeError where the guest did not finish it.
    """
    with tempfile.TemporaryDirectory(prefix="warpbed-large-") as folder:
        file = Path(folder) / "large.yml"
        file.write_text(
            EXPERIMENT.format(
                duration=case.duration_s, topology=case.topology, cca=case.cca, source=case.source,
                destination=case.destination,
            )
        )  # fmt: skip
        plan = prepare(file).plans[0]
        raw = Path(folder) / "raw"
        raw.mkdir()
        marks: list[float] = []
        started = time.monotonic()
        outcome = execute(kernel, plan, raw, cpu, 1, lambda _: marks.append(time.monotonic()), lambda: False)
        if outcome.error is not None:
            raise RuntimeError(f"{case.name}: {outcome.error}")
        received = json.loads((raw / "f1.server.json").read_text())["end"]["sum_received"]["bytes"]
        return {
            "up_s": marks[0] - started,
            "all_s": outcome.wall_s,
            "goodput_mbps": received * 8e-6 / case.duration_s,
            "memory_mib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure large networks and paths on the virtual host.")
    parser.add_argument("--only", help="cases whose name contains this")
    parser.add_argument("--cpu", type=int, default=0)
    options = parser.parse_args()
    kernel = find("default")
    print(f"{'case':20} {'up s':>8} {'target':>7} {'all s':>8} {'target':>7} {'goodput Mbit/s':>15} {'memory MiB':>11}")
    for case in CASES:
        if options.only and options.only not in case.name:
            continue
        found = measure(case, kernel, options.cpu)
        targets = ["" if target is None else f"{target:g}" for target in (case.up_s, case.all_s)]
        print(
            f"{case.name:20} {found['up_s']:8.1f} {targets[0]:>7} {found['all_s']:8.1f} {targets[1]:>7} "
            f"{found['goodput_mbps']:15.1f} {found['memory_mib']:11.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
