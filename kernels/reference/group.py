# SPDX-License-Identifier: Apache-2.0
"""LISS, ISS, MISS and JS: Yu 2009, chapter 2.  Choices where the copy is open are those of the modules' headers.

The group sees what all of its connections' ACKs and losses leave; a new connection asks it for its start.  After that
a connection is Reno.
"""

from __future__ import annotations

import dataclasses
import math

from kernels.reference.base import Reno


def fair(S: float, L: int, w_o: float) -> float:
    """Yu's ssthresh of a new connection."""
    return (S + L * w_o) / (L + S / w_o + 1)


@dataclasses.dataclass
class Gap:
    """EWMA, weight 1/8, of the times between drops."""

    last_s: float | None = None
    mean_s: float | None = None

    def drop(self, now_s: float) -> None:
        if self.last_s is not None:
            gap = now_s - self.last_s
            self.mean_s = gap if self.mean_s is None else self.mean_s + (gap - self.mean_s) / 8
        self.last_s = now_s


@dataclasses.dataclass
class Connection:
    cwnd: float
    steady: bool = False
    drops: Gap = dataclasses.field(default_factory=Gap)


@dataclasses.dataclass
class Group:
    alpha: float = 0.002
    connections: dict[int, Connection] = dataclasses.field(default_factory=dict)  # oldest first
    awnd: float | None = None
    drops: Gap = dataclasses.field(default_factory=Gap)

    def ack(self, who: int, cwnd: float, *, steady: bool) -> None:
        connection = self.connections[who]
        connection.cwnd, connection.steady = cwnd, steady
        if steady:
            self.awnd = cwnd if self.awnd is None else (1 - self.alpha) * self.awnd + self.alpha * cwnd

    def loss(self, who: int, now_s: float) -> None:
        self.connections[who].drops.drop(now_s)
        self.drops.drop(now_s)

    @property
    def oldest(self) -> Connection | None:
        return next((c for c in self.connections.values() if c.steady), None)

    def start(self, w_o: float | None) -> int:
        """ssthresh with this w_o, 0 for the ordinary one."""
        L = sum(c.steady for c in self.connections.values())
        if not L or w_o is None or w_o < 1:
            return 0
        S = math.fsum(c.cwnd for c in self.connections.values() if not c.steady)
        return max(2, math.floor(fair(S, L, w_o) + 1e-9))

    def liss(self) -> int:
        return self.start(self.oldest.cwnd if self.oldest else None)

    def iss(self) -> int:
        return self.start(None if self.awnd is None else math.floor(self.awnd))

    def miss(self, now_s: float, rtt_s: float) -> int:
        """The first window by the loss history, 0 if that does not tell."""
        oldest = self.oldest
        if oldest is None or oldest.drops.mean_s is None or oldest.drops.last_s is None or not self.drops.mean_s:
            return 0
        room_s = oldest.drops.mean_s - (now_s - oldest.drops.last_s)
        m = oldest.drops.mean_s / self.drops.mean_s
        return max(0, math.floor(m * room_s / rtt_s))


class Started(Reno):
    """Reno from a given window and ssthresh on."""

    def __init__(self, cwnd: float, ssthresh: float) -> None:
        super().__init__(cwnd)
        self.ssthresh = ssthresh
