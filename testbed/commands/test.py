# SPDX-License-Identifier: Apache-2.0
"""`./warpbed test`: run the tests, after what the chosen ones need was installed and built."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from base.paths import ROOT
from kernels import series as kernel_series
from testbed import ansible

HELP = "run the tests; --quick: those that need no kernel, root, Docker or QEMU"
QUICK = "--quick"
NEEDS = ("guest", "machine", "database", "docker", "browser", "network", "root", "playbook", "style", "slow")
"""Markers that say that a test is not one of the quick ones; tests/needs.py sets them."""
SMALLEST = frozenset({"packages", "collector"})
ALL = SMALLEST | {"programs", "kernel", "database", "machines", "disk"}
NOT_QUICK = ("browser", "fuzz", "guest", "long", "playbooks", "style")
"""Folders below tests/ of which each test needs something, or time; --quick does not read them."""
# folder below tests/ → parts of playbooks/test_environment.yml that its tests need
PARTS = {
    "unit": SMALLEST,
    "long": SMALLEST,
    "browser": SMALLEST | {"programs"},
    "guest": SMALLEST | {"programs", "kernel"},
    "style": SMALLEST | {"programs", "kernel"},
    "store": SMALLEST | {"programs", "kernel", "database"},
}
SPECIFICATION = "test_spec_"
"""What files of tests/kernels begin with that compare a module with its specification, in guests; `new-algorithm` writes one."""
WORKERS_A_CORE = 2
"""Hosts over SSH, campaigns and containers wait for real time more than they compute. Quick tests do less: one, and one more.

Three leave the CPUs idle for less of the time, but take longer in all: the one file of the emulated PC computes for seven minutes, and had
a sixth of two CPUs instead of a quarter (1783 s against 1707, one run of each).
"""
MEMORY_PLACE, MEMORY_BYTES = Path("/dev/shm"), 4 << 30
"""Where the quick tests have their folders, and the free memory that they ask for: they write many files and wait for each."""
OWN_FOLDERS = ("-o", "tmp_path_retention_policy=failed", "-o", "tmp_path_retention_count=1")
AT_ONCE = (("kernel",), ("machines",), ("collector", "database", "disk"))
"""Parts that are built beside one another, once the packages are there."""


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments for pytest")


def main(options: argparse.Namespace) -> int:
    return run_pytest(options.arguments)


def run_pytest(arguments: list[str]) -> int:
    """Install and build what the tests need, then run pytest."""
    chosen = [argument for argument in arguments if argument != QUICK]
    is_quick = len(chosen) < len(arguments)
    code = _set_up(parts_of(chosen, is_quick))
    if code:
        return code
    options: list[str] = []
    if is_quick:
        options = ["-m", f"not ({' or '.join(NEEDS)})", *(f"--ignore=tests/{folder}" for folder in NOT_QUICK)]
    if is_quick or not arguments:
        cores = len(os.sched_getaffinity(0))
        workers = cores + 1 if is_quick else cores * WORKERS_A_CORE
        options += ["--numprocesses", str(workers), "--dist", "loadfile", "--no-loadscope-reorder"]
    if is_quick and "TMPDIR" not in os.environ and holds(MEMORY_PLACE, MEMORY_BYTES):
        os.environ["TMPDIR"] = str(MEMORY_PLACE)
        options += OWN_FOLDERS
    command = [sys.executable, "-P", "-m", "pytest", *options, *chosen]
    os.chdir(ROOT)
    return os.execv(command[0], command)


def holds(place: Path, needed_bytes: int) -> bool:
    """Whether a file system in memory has room, and may hold programs; a container's is often small or forbids them."""
    try:
        there = os.statvfs(place)
    except OSError:
        return False
    is_free = min(there.f_bavail * there.f_frsize, _available_bytes()) >= needed_bytes
    return is_free and not there.f_flag & os.ST_NOEXEC and os.access(place, os.W_OK)


def _available_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), 0)


def parts_of(arguments: Sequence[str], is_quick: bool = False) -> frozenset[str]:
    """What is to be set up for pytest's arguments: everything, unless they name files or folders that need less.

    An option's value that happens to be a path is taken for one that the tests lie in, which at worst sets up more.
    """
    if is_quick:
        return SMALLEST
    named = [argument.partition("::")[0] for argument in arguments if not argument.startswith("-")]
    paths = [(ROOT / name).resolve() for name in named if (ROOT / name).exists()]
    parts: frozenset[str] = frozenset() if paths else ALL
    for path in paths:
        inside = path.relative_to(ROOT / "tests").parts if path.is_relative_to(ROOT / "tests") else ()
        is_specification = inside[:1] == ("kernels",) and inside[-1].startswith(SPECIFICATION)
        parts |= PARTS["guest"] if is_specification else PARTS.get(inside[0], ALL) if inside else ALL
    return parts


def _set_up(parts: frozenset[str]) -> int:
    first = parts & {"packages", "programs"}
    together = [parts.intersection(group) for group in AT_ONCE if parts.intersection(group)]
    if len(together) == 1:
        return _play(first | together[0])
    code = _play(first)
    if code:
        return code
    with ThreadPoolExecutor(len(together)) as plays:
        return max(plays.map(_play, together))


def _play(parts: frozenset[str]) -> int:
    variables = {"kernel_build_series": kernel_series.DEFAULT, "test_parts": sorted(parts)}
    return ansible.play("test_environment.yml", variables, failed_early=1)
