# SPDX-License-Identifier: Apache-2.0
"""How long do large networks take to start, and long or wide paths to run? Wall seconds on one CPU of the virtual host.

    ./warpbed exec python -m benchmarks.large_networks [--only NAME] [--cpu N] [--twice]

`up` is the wall time from the start of the guest until the network stands, its settings are applied and recorded, and a first
echo has crossed it; `all` that of the whole run; memory is the guest's largest resident set. `used` is the share of the
bottleneck's rate that was sent in the run's last seconds; `limited` the time in which a window or a send buffer held the
flow (TCP_INFO and the wire), or `memory` where TCP lacked some. With --twice each case runs again and must give the same
packets and samples, bit for bit. Ends with 1 where a flow was limited, a verdict is not valid, or two runs differ.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import multiprocessing
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from analysis.verdict import Evidence, judge
from benchmarks.timed_run import timed_run
from collectors.collect import collect
from hosts.virtual.kernel import find
from hosts.virtual.launch import GuestKernel
from network.model import address_plan
from plan.model import Plan

EXPERIMENT = """\
warpbed: 1
name: large
title: Large networks and paths
duration: {duration}s
topology: {topology}
hosts: {{overhead: none}}
flows:
  - {{name: f1, cca: {cca}, from: {source}, to: {destination}}}
