# SPDX-License-Identifier: Apache-2.0
"""Drive a specification with what the kernel's hooks saw and compare windows and thresholds at every step.

Undo is the specification's, thresholds are compared at every hook, and a window that changes between hooks has to be explained.

What the specification is told comes from the stack, as far as the trace event records it (cwnd, ssthresh, what is in
flight and delivered, state, whether the window was in use), not from the module's own words: those are compared.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable

from kernels.reference.base import Ack, Specification
from tests.harness.harness import STATES, Hook
from tests.harness.samples import Samples

INFINITE_SSTHRESH = 0x7FFFFFFF
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(len(STATES))
CWND_RESTART = 1
REDUCING = (CWR, RECOVERY)
LEAST_RTO_S = 0.2
SLACK = 3
"""Two packets of limited transmit and the fast retransmit itself."""
INITIAL_WINDOW = 10
"""Not used for an RTO, the window shrinks towards this (RFC 2861, RFC 6928)."""


@dataclasses.dataclass(frozen=True)
class Mismatch:
    at_s: float
    hook: str
    what: str
    kernel: float
    specification: float


@dataclasses.dataclass
class Comparison:
    """How many windows were compared and where they differed by more than the tolerance."""

    windows: int = 0
    thresholds: int = 0
    losses: int = 0
    timeouts: int = 0
    undos: int = 0
    smaller_packets: int = 0
    unused: int = 0
    retransmissions_lost: int = 0
    pairs: int = 0
    estimates: int = 0
    largest: int = 0
    mismatches: list[Mismatch] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.windows} windows up to {self.largest}, {self.thresholds} thresholds, {self.losses} losses, "
            f"{self.timeouts} timeouts, {self.retransmissions_lost} retransmissions lost, {self.undos} undone, "
            f"{self.smaller_packets} times smaller packets, {self.unused} times not used, {self.pairs} pairs, "
            f"{self.estimates} estimates: {len(self.mismatches)} mismatches"
        )


def compare(
    hooks: Iterable[Hook],
    make: Callable[[Hook], Specification],
    tolerance_packets: float = 0.0,
    tolerance_share: float = 0.0,
    believe: Callable[[Hook], Samples] = Samples,
) -> Comparison:
    """Feed one flow's hooks to make(first hook) and compare window and threshold after each.

    The RTTs that it gets are those that believe lets through.

    The specification's window is rounded down, as TCP sends whole packets.  During fast recovery the kernel's
    proportional rate reduction owns the window; it only must not exceed the one before, and is compared again once
    recovery is over.  So it is where a loss is found while rate reduction owns the window: without SACK the kernel stays
    in recovery until something beyond it is ACKed, and if nothing is, the timeout's ssthresh comes from that reduced
    window.  Between hooks the window may change for two reasons alone: a loss was undone, or it was not used for an RTO (RFC 2861).
    """
    driver: _Driver | None = None
    result = Comparison()
    for hook in hooks:
        if hook.hook == "I":
            driver = _Driver(hook, make(hook), believe(hook), result, tolerance_packets, tolerance_share)
        elif driver is not None:
            driver.feed(hook)
    return result


class _Driver:
    def __init__(
        self,
        first: Hook,
        spec: Specification,
        samples: Samples,
        result: Comparison,
        tolerance_packets: float,
        tolerance_share: float,
    ) -> None:
        self.spec = spec
        self.samples = samples
        self.result = result
        self.tolerance = tolerance_packets, tolerance_share
        self.begun_us = first.now_us
        self.last = first
        self.delivered_before = first.delivered
        self.last_acked, self.countable = 0, False
        self.limited = True
        """Whether the stack says that the window was in use, before this ACK changed it."""
        self.rtt_s: float | None = None
        self.recover = first.nxt
        self.reported, self.twice = first.duplicates, 0
        self.undone = self.recovered = self.owns_window = self.estimated = False
        if first.delivered > 1 and first.ssthresh != INFINITE_SSTHRESH:  # chosen in the middle of a connection
            spec.ssthresh = float(first.ssthresh)
        spec.on_start(first.delivered, first.in_flight)

    def feed(self, h: Hook) -> None:
        self.spec.clock_ns = h.now_ns
        self.spec.on_delivered(h.delivered)
        if h.duplicates <= h.retrans:  # else the path has made some, and the stack does not count them as delivered
            self.twice += h.duplicates - self.reported
        self.reported = h.duplicates
        self.spec.on_duplicates(self.twice)
        self.result.largest = max(self.result.largest, h.cwnd)
        handler = _HANDLERS.get(h.hook)
        if handler is not None:
            handler(self, h)
        if h.hook in "PAC" or (self.estimated and h.hook != "M"):
            self.check(h, "ssthresh", h.ssthresh, self.spec.ssthresh)
            self.result.thresholds += 1
            self.result.estimates += self.estimated
            self.estimated = False
        for wrong in self.spec.wrong:
            self.differs(h, wrong, math.nan, math.nan)
        self.spec.wrong.clear()
        self.recovered = self.recovered and h.hook in "SE"
        self.last = h

    def differs(self, h: Hook, what: str, kernel: float, specification: float) -> None:
        at_s = (h.now_us - self.begun_us) / 1e6
        self.result.mismatches.append(Mismatch(at_s, h.hook, what, kernel, specification))

    def check(self, h: Hook, what: str, kernel: float, specification: float) -> None:
        wanted = specification if math.isinf(specification) else math.floor(specification + 1e-9)
        if kernel >= INFINITE_SSTHRESH:
            kernel = math.inf
        packets, share = self.tolerance
        if kernel != wanted and not abs(kernel - wanted) <= max(packets, share * kernel):
            self.differs(h, what, kernel, wanted)

    def explain(self, h: Hook) -> None:
        """What the stack did to the window since the last hook: nothing, or what an undo asked for, or it was not used for an RTO."""
        if self.last.hook == "U":  # outside of fast recovery, where a late DSACK asks for it
            self.check(h, "cwnd after an undo", h.cwnd, self.spec.cwnd)
            return
        idle = (h.now_us - self.last.now_us) / 1e6 >= LEAST_RTO_S
        if h.cwnd != self.last.cwnd:
            if not (idle or not self.limited) or not min(INITIAL_WINDOW, self.last.cwnd) <= h.cwnd < self.last.cwnd:
                self.differs(h, "cwnd between hooks", h.cwnd, self.last.cwnd)
            self.spec.on_unused(h.cwnd)
            self.result.unused += 1
        elif idle and h.ssthresh != self.last.ssthresh:
            self.spec.on_unused(h.cwnd)

    def on_sample(self, h: Hook) -> None:
        spec, outside = self.spec, h.state in (OPEN, DISORDER)
        # duplicate ACKs without SACK are counted only after this hook
        self.countable = self.last_acked > 0 and self.last.state == OPEN and h.state == OPEN
        self.last_acked, self.delivered_before = h.count, self.last.delivered
        self.rtt_s = self.samples.rtt_s(h)
        if self.samples.larger:
            spec.forget_rtts()
        if outside and not self.recovered and (not spec.grows_on_duplicates or h.cwnd < self.last.cwnd):
            self.explain(h)
        elif (
            h.state in REDUCING
            and not self.owns_window
            and h.cwnd > max(spec.before_reduction, h.ssthresh, self.last.in_flight, h.in_flight) + SLACK
        ):
            self.differs(h, "cwnd in recovery", h.cwnd, spec.before_reduction)
        self.limited = h.limited
        spec.stack_window = h.cwnd
        spec.on_acknowledged(h.una, h.count, h.now_us / 1e6, limited=h.limited)
        if outside and (self.recovered or spec.grows_on_duplicates):
            self.check(h, "cwnd", h.cwnd, spec.cwnd)
            self.result.windows += self.recovered
        spec.on_sample(self.rtt_s, h.count, h.now_us / 1e6, recovering=h.state >= CWR)

    def acked(self, h: Hook) -> int:
        """What this ACK delivered; where nothing is missing the module must have been told the same."""
        delivered = h.delivered - self.delivered_before
        if self.countable and h.state == OPEN and delivered != h.count:
            self.differs(h, "packets ACKed", h.count, delivered)
        return h.count

    def on_avoid(self, h: Hook) -> None:
        in_use = self.limited and not self.spec.grown
        if bool(h.rtt_us) != in_use:
            self.differs(h, "window in use", bool(h.rtt_us), in_use)
        ack = Ack(self.acked(h), h.now_us / 1e6, self.rtt_s, h.delivered, h.in_flight, self.limited, h.unsent)
        self.spec.on_ack(ack)
        self.check(h, "cwnd", h.cwnd, self.spec.cwnd)
        self.result.windows += 1

    def on_control(self, h: Hook) -> None:
        self.owns_window = True
        self.spec.on_control(
            h.count, h.now_us / 1e6, loss=bool(h.rtt_us & 1), limited=not h.rtt_us & 2, idle=h.nothing_to_send
        )
        self.check(h, "cwnd", h.cwnd, self.spec.cwnd)
        self.result.windows += 1

    def on_pair(self, h: Hook) -> None:
        self.spec.on_pair(h.count, h.rtt_us / 1e6)
        self.result.pairs += 1

    def on_estimate(self, h: Hook) -> None:
        self.estimated = True

    def on_loss(self, h: Hook) -> None:
        self.undone = False
        self.recover = h.nxt
        if h.state in REDUCING and not self.owns_window:
            self.spec.cwnd = float(h.cwnd)
        elif self.last.hook in "PAC":
            self.explain(h)
            self.check(h, "cwnd", h.cwnd, self.spec.cwnd)
        self.spec.stack_window = h.cwnd
        self.spec.before_loss(reducing=h.state in REDUCING)
        self.spec.on_loss(h.now_us / 1e6)
        self.check(h, "ssthresh", h.count, self.spec.ssthresh)
        self.result.thresholds += 1
        self.result.losses += 1

    def on_retransmission_lost(self, h: Hook) -> None:
        self.spec.on_retransmission_lost()
        self.check(h, "ssthresh", h.count, self.spec.ssthresh)
        self.result.retransmissions_lost += 1

    def on_undo(self, h: Hook) -> None:
        if (
            h.state in REDUCING and not self.owns_window
        ):  # which may be more than before: what limited transmit had sent is in flight
            self.spec.cwnd = float(h.cwnd)
        self.spec.on_undo()
        self.check(h, "cwnd undone", h.count, self.spec.cwnd)
        self.undone = True
        self.result.undos += 1

    def on_state(self, h: Hook) -> None:
        if h.count == LOSS and h.mss >= self.last.mss:
            if h.state != LOSS:
                self.spec.on_first_timeout()
            self.spec.on_timeout(h.delivered, h.in_flight)
            # what is not taken for lost is still counted in flight
            in_flight = h.in_flight if self.spec.keeps_flight_after_timeout else 0
            self.check(h, "cwnd", h.cwnd - in_flight, self.spec.cwnd)
            self.spec.cwnd += in_flight
            self.result.timeouts += 1
        elif h.count == LOSS:
            ssthresh = self.spec.ssthresh
            self.spec.on_smaller_packets(h.delivered, h.in_flight)
            if h.state in REDUCING:  # the threshold (tcp_current_ssthresh()) and the window are the reduction's
                self.spec.ssthresh = ssthresh
                if not self.owns_window:
                    self.spec.cwnd = float(h.cwnd)
            self.result.smaller_packets += 1
        elif h.count == CWR:
            self.spec.on_congestion_notified(h.now_us / 1e6)
        elif h.count == RECOVERY:
            self.spec.on_fast_retransmit(h.una, h.nxt)
        elif h.count == OPEN and h.state in REDUCING:
            self.end_reduction(h)

    def end_reduction(self, h: Hook) -> None:
        spec = self.spec
        kept = spec.cwnd, spec.ssthresh
        if not self.undone or (h.una - self.recover) % 2**32 < 2**31:
            spec.on_recovered(h.delivered, h.in_flight)
        else:
            spec.on_undone_recovery(h.delivered, h.in_flight)
        if self.undone:
            spec.cwnd, spec.ssthresh = kept
        self.recovered = True  # the kernel may set the window only after this hook

    def on_event(self, h: Hook) -> None:
        if h.count == CWND_RESTART:
            self.spec.on_restart(h.delivered, h.in_flight)


_HANDLERS: dict[str, Callable[[_Driver, Hook], None]] = {
    "P": _Driver.on_sample,
    "A": _Driver.on_avoid,
    "C": _Driver.on_control,
    "D": _Driver.on_pair,
    "M": _Driver.on_estimate,
    "L": _Driver.on_loss,
    "X": _Driver.on_retransmission_lost,
    "U": _Driver.on_undo,
    "S": _Driver.on_state,
    "E": _Driver.on_event,
}
