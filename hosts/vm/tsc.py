# SPDX-License-Identifier: Apache-2.0
"""How fast this machine's time stamp counter runs, for emulated machines that can ask nobody.

QEMU's emulated CPU passes this machine's counter on, and the machine has no other clock to learn its rate from: without being
told, its clock would count ticks of a millisecond.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import time

READ_COUNTER = bytes.fromhex("0f31 48c1e220 4809d0 c3")
"""rdtsc; shl rdx, 32; or rax, rdx; ret"""
MEASURE_S = 0.3


@functools.cache
def khz() -> int:
    """Ticks per millisecond, measured against CLOCK_MONOTONIC_RAW; a few parts per million off at most."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
        page.write(READ_COUNTER)
        place = ctypes.c_char.from_buffer(page)
        read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(place))
        begun, first = _together(read)
        time.sleep(MEASURE_S)
        ended, last = _together(read)
        del read, place  # or else the page could not be closed
    return round((last - first) * 1e6 / (ended - begun))


def _together(read: ctypes._CFunctionType) -> tuple[int, int]:
    """Time (ns) and counter of one moment: the closest of several attempts."""
    best: tuple[int, int, int] | None = None
    for _ in range(50):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        counter = read()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2, counter)
    assert best is not None
    return best[1], best[2]
