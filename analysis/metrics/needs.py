# SPDX-License-Identifier: Apache-2.0
"""What metrics need, and which records give it: the first of them that a run has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from collectors.sources import AT_RECEIVER, AT_SENDER, PROBE, PROGRAM, SAMPLES


@dataclass(frozen=True)
class Need:
    """A quantity, and its sources from the best to the last.

    key: its name where a run says, of each flow, which source it had (run.json's `sources`)
    remedy: how a file asks for one of the sources
    """

    name: str
    key: str
    sources: tuple[str, ...]
    remedy: str

    def __str__(self) -> str:
        return f"{self.name} ({', else '.join(self.sources)})"


QUEUES, APPLICATIONS = "queues", "applications"

_ENDS = "captures: {at: ends}"
_SAMPLED = f"{_ENDS}, samplers.tcp_probe: true or samplers.sockets: 100ms"
DELIVERED = Need(
    "delivered bytes", "delivered", (AT_RECEIVER, AT_SENDER, PROBE, SAMPLES, PROGRAM), "flows, or recorded traffic"
)
SERIES = Need("delivered bytes over time", "delivered", (AT_RECEIVER, AT_SENDER, PROBE, SAMPLES), _SAMPLED)
BEGINNING = Need(
    "delivered bytes from the first on",
    "delivered",
    (AT_RECEIVER, AT_SENDER, PROBE),
    f"{_ENDS} or samplers.tcp_probe: true",
)
SENT = Need("bytes sent", "sent", (AT_SENDER,), _ENDS)
RTT = Need("round-trip times", "rtt", (AT_SENDER, PROBE, SAMPLES), _SAMPLED)
RETRANSMISSIONS = Need(
    "retransmissions", "retransmissions", (AT_SENDER, SAMPLES), f"{_ENDS} or samplers.sockets: 100ms"
)
PACKETS = Need("delivered packets", "delivered", (AT_RECEIVER, AT_SENDER), _ENDS)
HIGHEST = Need("highest sequence numbers", "highest", (AT_SENDER, PROBE), f"{_ENDS} or samplers.tcp_probe: true")
WINDOW = Need("congestion windows", "window", (PROBE, SAMPLES), "samplers.tcp_probe: true or samplers.sockets: 100ms")
EACH_WINDOW = Need("congestion windows at each ACK", "window", (PROBE,), "samplers.tcp_probe: true")
TIMEOUTS = Need(
    "expiries of the retransmission timer",
    "timeouts",
    (SAMPLES, AT_SENDER),
    f"samplers.sockets: 100ms (since Linux 6.7) or {_ENDS}",
)
COMPLETION = Need("completion of a size", "sent", (AT_SENDER,), _ENDS)
QUEUE = Need(
    "samples of the bottleneck's queue", "", (QUEUES,), "samplers.queues: 10ms, and a topology with a bottleneck"
)
TRAFFIC = Need("results of traffic", "", (APPLICATIONS,), "entries under `traffic`")


def lacking(needs: Sequence[Need], recorded: Collection[str]) -> list[Need]:
    """Those of which none of the recorded sources tells."""
    return [need for need in needs if not set(need.sources) & set(recorded)]


def unknown(needs: Sequence[Need], flows: Mapping[str, Mapping[str, str]]) -> list[Need]:
    """Needs of flows that some flow's sources do not meet; flows: by flow the source of each quantity, by its key.

    A source may be followed by a comma and how it tells it.
    """
    return [
        need
        for need in needs
        if need.key
        and any(flow_sources.get(need.key, "").split(",")[0] not in need.sources for flow_sources in flows.values())
    ]
