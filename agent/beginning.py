# SPDX-License-Identifier: Apache-2.0
"""A run in virtual time, and each step before it, begins in a state that does not remember what came before.

Everything that happens draws random numbers: each process and thread its canary and its place in memory, each file of a tmpfs
its generation, Python its hashes. How much happens depends on the programs and on the machine's files, and so does
how long it takes. Before each step the kernel's generator is therefore seeded again with what `um_seed=` says
(kernels/patches/um-seeded-random.patch), at a fixed time: ports, sequence numbers, time stamp offsets, cookies, and what a queue
draws when it is made are then those of the seed. The time matters by itself, too: the kernel takes an IP identification from
how long ago the last one was taken (ip_idents_reserve() of net/ipv4/route.c). Waiting costs nothing in virtual time.
"""

from __future__ import annotations

import fcntl
import math
import time

from agent.errors import RunError
from agent.pace import Alone
from agent.schedule import sleep_until

RNDRESEEDCRNG = 0x5207
"""_IO('R', 0x07) of linux/random.h."""
STEP_S = 300
"""Steps begin at multiples of this; a boot takes less than a hundredth of it."""
STEPS = ("booted", "built", "probed")
QUIET_S = 0.5
"""From here to the run's start nothing is prepared any more."""


def seed_again() -> None:
    """Put the kernel's random numbers back to a point that depends on the guest's seed and on how often this was called."""
    with open("/dev/urandom", "rb", buffering=0) as device:
        fcntl.ioctl(device, RNDRESEEDCRNG)


class Forgetful(Alone):
    """Virtual time, which costs nothing while nobody works: every step at a time of its own, with random numbers of its own.

    Raises RunError where the boot, the only step that depends on the machine, took longer than a step may.
    """

    def gate(self, name: str) -> None:
        if name not in STEPS:
            return
        now_s = time.monotonic()
        if name == STEPS[0] and now_s > STEP_S:
            raise RunError(
                "boot", "guest", f"it took {now_s:.1f} virtual seconds, more than {STEP_S}: the run would differ"
            )
        sleep_until(math.ceil(now_s / STEP_S) * STEP_S)
        seed_again()

    def start_s(self, settle_s: float, grid_s: int) -> float:
        start_s = super().start_s(settle_s, grid_s)
        sleep_until(start_s - QUIET_S)
        seed_again()
        return start_s
