# SPDX-License-Identifier: Apache-2.0
"""What the readings of a paper change: one flow with each value of what the text leaves open, mostly a parameter.

    WARPBED_DEV=1 ./warpbed exec python -m benchmarks.readings [ALGORITHM …]

20 Mbit/s, 100 ms, frames of 1014 bytes (246.6 packets fill the path), a buffer of 250 packets or what the case says, hosts that
take no time. Prints a table per case; the numbers stand on the algorithm's page (docs/algorithms/measured). Not a question of speed:
equal runs give equal numbers, on any machine.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.command import executed


@dataclass(frozen=True)
class Reading:
    """name: in the table; cca, start: of the flows, the latter with a comma in front"""

    name: str
    cca: str
    start: str = ""


@dataclass(frozen=True)
class Case:
    """values: of the parameter, the default one first, or readings that are none; metrics: what is printed of each; flows: more of the file

    loss: of the bottleneck, per cent
    """

    cca: str
    parameter: str
    values: tuple[int | Reading, ...]
    metrics: tuple[str, ...]
    seconds: int = 5
    ack: str = "every"
    buffer: str = "250p"
    flows: str = ""
    loss: float = 0.0

    @property
    def readings(self) -> tuple[Reading, ...]:
        return tuple(value if isinstance(value, Reading) else self._of(value) for value in self.values)

    def _of(self, value: int) -> Reading:
        return Reading(str(value), f"{{name: {self.cca}, params: {{{self.parameter}: {value}}}}}")


NEWCOMERS = """\
  - {{name: f2, cca: {cca}, from: s1, to: d1, start: 1s{start}}}
traffic:
  - {{name: new, kind: transfers, cca: {cca}, from: s1, to: {to}, start: 20s, stop: 38s, count: 30, size: 60KB{start}}}
"""
BESIDE = NEWCOMERS.replace("{to}", "d1")
ELSEWHERE = NEWCOMERS.replace("{to}", "d2")
"""The new connections go to another host than the old ones, of the same 24 bits."""
ON_NEWCOMERS = ("transfer_throughput_mbps.new", "queue_drops")
OF_THE_THESIS = ", initial_window: 1, initial_ssthresh: 10, max_window: 100"
"""Yu 2009 page 29."""


def _of_group(cca: str) -> tuple[Case, ...]:
    """Whom a connection takes for a neighbour, and what it begins with where the thesis' default windows are."""
    starts = (
        Reading("Linux'", cca),
        Reading("thesis'", cca, OF_THE_THESIS),
        Reading("Reno, thesis'", "reno", OF_THE_THESIS),
    )
    return (
        Case(cca, "prefix4", (24, 32), ON_NEWCOMERS, 40, buffer="60p", flows=ELSEWHERE),
        Case(cca, "start values", starts, ON_NEWCOMERS, 40, buffer="60p", flows=BESIDE),
    )


def _of_astart(cca: str) -> tuple[Case, ...]:
    """When the estimate is taken, and the filter's time where each ACK takes one."""
    metrics = ("initial_packets.5", "cwnd_packets.f1.5")
    taus = (
        Reading(str(tau), f"{{name: {cca}, params: {{each_ack: 1, tau_ms: {tau}}}}}") for tau in (1000, 100, 10_000)
    )
    return Case(cca, "each_ack", (0, 1), metrics, 10), Case(cca, "tau_ms", tuple(taus), metrics, 10)


