# SPDX-License-Identifier: Apache-2.0
"""python -m tests.harness.cycles N: load all modules, send with each algorithm, unload all, N times; does memory grow?

Exit code 1 where it does, 2 where the call is wrong.  A kernel built with KASAN or kmemleak can be named with
WARPBED_TEST_KERNEL; whatever it prints then fails the guest.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Sequence

from hosts.virtual.boot import Kernel
from hosts.virtual.kernel import find
from kernels import module_source
from tests.harness.harness import run_cycles

SETTLE = 10
"""Cycles in which caches still fill."""
LEAST = 20
NOISE_KB = 64
"""Growth between the first and the last quarter that is none: pages that caches and the ring of freed objects hold."""
NOISE_KB_PER_CYCLE = 0.05


@dataclasses.dataclass(frozen=True)
class Cycles:
    modules: tuple[str, ...]
    algorithms: list[str]
    figures: list[dict[str, int]]
    """kB after each cycle, by the names of /proc/meminfo."""

    def growth_kb(self) -> dict[str, float]:
        """Median of the last quarter less that of the first, after the settling."""
        rows = self.figures[SETTLE:]
        quarter = max(1, len(rows) // 4)
        return {
            name: statistics.median(row[name] for row in rows[-quarter:])
            - statistics.median(row[name] for row in rows[:quarter])
            for name in rows[0]
        }

    def leaks(self) -> dict[str, float]:
        """Growth beyond noise."""
        allowed = min(NOISE_KB, 16 + NOISE_KB_PER_CYCLE * len(self.figures))
        return {name: grown for name, grown in self.growth_kb().items() if grown > allowed}

    def __str__(self) -> str:
        grown = ", ".join(f"{name} {value:+g} kB" for name, value in self.growth_kb().items())
        return f"{len(self.figures)} cycles of {len(self.modules)} modules, {len(self.algorithms)} algorithms: {grown}"


def all_modules() -> tuple[str, ...]:
    return tuple(dict.fromkeys(module.stem for module in module_source.by_name().values()))


def measure(kernel: Kernel, count: int) -> Cycles:
    modules, algorithms = all_modules(), sorted(module_source.by_name())
    return Cycles(modules, algorithms, run_cycles(kernel, modules, algorithms, count))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.cycles", description=__doc__)
    parser.add_argument("count", type=_count, help=f"how often, at least {LEAST}")
    measured = measure(find("default"), parser.parse_args(arguments).count)
    print(measured)
    for name, grown in measured.leaks().items():
        print(f"{name} grew by {grown:g} kB", file=sys.stderr)
    return 1 if measured.leaks() else 0


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < LEAST:
        raise argparse.ArgumentTypeError(f"{text!r}: a whole number from {LEAST} on")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
