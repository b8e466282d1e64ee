# SPDX-License-Identifier: Apache-2.0
"""First process of a guest whose boot is another one: it starts programs, reads files, draws, sleeps, works, then
does what agent/init.py does.

python -B -I other_boot.py WORK=N ...      (benchmarks.conditions)
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

INIT = Path(__file__).resolve().parents[1] / "agent/init.py"
PAGE_BYTES = 4096


def spawn(count: int) -> None:
    for _ in range(count):
        subprocess.run(["/bin/true"], check=True)


def draw(count: int) -> None:
    for _ in range(count):
        os.getrandom(64)


def sleep(milliseconds: int) -> None:
    time.sleep(milliseconds / 1e3)


def spin(count: int) -> None:
    """System calls without a rest, for which the kernel's scheduler accounts."""
    for _ in range(count):
        os.getppid()


def touch(mebibytes: int) -> None:
    memory = bytearray(mebibytes << 20)
    memory[::PAGE_BYTES] = b"1" * (len(memory) // PAGE_BYTES)


def files(count: int) -> None:
    """As if more packages were installed, of which something is looked at."""
    folders = [Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/bin"), Path("/usr/lib")]
    names = [file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir())]
    for file in names[:count]:
        if file.is_file():
            with file.open("rb") as content:
                content.read(1 << 16)


WORK: dict[str, Callable[[int], None]] = {
    function.__name__: function for function in (spawn, draw, sleep, spin, touch, files)
}


def main() -> None:
    for word in sys.argv[1:]:
        name, _, count = word.partition("=")
        if name in WORK:  # the kernel adds words of its own
            WORK[name](int(count))
    sys.argv = [str(INIT)]
    runpy.run_path(str(INIT), run_name="__main__")


if __name__ == "__main__":
    main()
