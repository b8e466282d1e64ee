# SPDX-License-Identifier: Apache-2.0
"""First process of a guest that reads its clock: by itself (monotonic, real), and by system calls (monotonic raw), in turn."""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agent import init
from base.linux import power_off
from plan.console import say

ROUNDS = 30
LOOP = 400
"""Reads at a stretch: beyond 250 the kernel lets time pass."""

if __name__ == "__main__":
    init.mount_all()
    try:
        time.sleep(0.01)
        clocks = (time.CLOCK_MONOTONIC, time.CLOCK_MONOTONIC_RAW, time.CLOCK_REALTIME)
        rounds = [[time.clock_gettime_ns(clock) for clock in clocks] for _ in range(ROUNDS)]
        time.sleep(0.01)
        loop = [time.monotonic_ns() for _ in range(LOOP)]
        say("reads " + json.dumps({"rounds": rounds, "loop": loop}))
    finally:
        power_off()
