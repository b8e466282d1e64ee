# SPDX-License-Identifier: Apache-2.0
"""The clocks of a run's nodes against the run's own: from flows that were captured at both ends.

guest.json's `node_clocks` names the clock of each node that does not share the run's (`{"d1": "lab2"}`); nodes of the same
clock share one estimate. Nothing is estimated, and nothing changes, where all share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from collectors.clock import Estimate, compose
from collectors.errors import CollectError
from collectors.pcap import THE_SAME, CaptureError, Clock, Flow
from collectors.two_points import clock_between

RUNS = "run"
"""The clock that start_realtime_ns is on."""


@dataclass(frozen=True)
class Pair:
    """A flow captured at both ends."""

    source: str
    destination: str
    at_source: Path
    at_destination: Path
    flow: Flow


@dataclass(frozen=True)
class Clocks:
    """Clocks by name, taken off to get the run's time; `unknown`: those that no flow ties to it."""

    clock_of: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, Clock] = field(default_factory=dict)
    estimates: Mapping[str, tuple[str, Estimate]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    def of(self, node: str) -> Clock:
        """A node's clock; one that is unknown is taken as it is."""
        return self.known.get(self.clock_of.get(node, RUNS), THE_SAME)

    @property
    def is_one(self) -> bool:
        """Whether all nodes have the run's own."""
        return all(clock == THE_SAME for clock in self.known.values())

    def correct(self, node: str, time_ns: int) -> int:
        """A time of a node's clock on the run's."""
        clock = self.of(node)
        return time_ns - clock.offset_ns - round((time_ns - clock.reference_ns) * clock.drift_ppm / 1e6)

    def report(self) -> list[dict[str, Any]]:
        """For run.json: what was taken off each clock, how sure that is, and against which clock it was measured."""
        rows: list[dict[str, Any]] = []
        for name, (against, sentences) in self.estimates.items():
            clock = self.known[name]
            measured = {key: value for key, value in asdict(sentences).items() if key != "clock"}
            rows.append(
                {
                    "clock": name,
                    "against": against,
                    "reference_ns": clock.reference_ns,
                    "offset_us": clock.offset_ns / 1e3,
                    "drift_ppm": clock.drift_ppm,
                    **measured,
                }
            )
        return rows + [{"clock": name, "against": None} for name in self.unknown]


def synchronise(clock_of: Mapping[str, str], pairs: Sequence[Pair], scratch: Path | None = None) -> Clocks:
    """Tie every clock to the run's, from one that is known to the next.

    scratch: a folder for what is needed meanwhile; default: the machine's for temporary files
    Raises CollectError for a file that is no capture.
    """
    known: dict[str, Clock] = {RUNS: THE_SAME}
    estimates: dict[str, tuple[str, Estimate]] = {}
    names = {clock_of.get(node, RUNS) for pair in pairs for node in (pair.source, pair.destination)} | set(
        clock_of.values()
    )
    for _ in names:
        for pair in pairs:
            here, there = (clock_of.get(node, RUNS) for node in (pair.source, pair.destination))
            if (here in known) == (there in known):
                continue
            try:
                measured_clock = clock_between(pair.at_source, pair.at_destination, [pair.flow], scratch)
            except CaptureError as error:
                raise CollectError(str(error)) from error
            if measured_clock is None:
                continue
            if here in known:
                known[there], estimates[there] = compose(measured_clock.clock, known[here]), (here, measured_clock)
            else:
                known[here], estimates[here] = (
                    compose(inverse(measured_clock.clock), known[there]),
                    (there, measured_clock),
                )
    return Clocks(dict(clock_of), known, estimates, tuple(sorted(names - set(known))))


def inverse(clock: Clock) -> Clock:
    """What to take off A's times to get B's, from what B's has more."""
    return Clock(clock.reference_ns - clock.offset_ns, -clock.offset_ns, -clock.drift_ppm)
