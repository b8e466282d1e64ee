# SPDX-License-Identifier: Apache-2.0
"""How fast is the virtual host? Virtual seconds per wall second, on one CPU.

    ./warpbed exec python -m benchmarks.virtual_speed [--quick] [--cpu N]

The send buffer ends slow start at about 1.3 times the BDP, which the bottleneck's buffer holds: no loss, a full link.
Each case is one iperf3 flow over sender - router - receiver with 50 ms RTT, offloads off, for 11 virtual seconds;
only the time in which the flow runs counts, boot and build are shown by themselves. Nothing is recorded, but in the
cases named "default", which have the captures and samples that users get. ns-3 does the same path where it is installed.
The last case tells how long a network of 42 nodes takes to come up.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass

from base.quantities import rate_bps, size_bytes
from benchmarks import ns3
from benchmarks.timed_run import timed_run
from hosts.virtual.kernel import find
from hosts.virtual.launch import GuestKernel

EXPERIMENT = """\
warpbed: 1
name: speed
title: Speed of the virtual host
duration: {duration}s
topology: {topology}
hosts: {{overhead: none, only: {{s1: {{sysctls: {{net.ipv4.tcp_wmem: 4096 16384 {send_bytes}}}}}}}}}
flows:
  - {{name: f1, cca: {{name: cubic, params: {{hystart: 0}}}}, from: s1, to: d1}}
virtual: {{batch_receivers: {batched}}}
{records}"""
BARE = "captures: {{at: {captures}}}\nsamplers: {{tcp_probe: false, sockets: off, queues: off}}\n"
DEFAULT = ""


RTT_S = 0.05
SEND_MEMORY_PER_BDP = 2.1
"""A packet of 1448 bytes takes about 1.6 times as much of the send buffer."""
WINDOW_PER_BDP = 1.3
"""What that buffer lets the flow have under way; ns-3 counts payload alone."""


LINE = "{{name: line, params: {{rate: {rate}, delay: 25ms, buffer: {buffer}}}}}"
MANY = "{{name: dumbbell, params: {{pairs: 20, rate: {rate}, delay: 25ms, buffer: {buffer}}}}}"


@dataclass(frozen=True)
class Case:
    """One measurement. `target` is the least number of virtual seconds per wall second (None: shown only)."""

    name: str
    rate: str
    buffer: str
    target: float | None
    topology: str = LINE
    captures: str = "none"
    batched: bool = True
    duration_s: int = 11
    records: str = BARE
    ns3: bool = False
    """ns-3 does it too, after it."""


CASES = (
    Case("100 Mbit/s", "100mbit", "1250KB", 12.0, ns3=True),
    Case("100 Mbit/s, default", "100mbit", "1250KB", None, records=DEFAULT),
    Case("1 Gbit/s", "1gbit", "12500KB", 3.0, ns3=True),
    Case("1 Gbit/s, default", "1gbit", "12500KB", None, records=DEFAULT),
    Case("10 Gbit/s", "10gbit", "125MB", 0.3),
    Case("10 Gbit/s, default", "10gbit", "125MB", None, records=DEFAULT),
    Case("1 Gbit/s, every header captured", "1gbit", "12500KB", 1.5, captures="[d1>r1]"),
    Case("1 Gbit/s, receivers not batched", "1gbit", "12500KB", None, batched=False),
    Case("42 nodes", "100mbit", "1250KB", None, topology=MANY, duration_s=1),
)


@dataclass(frozen=True)
class Measured:
    """Wall seconds until the network was up, and virtual seconds per wall second after that."""

    built_s: float
    speed: float
    goodput_mbps: float


def measure(case: Case, kernel: GuestKernel, cpu: int) -> Measured:
    """Execute one case.

    Raises RuntimeError where the guest did not finish it.
    """
    bdp_bytes = _bdp_bytes(case)
    text = EXPERIMENT.format(
        send_bytes=int(SEND_MEMORY_PER_BDP * bdp_bytes),
        duration=case.duration_s,
        topology=case.topology.format(rate=case.rate, buffer=case.buffer),
        records=case.records.format(captures=case.captures),
        batched=str(case.batched).lower(),
    )
    with timed_run(case.name, text, kernel, cpu) as run:
        sent = int(json.loads((run.raw / "f1.server.json").read_text())["end"]["sum_received"]["bytes"])
        return Measured(run.up_s, case.duration_s / run.run_s, sent * 8e-6 / case.duration_s)


def _bdp_bytes(case: Case) -> float:
    return rate_bps(case.rate) * RTT_S / 8


def _beside(case: Case, cpu: int) -> None:
    """Print the row of ns-3, or that there is none."""
    name = f"{case.name}, ns-3"
    if not ns3.is_there():
        print(f"{name:34} not installed. {ns3.REMEDY}", flush=True)
        return
    window_bytes = int(WINDOW_PER_BDP * _bdp_bytes(case))
    speed, goodput_mbps = ns3.measure(rate_bps(case.rate), size_bytes(case.buffer), window_bytes, case.duration_s, cpu)
    print(f"{name:34} {goodput_mbps:15.1f} {'':13} {speed:16.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the speed of the virtual host.")
    parser.add_argument("--quick", action="store_true", help="the first case only")
    parser.add_argument("--cpu", type=int, default=0)
    parser.add_argument("--series", default="default")
    options = parser.parse_args()
    kernel = find(options.series)
    print(f"kernel {kernel.release}, build {kernel.key}")
    print(f"{'case':34} {'goodput Mbit/s':>15} {'network up s':>13} {'virtual s per s':>16} {'target':>7}")
    for case in CASES[: 1 if options.quick else None]:
        result = measure(case, kernel, options.cpu)
        target = "" if case.target is None else f"{case.target:g}"
        print(
            f"{case.name:34} {result.goodput_mbps:15.1f} {result.built_s:13.2f} {result.speed:16.2f} {target:>7}",
            flush=True,
        )
        if case.ns3 and not options.quick:
            _beside(case, options.cpu)


if __name__ == "__main__":
    main()
