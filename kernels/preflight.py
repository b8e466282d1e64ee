# SPDX-License-Identifier: Apache-2.0
"""Check, before minutes are spent on it, that a kernel build can work on this machine."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

from base.errors import WarpbedError
from kernels import package
from kernels.build_key import arguments
from kernels.steps import ENVIRONMENT

PROGRAMS = {
    "bc": "bc",
    "bison": "bison",
    "dpkg-deb": "dpkg",
    "flex": "flex",
    "gcc": "build-essential",
    "ld": "build-essential",
    "make": "build-essential",
    "patch": "patch",
    "setpriv": "util-linux",
    "xz": "xz-utils",
}
GIB = 1 << 30


def check(cache: Path, free_gib: int, arch: str = "um") -> None:
    """Raise an error that says what to do, unless a build can start."""
    if platform.machine() != "x86_64":
        raise WarpbedError(f"this machine is {platform.machine()}; User-Mode Linux is built on x86_64 only")
    needed = {**PROGRAMS, **package.PROGRAMS} if arch == "x86" else PROGRAMS
    missing = {name for program, name in needed.items() if not shutil.which(program, path=ENVIRONMENT["PATH"])}
    if missing:
        raise WarpbedError(
            f"Debian packages are missing. As root: apt-get install --no-install-recommends {' '.join(sorted(missing))}"
        )
    existing = next(folder for folder in [cache, *cache.parents] if folder.is_dir())
    free = shutil.disk_usage(existing).free
    if free < free_gib * GIB:
        raise WarpbedError(
            f"{existing}: {free / GIB:.1f} GiB free, a kernel build needs {free_gib} while it runs\n"
            "Free some, or set WARPBED_CACHE to a folder on another disk."
        )


def main(argv: list[str] | None = None) -> int:
    """Exit with 2 and the reason if nothing should be started."""
    parser = arguments("Check that a kernel build can start.")
    parser.add_argument("--free-gib", type=int, default=3)
    options = parser.parse_args(argv)
    try:
        check(options.cache, options.free_gib, options.arch)
    except WarpbedError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
