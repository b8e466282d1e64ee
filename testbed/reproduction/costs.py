# SPDX-License-Identifier: Apache-2.0
"""How long and how much disk the runs that are missing take: their virtual seconds times the bottleneck's rate, at a measured speed.

The speed is that of the experiment's own runs. Without any it is the one that `benchmarks.reproduction_cost` has measured and recorded for
that experiment, times how fast this machine was with others; without a record the median of the others' which are asked for, and
where those are few the one below.
"""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.errors import ResultsError
from analysis.results import Run
from base.files import replace_bytes
from plan.model import Plan

GBIT_PER_S = 0.55
"""Virtual Gbit a second of one CPU: quickstart's runs at 50 Mbit/s with captures, on a machine that was busy otherwise."""
START_S = 4.0
"""Of a run's guest until its clock runs, and of collecting."""
BYTES_PER_GBIT = {"captures": 55e6, "records": 1.6e6}
"""Of captures at both ends and of records with a row per ACK: 900 s of 100 Mbit/s and 3.8 million ACKs are 0.8 MB a Gbit (docs/records.md),
and twice as much where each packet has an ACK."""
SAMPLES_BYTES_PER_S = 20e3
"""Of a virtual second's samples, whatever the rate: 200 s of Kato 2012 Fig 5.16 with queues every 100 ms are 3.4 MB, raw files too."""
EXAMPLES = 20
"""Runs of an experiment from which its speed is taken."""
ENOUGH_EXPERIMENTS = 5
"""Whose speeds tell what another one's may be."""
ENOUGH_S = 20.0
"""Of runs beyond their start: less says nothing of a machine's speed."""
SPEEDS = "speeds.json"
"""Beside the recorded runs: experiment file → `Measured`."""


@dataclass(frozen=True)
class Cost:
    """runs, virtual seconds, Gbit, wall seconds of one CPU, bytes that stay; most_bytes: of one run while it runs."""

    runs: int = 0
    virtual_s: float = 0.0
    gbit: float = 0.0
    cpu_s: float = 0.0
    disk_bytes: float = 0.0
    most_bytes: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.runs + other.runs,
            self.virtual_s + other.virtual_s,
            self.gbit + other.gbit,
            self.cpu_s + other.cpu_s,
            self.disk_bytes + other.disk_bytes,
            max(self.most_bytes, other.most_bytes),
        )

    def words(self, jobs: int) -> str:
        """For people, before anything starts."""
        if not self.runs:
            return "no run is missing"
        wall = duration(self.cpu_s / max(1, jobs))
        return (
            f"{self.runs} runs, {self.virtual_s:.0f} s of virtual time, {self.gbit:.0f} Gbit: about {wall} with {jobs} at a time, "
            f"{size(self.disk_bytes)} of disk that stays, up to {size(self.most_bytes * max(1, jobs))} more while they run"
        )


@dataclass(frozen=True)
class Measured:
    """What one run of an experiment took, on an idle machine: virtual seconds, Gbit, wall seconds of its guest, bytes that stay."""

    virtual_s: float
    gbit: float
    wall_s: float
    kept_bytes: float

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if not 0 < value < math.inf:
                raise ValueError(f"{name} is {value}, no positive number")

    @property
    def speed(self) -> float:
        """Virtual Gbit a wall second, beyond the start."""
        return self.gbit / max(self.wall_s - START_S, 0.1)

    @property
    def bytes_per_s(self) -> float:
        return self.kept_bytes / self.virtual_s


def read(folder: Path) -> dict[str, Measured]:
    """Experiment file → what one of its runs took; nothing without a record.

    Raises ResultsError where the file is not one of ours.
    """
    file = folder / SPEEDS
    if not file.exists():
        return {}
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        return {name: Measured(**{key: float(value) for key, value in row.items()}) for name, row in rows.items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ResultsError(
            f"{file}: not a record of speeds ({error}); `./warpbed exec python -m benchmarks.reproduction_cost` writes it"
        ) from error


def write(folder: Path, measured: Mapping[str, Measured]) -> None:
    """A line for each experiment."""
    lines = [f" {json.dumps(name)}: {json.dumps(dataclasses.asdict(one))}" for name, one in sorted(measured.items())]
    replace_bytes(folder / SPEEDS, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def size(amount: float) -> str:
    return f"{amount / 1e6:.0f} MB" if amount < 1e9 else f"{amount / 1e9:.1f} GB"


def rate_bps(plan: Plan) -> float:
    """Of the bottleneck; where the topology names none, of the first flow's slowest link."""
    rates = [
        rate
        for link in plan.network.links
        for direction in (link.forward, link.backward)
        if (rate := direction.rate_bps) is not None
    ]
    bottleneck = plan.network.bottleneck
    if bottleneck is not None:
        for link in plan.network.links:
            if {link.a, link.b} == {bottleneck.node, bottleneck.peer} and link.forward.rate_bps is not None:
                return float(link.forward.rate_bps)
    return float(min(rates, default=1_000_000))


def gbit_of(plan: Plan) -> float:
    """What passes a full bottleneck in the whole run."""
    return plan.duration_s * rate_bps(plan) / 1e9


def of_plans(
    plans: Iterable[Plan], keep: str | None, speed: float = GBIT_PER_S, bytes_per_s: float | None = None
) -> Cost:
    """keep: captures.keep of the experiment; bytes_per_s: what stays of a virtual second, where that was measured."""
    total = Cost()
    for plan in plans:
        gbit = gbit_of(plan)
        rows = SAMPLES_BYTES_PER_S * plan.duration_s
        rows += BYTES_PER_GBIT["records"] * gbit if plan.captures or plan.tcp_probe else 0.0
        captured = BYTES_PER_GBIT["captures"] * gbit if plan.captures else 0.0
        stays = captured if keep in (None, "always") else 0.0
        kept = rows + stays if bytes_per_s is None else bytes_per_s * plan.duration_s
        total += Cost(1, plan.duration_s, gbit, START_S + gbit / speed, kept, rows + captured)
    return total


def speed(runs: Sequence[tuple[Run, Plan]]) -> float | None:
    """Virtual Gbit a wall second of an experiment's newest EXAMPLES runs; None where they are too short to tell."""
    timed = [
        (gbit_of(plan), wall_s - START_S)
        for run, plan in list(runs)[-EXAMPLES:]
        if isinstance(wall_s := run.timing.get("wall_s"), int | float) and wall_s > 2 * START_S
    ]
    wall = sum(one for _, one in timed)
    return sum(one for one, _ in timed) / wall if wall > ENOUGH_S else None


def pace(pairs: Iterable[tuple[float | None, Measured | None]]) -> float:
    """How fast this machine is beside that of the record: median over experiments whose speed is known here (first) and there."""
    known = [here / there.speed for here, there in pairs if here and there and there.wall_s > 2 * START_S]
    return statistics.median(known) if len(known) >= ENOUGH_EXPERIMENTS else 1.0


def usual(speeds: Iterable[float | None]) -> float:
    """For an experiment that has no run yet: the median of the others' speeds.

    A path of 1 Mbit/s takes ten times as long for a Gbit as one of 1 Gbit/s, and a network of 600 nodes fifty times, so that the runs of a
    few experiments say nothing of the others.
    """
    known = [one for one in speeds if one is not None]
    return statistics.median(known) if len(known) >= ENOUGH_EXPERIMENTS else GBIT_PER_S
