# SPDX-License-Identifier: Apache-2.0
"""Which RTTs are those of a packet of full size that was sent once: decided from what the stack says, not the modules.

A sender's least RTT is to be propagation and one serialisation of a full packet on every link (Ho 2008 eqs 3.1 and 4.1).
"""

from __future__ import annotations

from tests.harness.harness import Hook

OPTIONS_BYTES = 40
"""TCP options take room that data would fill: packets that differ by less are of one size."""
MILLISECOND_US = 1000
"""After a retransmission the stack takes time stamps for a sample, which count these."""


class Samples:
    """The samples of one connection, hook by hook; ``larger`` says that packets have become larger with this one."""

    def __init__(self, first: Hook) -> None:
        self.una = first.una
        self.retransmitted = first.retrans
        self.once_from = first.nxt if first.retrans else first.una  # nothing from here on was sent twice
        self.bytes_per_packet = 0.0
        self.larger = False

    def rtt_s(self, hook: Hook) -> float | None:
        """The RTT that an ACK shows, None where it shows none."""
        before, self.una = self.una, hook.una
        self.larger = False
        self.bytes_per_packet = min(self.bytes_per_packet, hook.mss)
        if hook.retrans > self.retransmitted:
            self.retransmitted, self.once_from = hook.retrans, hook.nxt
        sent_twice = _after(self.once_from, before)
        if hook.rtt_us <= 0 or (sent_twice and hook.rtt_us % MILLISECOND_US == 0):
            return None
        duplicate = hook.packets_out > hook.in_flight  # packets are SACKed or lost: which one this was is not known
        under_way = (hook.nxt - hook.una) % 2**32
        if duplicate and under_way + OPTIONS_BYTES < hook.packets_out * self.bytes_per_packet:
            return None
        if hook.count and not self._full(((hook.una - before) % 2**32) / hook.count, hook.count):
            return None
        return hook.rtt_us / 1e6

    def _full(self, size: float, packets: int) -> bool:
        if size < self.bytes_per_packet - OPTIONS_BYTES / packets:
            return False
        if size > self.bytes_per_packet:
            self.larger = size > self.bytes_per_packet + OPTIONS_BYTES
            self.bytes_per_packet = float(int(size))
        return True


def _after(a: int, b: int) -> bool:
    return 0 < (a - b) % 2**32 < 2**31
