# SPDX-License-Identifier: Apache-2.0
"""python -m tests.harness.sanitize [N]: N times all modules, with losses, on a kernel that checks itself.

The kernel is the virtual host's with KASAN, kmemleak, UBSAN and lockdep; `./warpbed build-kernels --arch um-sanitize` builds
it. Exit code 1 where it complains or memory is lost, 2 where it is not built or the call is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from base.errors import WarpbedError
from hosts.virtual.kernel import load
from hosts.virtual.launch import GuestKernel
from kernels import module_source
from kernels import series as kernel_series
from kernels.build_key import find_build
from tests.harness.cycles import all_modules
from tests.harness.harness import GuestError, run_cycles

ARCH = "um-sanitize"
CYCLES = 5
LOSS_PERCENT = 3.0


def kernel() -> GuestKernel:
    """The build with checks that belongs to this checkout; raises WarpbedError where there is none."""
    try:
        build = find_build(kernel_series.DEFAULT, arch=ARCH)
    except WarpbedError as error:
        raise WarpbedError(str(error)) from error
    if not build.exists or build.path is None:
        raise WarpbedError(f"no kernel with checks is built; ./warpbed build-kernels --arch {ARCH} builds it")
    return load(Path(build.path))


def check(count: int = CYCLES) -> str:
    """Load all modules, send with each algorithm over a lossy path, unload all; what was done, in words.

    Raises GuestError with the kernel's words where it complains.
    """
    modules, algorithms = all_modules(), sorted(module_source.by_name())
    run_cycles(kernel(), modules, algorithms, count, loss_percent=LOSS_PERCENT)
    return (
        f"{count} cycles of {len(modules)} modules, {len(algorithms)} algorithms, {LOSS_PERCENT:g} % loss: no complaint"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.sanitize", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=CYCLES, choices=range(1, 1001), metavar="N")
    count = parser.parse_args(arguments).count
    try:
        print(check(count))
    except WarpbedError as error:
        print(error, file=sys.stderr)
        return 2
    except GuestError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
