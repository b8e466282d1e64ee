# SPDX-License-Identifier: Apache-2.0
"""The interface of an executable specification.

A specification owns a window ``cwnd`` and a threshold ``ssthresh`` in packets (floating point) and is told what the
sender sees.  It never looks at a clock or a network of its own, so the same class is driven by property tests, by the
papers' check values and by what the kernel's hooks saw (``differential.py``).
"""

from __future__ import annotations

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Ack:
    """An ACK of new data.

    ``delivered`` counts the packets that the receiver has (ACKed or SACKed) since the connection began and
    ``in_flight`` those sent and neither delivered nor taken for lost, both after this ACK and before anything is sent
    because of it.  ``rtt_s`` is None where no packet of this ACK gave an unambiguous sample.
    """

    acked: int
    now_s: float
    rtt_s: float | None
    delivered: int
    in_flight: int
    limited: bool = True
    unsent: bool = False  # part of the window is still to be sent


class Specification:
    """A window that never changes; the algorithms override what they react to."""

    def __init__(self, cwnd: float, now_s: float = 0.0) -> None:
        self.cwnd = cwnd
        self.ssthresh = math.inf
        self.now_s = now_s
        self.wrong: list[str] = []
        """What the stack did that the algorithm forbids; compare() takes it for a mismatch."""
        self.stack_window: int | None = None
        """The window as the stack has it by now, for what counts in whole windows; compare() keeps it."""
        self._prior = (cwnd, math.inf)

    clock_ns = 0
    """The sender's clock at the hook that is about to be given, for what needs more than whole microseconds."""

    def on_start(self, delivered: int, in_flight: int) -> None:
        """The connection begins (SYN and handshake count as the stack counts them)."""

    grows_on_duplicates = False
    """Whether on_acknowledged() may change the window."""

    grown = False
    """Whether it has, so that the stack's request to grow for the same ACK (after duplicates, too, once a path reorders) adds nothing."""

    fills_window = False
    """Whether a window counts as used only if all of it was; else half of it is enough before the first loss."""

    def on_pair(self, seq: int, gap_s: float) -> None:
        """Packets n (which begins at seq) and n + 1 leave inverted with a gap between them."""

    def on_acknowledged(self, una: int, acked: int, now_s: float, *, limited: bool) -> None:
        """Any ACK: new data up to una, acked packets of it (0: perhaps a duplicate); comes before on_sample()."""

    def on_sample(self, rtt_s: float | None, acked: int, now_s: float, *, recovering: bool = False) -> None:
        """An RTT sample (None: the ACK gave none), also during recovery; comes before on_ack() of the same ACK."""

    def forget_rtts(self) -> None:
        """Packets have become larger: RTTs of smaller ones are no measure any more; comes before on_sample()."""

    def on_duplicates(self, duplicates: int) -> None:
        """How many of the delivered packets the receiver had already; comes with on_delivered()."""

    def on_restart(self, delivered: int, in_flight: int) -> None:
        """The kernel shrinks the window after an idle time (RFC 2861)."""

    def on_delivered(self, delivered: int) -> None:
        """How many packets the receiver has by now; comes before every other call."""

    def on_ack(self, ack: Ack) -> None:
        """An ACK outside of recovery: the window may grow."""

    def on_control(self, acked: int, now_s: float, *, loss: bool, limited: bool, idle: bool) -> None:
        """For algorithms that own the window also during recovery: any ACK, instead of on_ack()."""

    def on_first_timeout(self) -> None:
        """A timeout that is not a repetition of one; before on_timeout()."""

    def on_loss(self, now_s: float) -> None:
        """A loss was found (fast recovery or timeout begins): set ssthresh."""

    def before_loss(self, *, reducing: bool) -> None:
        """Comes before on_loss(); keeps what an undo gives back.

        The threshold is that of RFC 2861: never less than three quarters of the window, unless one reduction of it is
        going on already.
        """
        w = self.whole_window
        self._prior = (self.cwnd, self.ssthresh if reducing else max(self.ssthresh, (w >> 1) + (w >> 2)))

    @property
    def whole_window(self) -> int:
        return math.floor(self.cwnd + 1e-9) if self.stack_window is None else self.stack_window

    @property
    def before_reduction(self) -> int:
        """The window when the last loss was found."""
        return math.floor(self._prior[0] + 1e-9)

    def on_undo(self) -> None:
        """The last loss was none (RFC 4015): window and threshold are not less than before it."""
        cwnd, ssthresh = self._prior
        self.cwnd = max(self.cwnd, cwnd)
        self.ssthresh = max(self.ssthresh, ssthresh)

    def on_unused(self, cwnd: int) -> None:
        """The window was not used for an RTO and the stack has reduced it to cwnd (RFC 2861)."""
        w = math.floor(self.cwnd + 1e-9)
        self.ssthresh = max(self.ssthresh, (w >> 1) + (w >> 2))
        self.cwnd = float(cwnd)

    def on_fast_retransmit(self, una: int, nxt: int) -> None:
        """Fast recovery begins with what was sent up to nxt and is ACKed up to una; on_loss() came before."""

    def on_smaller_packets(self, delivered: int, in_flight: int) -> None:
        """The path's MTU has become smaller and packets are sent again: no sign of congestion (RFC 1191)."""
        w = math.floor(self.cwnd + 1e-9)
        self.ssthresh = max(self.ssthresh, (w >> 1) + (w >> 2))

    def on_recovered(self, delivered: int, in_flight: int) -> None:
        """Fast recovery is over: the window becomes ssthresh."""
        self.cwnd = self.ssthresh

    def on_congestion_notified(self, now_s: float) -> None:
        """A mark has come back (ECN) or the host itself dropped a packet; on_loss() came before."""

    def on_undone_recovery(self, delivered: int, in_flight: int) -> None:
        """Fast recovery ends early, since the loss was none: on_undo() came before."""

    keeps_flight_after_timeout = True
    """Whether what is still taken to be in flight comes on top of the window after a timeout."""

    def on_timeout(self, delivered: int, in_flight: int) -> None:
        """The retransmission timer expired; on_loss() came before."""
        self.cwnd = 1.0

    def on_retransmission_lost(self) -> None:
        """A retransmitted packet was lost again."""


