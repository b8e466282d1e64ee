# SPDX-License-Identifier: Apache-2.0
"""Drive a specification with what the kernel's hooks saw and compare the windows at every step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable

from kernels.reference.base import Ack, Specification
from tests.harness.harness import STATES, Hook
from tests.harness.samples import Samples

INFINITE_SSTHRESH = 0x7FFFFFFF
CWND_RESTART = 1
"""enum tcp_ca_event"""
REDUCING = (STATES.index("cwr"), STATES.index("recovery"))


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
    retransmissions_lost: int = 0
    smaller_packets: int = 0
    pairs: int = 0
    estimates: int = 0
    mismatches: list[Mismatch] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.windows} windows, {self.thresholds} thresholds, {self.losses} losses, {self.timeouts} timeouts, "
            f"{self.retransmissions_lost} retransmissions lost, {self.undos} undone, {self.pairs} pairs, "
            f"{self.estimates} estimates: {len(self.mismatches)} mismatches"
        )


def compare(
    hooks: Iterable[Hook],
    make: Callable[[Hook], Specification],
    tolerance_packets: float = 0.0,
    tolerance_share: float = 0.0,
    believe: Callable[[Hook], Samples] = Samples,
) -> Comparison:
    """Feed one flow's hooks to make(first hook) and compare after each; believe decides which RTTs the specification gets.

    The specification's window is rounded down, as TCP sends whole packets.  During fast recovery the kernel's
    proportional rate reduction owns the window, so it is compared again once recovery is over.  An application-limited
    kernel shrinks the window by itself (RFC 2861), as does an undo: the specification is then told the kernel's window.
    So it is where a loss is found while rate reduction owns the window: without SACK the kernel stays in recovery until
    something beyond it is ACKed, and if nothing is, the timeout's ssthresh comes from that reduced window.
    """
    result = Comparison()
    spec: Specification | None = None
    samples: Samples
    start_us = 0
    last_rtt: float | None = None
    last_cwnd = 0
    undone = recovered = owns_window = estimated = reduced = False
    for h in hooks:
        now_s = h.now_us / 1e6
        if h.hook == "I":
            spec, start_us = make(h), h.now_us
            samples = believe(h)
            spec.on_start(h.delivered, h.in_flight)
            last_cwnd, undone, reduced = h.cwnd, False, False
            continue
        if spec is None:
            continue

        def check(what: str, kernel: float, specification: float, hook: Hook = h, begun_us: int = start_us) -> None:
            wanted = specification if math.isinf(specification) else math.floor(specification)
            if kernel == INFINITE_SSTHRESH:
                kernel = math.inf
            if kernel != wanted and not abs(kernel - wanted) <= max(tolerance_packets, tolerance_share * kernel):
                at_s = (hook.now_us - begun_us) / 1e6
                result.mismatches.append(Mismatch(at_s, hook.hook, what, kernel, wanted))

        spec.clock_ns = h.now_ns
        spec.on_delivered(h.delivered)
        spec.on_duplicates(min(h.duplicates, h.retrans))
        if h.hook == "P":
            last_rtt = samples.rtt_s(h)
            if samples.larger:
                spec.forget_rtts()
            if spec.grows_on_duplicates and h.state in (0, 1) and h.cwnd < last_cwnd:
                spec.cwnd = float(h.cwnd)  # nothing but the kernel shrinks it here
            spec.on_acknowledged(h.una, h.count, now_s, limited=h.limited)
            if recovered and h.state in (0, 1):
                check("cwnd", h.cwnd, spec.cwnd)
                result.windows += 1
            elif spec.grows_on_duplicates and h.state in (0, 1):
                check("cwnd", h.cwnd, spec.cwnd)
            elif h.state in (0, 1) and h.cwnd != last_cwnd:
                spec.cwnd, last_cwnd = float(h.cwnd), h.cwnd
            spec.on_sample(last_rtt, h.count, now_s, recovering=h.state >= 2)
        elif h.hook == "A":
            limited = h.filled if spec.fills_window else bool(h.rtt_us)
            spec.on_ack(Ack(h.count, now_s, last_rtt, h.delivered, h.in_flight, limited, h.unsent))
            check("cwnd", h.cwnd, spec.cwnd)
            result.windows += 1
        elif h.hook == "D":
            spec.on_pair(h.count, h.rtt_us / 1e6)
            result.pairs += 1
        elif h.hook == "M":
            estimated = True
            continue
        elif h.hook == "C":
            owns_window = True
            spec.on_control(h.count, now_s, loss=bool(h.rtt_us & 1), limited=not h.rtt_us & 2, idle=h.nothing_to_send)
            check("cwnd", h.cwnd, spec.cwnd)
            result.windows += 1
        elif h.hook == "L":
            undone, reduced = False, True
            if h.state in REDUCING and not owns_window:
                spec.cwnd = float(h.cwnd)
            spec.on_loss(now_s)
            check("ssthresh", h.count, spec.ssthresh)
            result.thresholds += 1
            result.losses += 1
        elif h.hook == "X":
            spec.on_retransmission_lost()
            check("ssthresh", h.count, spec.ssthresh)
            result.retransmissions_lost += 1
        elif h.hook == "U":
            spec.cwnd, undone = float(h.count), True
            result.undos += 1
        elif h.hook == "E" and h.count == CWND_RESTART:
            spec.on_restart(h.delivered, h.in_flight)
        elif h.hook == "S":
            if h.count == STATES.index("loss") and not reduced:
                spec.on_smaller_packets(h.delivered, h.in_flight)
                check("cwnd", h.cwnd, spec.cwnd)
                result.smaller_packets += 1
            elif h.count == STATES.index("loss"):
                if h.state != STATES.index("loss"):
                    spec.on_first_timeout()
                spec.on_timeout(h.delivered, h.in_flight)
                check("cwnd", h.cwnd, spec.cwnd)
                result.timeouts += 1
            elif h.count == STATES.index("open") and h.state in (2, 3):
                spec.on_recovered(h.delivered, h.in_flight)
                recovered = not undone  # the kernel may set the window only after this hook
            reduced = reduced and h.count >= STATES.index("cwr")
        if estimated:
            check("ssthresh", h.ssthresh, spec.ssthresh)
            result.estimates += 1
            estimated = False
        recovered = recovered and h.hook == "S"
        last_cwnd = h.cwnd
    return result