CASES = (
    Case("lbc", "limit", (2, 1, 4), ("initial_packets.1", "initial_packets.2"), ack="second"),
    Case(
        "perack",
        "what counts",
        (Reading("ACKs (perack)", "perack"), Reading("packets (Linux' Reno)", "reno")),
        ("initial_packets.1", "initial_packets.2", "goodput_mbps"),
        30,
        ack="second",
        buffer="60p",
    ),
    Case("perack", "classic_retransmits", (0, 1), ("timeouts.f1", "utilization", "goodput_mbps"), 120, loss=0.3),
    Case("ssipp", "hold_us", (1000, 10, 100_000), ("initial_packets.1", "initial_packets.2"), ack="second"),
    Case("creno", "fast_retransmits", (2, 1, 0), ("timeouts.f1", "utilization", "goodput_mbps"), 120, loss=0.3),
    Case("past", "rounds", (5, 3, 8), ("slow_start_ssthresh_packets.f1", "initial_packets.2")),
    Case("past", "second_gap", (200, 50), ("slow_start_ssthresh_packets.f1", "initial_packets.2")),
    Case("past", "refine", (0, 1), ("slow_start_ssthresh_packets.f1", "initial_packets.2")),
    Case("spm", "spacing", (100, 0, 400), ("slow_start_ssthresh_packets.f1", "initial_packets.2")),
    Case("spm", "beta", (105, 100, 400), ("slow_start_ssthresh_packets.f1", "initial_packets.2")),
    Case("spm", "unqualified", (0, 1, 2), ("slow_start_ssthresh_packets.f1", "initial_packets.2")),
    Case("spm", "least_samples", (12, 4, 48), ("slow_start_ssthresh_packets.f1", "initial_packets.2")),
    *_of_astart("astart_bwe"),
    *_of_astart("astart_ere"),
    Case("miss", "room", (0, 1), ON_NEWCOMERS, 40, buffer="60p", flows=BESIDE),
    *_of_group("liss"),
    *_of_group("js"),
)
FILE = """\
warpbed: 1
name: readings
title: What a reading changes
duration: {seconds}s
topology:
  name: dumbbell
  params: {{pairs: 2, rate: 20mbit, delay: 49ms, buffer: {buffer}, loss: {loss}%, access_rate: 1gbit, access_delay: 500us}}
hosts: {{ack: {ack}, overhead: none, mss: 960}}
samplers: {{sockets: 100ms}}
flows:
  - {{name: f1, cca: {cca}, from: s1, to: d1{start}}}
{flows}"""


def value_of(metrics: dict[str, Any], name: str) -> float | None:
    """A metric, or a part of it: `initial_packets.1`, `timeouts.f1`."""
    metric, _, part = name.partition(".")
    value = metrics[metric]
    number: float | None = value[part] if part else value
    return number


def measured(case: Case, reading: Reading, folder: Path) -> list[float | None]:
    """The case's metrics with one reading."""
    flow = {"cca": reading.cca, "start": reading.start}
    text = FILE.format(
        **flow,
        seconds=case.seconds,
        buffer=case.buffer,
        ack=case.ack,
        loss=case.loss,
        flows=case.flows.format(**flow),
    )
    (folder / "experiment.yml").write_text(text)
    executed(folder / "experiment.yml", folder / "results")
    (run,) = (json.loads(file.read_text()) for file in folder.glob("results/*/*/run.json"))
    if run["verdict"]["value"] == "invalid":
        raise SystemExit(f"{case.cca} {case.parameter} {reading.name}: {run['verdict']}")
    return [value_of(run["metrics"], name) for name in case.metrics]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("algorithm", nargs="*", help="only these")
    wanted = parser.parse_args().algorithm
    for case in CASES:
        if wanted and case.cca not in wanted:
            continue
        print(f"\n{case.cca}: ACKs {case.ack}, buffer {case.buffer}, {case.seconds} s")
        print(f"| {case.parameter} | " + " | ".join(f"`{name}`" for name in case.metrics) + " |")
        print("|---" * (1 + len(case.metrics)) + "|")
        for reading in case.readings:
            with tempfile.TemporaryDirectory(prefix="warpbed-readings-") as folder:
                numbers = measured(case, reading, Path(folder))
            cells = ("none" if number is None else f"{number:.4g}" for number in numbers)
            print(f"| {reading.name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
