# SPDX-License-Identifier: Apache-2.0
"""LISS, ISS, MISS and JS: Yu 2009, chapter 2.

The group sees what the ACKs and losses of its active connections leave, that is of those that have data to send (page 25);
a new connection asks it for its start.  After that a connection is Reno.
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
    """awnd is ns-2's: a mean with each ACK of new data, from half of the first window on (page 19 and s2.5)."""

    cwnd: float
    steady: bool = False
    active: bool = True
    awnd: float = dataclasses.field(init=False)
    drops: Gap = dataclasses.field(default_factory=Gap)

    def __post_init__(self) -> None:
        self.awnd = self.cwnd / 2


@dataclasses.dataclass
class Group:
    alpha: float = 0.002
    connections: dict[int, Connection] = dataclasses.field(default_factory=dict)  # oldest first
    drops: Gap = dataclasses.field(default_factory=Gap)

    def acknowledged(self, who: int, cwnd: float) -> None:
        """An ACK of new data, and the window before it."""
        connection = self.connections[who]
        connection.awnd = (1 - self.alpha) * connection.awnd + self.alpha * cwnd

    def ack(self, who: int, cwnd: float, *, steady: bool) -> None:
        connection = self.connections[who]
        connection.cwnd, connection.steady = cwnd, steady

    def loss(self, who: int, now_s: float) -> None:
        self.connections[who].drops.drop(now_s)
        self.drops.drop(now_s)

    @property
    def oldest(self) -> Connection | None:
        return next((c for c in self.active if c.steady), None)

    @property
    def active(self) -> list[Connection]:
        return [c for c in self.connections.values() if c.active]

    def start(self, w_o: float | None) -> int:
        """ssthresh with this w_o, 0 for the ordinary one."""
        L = sum(c.steady for c in self.active)
        if not L or w_o is None or w_o < 1:
            return 0
        S = math.fsum(c.cwnd for c in self.active if not c.steady)
        return max(2, math.floor(fair(S, L, w_o) + 1e-9))

    def liss(self) -> int:
        return self.start(self.oldest.cwnd if self.oldest else None)

    def iss(self) -> int:
        return self.start(self.oldest.awnd if self.oldest else None)

    def miss(self, now_s: float, rtt_s: float, *, of_oldest: bool = False) -> int:
        """The packets "we may add on the path with shared bottlenecks without causing a packet drop" (page 28).

        Until the path's next drop, or in the other reading until the oldest connection's; 0 if the history does not tell.
        """
        oldest = self.oldest
        next_drop = oldest.drops if oldest and of_oldest else self.drops
        if oldest is None or not oldest.drops.mean_s or not self.drops.mean_s or next_drop.last_s is None:
            return 0
        assert next_drop.mean_s is not None
        room_s = next_drop.mean_s - max(0.0, now_s - next_drop.last_s)
        m = oldest.drops.mean_s / self.drops.mean_s
        return max(0, math.floor(m * room_s / rtt_s))


class Started(Reno):
    """Reno from a given window and ssthresh on."""

    def __init__(self, cwnd: float, ssthresh: float) -> None:
        super().__init__(cwnd)
        self.ssthresh = ssthresh