class Reno(Specification):
    """What most of the algorithms do outside their own rules (RFC 5681)."""

    @property
    def window(self) -> int:
        """What TCP can send: whole packets."""
        return math.floor(self.cwnd + 1e-9)

    @property
    def slow_start(self) -> bool:
        return self.window < self.ssthresh

    def grow_slow_start(self, acked: int) -> int:
        """One packet per packet ACKed up to ssthresh; what is left is for congestion avoidance."""
        grown = min(self.window + acked, self.ssthresh)
        left = acked - (grown - self.window)
        self.cwnd = float(grown)
        return int(left)

    def grow_avoidance(self, acked: int, per_round: float = 1.0) -> None:
        """per_round / W for every packet ACKed, W taken in whole packets when the ACK comes (RFC 5681 section 3.1)."""
        self.cwnd += acked * per_round / self.window

    def on_ack(self, ack: Ack) -> None:
        if not ack.limited:
            return
        left = self.grow_slow_start(ack.acked) if self.slow_start else ack.acked
        if left:
            self.grow_avoidance(left)

    def on_loss(self, now_s: float) -> None:
        self.ssthresh = max(2.0, self.window // 2)

    def on_undo(self) -> None:
        """The window comes back in whole packets: what counted towards the next one begins anew with each loss."""
        super().on_undo()
        self.cwnd = float(self.window)


class Round:
    """A round trip: over when the first packet sent after its beginning is delivered."""

    def __init__(self) -> None:
        self._end = 0

    def begin(self, delivered: int, in_flight: int) -> None:
        self._end = delivered + in_flight

    def over(self, delivered: int) -> bool:
        return delivered > self._end


class RoundTrips(Specification):
    """What algorithms keep that compare a round's RTTs with the least one."""

    def __init__(self, cwnd: float, now_s: float = 0.0) -> None:
        super().__init__(cwnd, now_s)
        self.base_rtt = math.inf
        self.rtts: list[float] = []
        """Of this round."""
        self.round = Round()

    def forget_rtts(self) -> None:
        self.base_rtt = math.inf
        self.rtts.clear()

    def on_smaller_packets(self, delivered: int, in_flight: int) -> None:
        super().on_smaller_packets(delivered, in_flight)
        self._next_round(delivered, in_flight)

    def on_start(self, delivered: int, in_flight: int) -> None:
        self._next_round(delivered, in_flight)

    def on_undone_recovery(self, delivered: int, in_flight: int) -> None:
        self._next_round(delivered, in_flight)

    def _next_round(self, delivered: int, in_flight: int) -> None:
        self.rtts.clear()
        self.round.begin(delivered, in_flight)

    def on_sample(self, rtt_s: float | None, acked: int, now_s: float, *, recovering: bool = False) -> None:
        if rtt_s is not None:
            self.base_rtt = min(self.base_rtt, rtt_s)
            self.rtts.append(rtt_s)
