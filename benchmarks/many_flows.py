# SPDX-License-Identifier: Apache-2.0
"""How fast are runs with very many flows? Virtual seconds per wall second on one CPU, and the guest's memory.

    ./warpbed exec python -m benchmarks.many_flows [--only NAME] [--cpu N]

A thousand connections at once share 1 Gbit/s, and 200 short transfers begin in each second of a link of 100 Mbit/s. Nothing is
captured; sockets and queues are sampled as by default. Ends with 1 where a case misses its target.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import multiprocessing
from dataclasses import dataclass

from benchmarks.timed_run import timed_run
from hosts.virtual.kernel import find
from hosts.virtual.launch import GuestKernel

THOUSAND = (
    """\
warpbed: 1
name: thousand
title: A thousand connections at once
duration: 10s
topology: {name: dumbbell, params: {pairs: 10, rate: 1gbit, delay: 20ms, buffer: 5MB, access_rate: 10gbit}}
flows:
"""
    + "".join(
        f"  - {{name: f{pair}, cca: cubic, from: s{pair}, to: d{pair}, parallel: 100}}\n" for pair in range(1, 11)
    )
    + """\
captures: {at: none}
samplers: {tcp_probe: false}
"""
)
SHORT = """\
warpbed: 1
name: short
title: 200 short transfers in each second
duration: 60s
topology: {name: dumbbell, params: {pairs: 1, rate: 100mbit, delay: 10ms, buffer: 250KB}}
traffic:
  - {name: t1, kind: transfers, cca: cubic, from: s1, to: d1, size: 20KB, gap: 5ms}
captures: {at: none}
samplers: {tcp_probe: false}
"""


@dataclass(frozen=True)
class Case:
    """One measurement: the least virtual seconds per wall second, and the most MiB (None: shown only)."""

    name: str
    text: str
    speed: float
    memory_mib: float | None = None


CASES = (Case("1000 flows, 1 Gbit/s", THOUSAND, 1, 2048), Case("200 transfers a second", SHORT, 5))


def measure(case: Case, kernel: GuestKernel, cpu: int) -> tuple[float, float]:
    """Virtual seconds per wall second from the network's being up, and the guest's largest resident set, MiB.

    Raises RuntimeError where the guest did not finish the run.
    """
    with timed_run(case.name, case.text, kernel, cpu) as run:
        return run.plan.duration_s / run.run_s, run.memory_mib


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure runs with very many flows on the virtual host.")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--cpu", type=int, default=0)
    options = parser.parse_args()
    kernel, code = find("default"), 0
    spawn = multiprocessing.get_context("spawn")
    print(f"{'case':26} {'virtual s per s':>16} {'asked':>6} {'MiB':>6} {'at most':>8}")
    for case in CASES:
        if options.only not in case.name:
            continue
        with concurrent.futures.ProcessPoolExecutor(1, spawn) as pool:  # its children's memory is this case's
            speed, memory_mib = pool.submit(measure, case, kernel, options.cpu).result()
        most = "" if case.memory_mib is None else f"{case.memory_mib:g}"
        print(f"{case.name:26} {speed:16.2f} {case.speed:6g} {memory_mib:6.0f} {most:>8}", flush=True)
        if speed < case.speed or (case.memory_mib is not None and memory_mib > case.memory_mib):
            code = 1
    return code


if __name__ == "__main__":
    raise SystemExit(main())