samplers: {{tcp_probe: false, sockets: 100ms, queues: {queues}}}
"""


@dataclass(frozen=True)
class Case:
    """One measurement; the most wall seconds until the network is up, and of all (None: shown only).

    settled_s: last seconds of the run in which the path's use is measured (None: not measured, queues are not sampled)
    """

    name: str
    topology: str
    source: str
    destination: str
    duration_s: int
    cca: str = "cubic"
    settled_s: float | None = None
    up_s: float | None = None
    all_s: float | None = None


CASES = (
    Case("200 nodes", "{name: transit_stub}", "t1a1", "t8c8", 2, up_s=25),
    Case("600 nodes", "{name: transit_stub, params: {nodes: 600}}", "t1a1", "t24c8", 2, up_s=90),
    # 250 MB are 165 125 frames of 1514 bytes. Slow start doubles the window until it is a bit more than that, in 3.2 s, so that
    # the path is full and its buffer neither empty nor full.
    Case(
        "10 Gbit/s, 200 ms", "{name: line, params: {rate: 10gbit, delay: 100ms, buffer: 250MB}}", "s1", "d1", 7,
        "{name: cubic, params: {hystart: 0, initial_ssthresh: 170000}}", settled_s=2,
    ),
    Case("1000 s of GEO", "{name: satellite, params: {loss: 0%}}", "s1", "d1", 1000, settled_s=500, all_s=60),
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """What a case showed; `used` None where it is not measured, `digest` of all captures and samples."""

    up_s: float
    all_s: float
    goodput_mbps: float
    used: float | None
    limited_s: float
    lacked_memory: bool
    memory_mib: float
    verdict: str
    digest: str


def measure(case: Case, kernel: GuestKernel, cpu: int) -> Found:
    """Execute one case, in a process of its own, whose children's memory is this case's.

    Raises RuntimeError where the guest did not finish it.
    """
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, spawn) as pool:
        return pool.submit(measure_here, case, kernel, cpu).result()


def measure_here(case: Case, kernel: GuestKernel, cpu: int) -> Found:
    """The same in this process; its memory is the most that any of its children has had."""
    text = EXPERIMENT.format(
        duration=case.duration_s, topology=case.topology, cca=case.cca, source=case.source,
        destination=case.destination, queues="off" if case.settled_s is None else "100ms",
    )  # fmt: skip
    with timed_run(case.name, text, kernel, cpu) as run:
        raw, records, plan, facts = run.raw, run.raw.with_name("records"), run.plan, run.outcome.facts
        damage = collect(raw, records, plan, facts).damage
        console = (raw / "console.log").read_text(errors="replace")
        received = json.loads((raw / "f1.server.json").read_text())["end"]["sum_received"]["bytes"]
        return Found(
            up_s=run.up_s,
            all_s=run.outcome.wall_s,
            goodput_mbps=received * 8e-6 / case.duration_s,
            used=None if case.settled_s is None else _used(plan, records, case.settled_s),
            limited_s=_limited_s(records),
            lacked_memory=bool(facts["tcp_shortages"]),
            memory_mib=run.memory_mib,
            verdict=judge(Evidence(plan, facts, records, console, tuple(map(str, damage))))["value"],
            digest=_digest(raw),
        )


def _used(plan: Plan, records: Path, settled_s: float) -> float:
    """Share of the bottleneck's capacity that was sent in the run's last seconds."""
    place = plan.network.bottleneck
    assert place is not None
    (interface,) = (i for i in address_plan(plan.network)[place.node].interfaces if i.peer == place.peer)
    table = pq.read_table(records / "queues.parquet", columns=["t_s", "interface", "sent_bytes"]).to_pylist()
    rows = [row for row in table if row["interface"] == interface.name and row["t_s"] >= plan.duration_s - settled_s]
    first, last = rows[0], rows[-1]
    assert interface.egress.rate_bps is not None
    sent_bits = 8 * (last["sent_bytes"] - first["sent_bytes"])
    seconds = last["t_s"] - first["t_s"]
    return float(sent_bits / interface.egress.rate_bps / seconds)


def _limited_s(records: Path) -> float:
    """Seconds in which the sender waited for a window or a send buffer, by its TCP_INFO or on the wire, whichever says more."""
    last = pq.read_table(records / "tcp_info.parquet").to_pylist()[-1]
    flow = pq.read_table(records / "flows.parquet").to_pylist()[0]
    waited_s = (last["rwnd_limited_us"] + last["sndbuf_limited_us"]) / 1e6
    return float(max(waited_s, flow["window_limited_s"], flow["zero_window_s"]))


def _digest(raw: Path) -> str:
    """SHA-256 of all captured packets and all samples, with their times."""
    digest = hashlib.sha256()
    for file in sorted([*raw.glob("*.pcap"), *raw.glob("*.bin")]):
        with file.open("rb") as content:
            digest.update(file.name.encode() + hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure large networks and paths on the virtual host.")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--cpu", type=int, default=0)
    parser.add_argument("--twice", action="store_true", help="run each case again: the same packets, bit for bit")
    options = parser.parse_args()
    kernel, code = find("default"), 0
    heads = ("up s", "target", "all s", "target", "Mbit/s", "used", "limited", "MiB", "verdict")
    print(f"{'case':18}" + "".join(f"{head:>9}" for head in heads) + ("  again" if options.twice else ""))
    for case in CASES:
        if options.only not in case.name:
            continue
        measured = measure(case, kernel, options.cpu)
        again = measure(case, kernel, options.cpu).digest if options.twice else measured.digest
        if again != measured.digest or measured.verdict != "valid" or measured.limited_s or measured.lacked_memory:
            code = 1
        print(f"{case.name:18}" + "".join(f"{cell:>9}" for cell in _cells(case, measured)), end="")
        print(("  same" if again == measured.digest else "  DIFFERENT") if options.twice else "", flush=True)
    return code


def _cells(case: Case, result: Found) -> list[str]:
    targets = ["" if target is None else f"{target:g}" for target in (case.up_s, case.all_s)]
    used = "" if result.used is None else f"{result.used:.2%}"
    limited = "memory" if result.lacked_memory else f"{result.limited_s:g} s"
    measured = [f"{result.goodput_mbps:.1f}", used, limited, f"{result.memory_mib:.0f}", result.verdict]
    return [f"{result.up_s:.1f}", targets[0], f"{result.all_s:.1f}", targets[1], *measured]


if __name__ == "__main__":
    raise SystemExit(main())
