# SPDX-License-Identifier: Apache-2.0
"""The bandwidth estimates of Westwood and of Westwood+, of which the kernel's `westwood` is the second.

Both filter samples of what ACKs say was delivered.  Westwood (Casetti et al. 2002) takes a sample with every ACK and
overestimates where ACKs come bunched; Westwood+ (Grieco and Mascolo 2004) takes one per round trip.  After a loss both set
ssthresh = estimate x least RTT.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kernels.reference.astart import Westwood as PerAck

GAIN = 1 / 8
LEAST_ROUND_S = 0.05


class WestwoodPlus:
    """One sample per RTT, of at least 50 ms, through two low-pass filters of gain 1/8 (as in net/ipv4/tcp_westwood.c)."""

    def __init__(self) -> None:
        self.samples = 0
        self.once = self.estimate = 0.0
        self._begun: float | None = None
        self._delivered = 0.0

    def add(self, delivered: float, now_s: float, rtt_s: float) -> None:
        """An ACK of so much new data."""
        if self._begun is None:
            self._begun = now_s
            return
        self._delivered += delivered
        if now_s - self._begun <= max(rtt_s, LEAST_ROUND_S):
            return
        sample = self._delivered / (now_s - self._begun)
        if self.samples:
            self.once += GAIN * (sample - self.once)
            self.estimate += GAIN * (self.once - self.estimate)
        else:
            self.once = self.estimate = sample
        self.samples += 1
        self._begun, self._delivered = now_s, 0.0


def estimates(acks: Iterable[tuple[float, float, float]], tau_s: float = 0.5) -> Iterator[tuple[float, float, float]]:
    """From (time s, newly delivered, RTT s) of ACKs: (time, Westwood's estimate, Westwood+'s), per second."""
    plus, per_ack, last = WestwoodPlus(), PerAck(tau_s), None
    bunch = 0.0
    for now_s, delivered, rtt_s in acks:
        plus.add(delivered, now_s, rtt_s)
        bunch += delivered
        if last is None or now_s - last >= 1e-6:
            if last is not None:
                per_ack.add(bunch / (now_s - last), now_s - last)
            last, bunch = now_s, 0.0
        yield now_s, per_ack.estimate, plus.estimate
