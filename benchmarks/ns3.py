# SPDX-License-Identifier: Apache-2.0
"""Programs for ns-3, where Debian's libns3-dev is installed, and the path of benchmarks.virtual_speed in it (benchmarks/ns3_line.cc)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parent / "ns3_line.cc"
LIBRARIES = tuple(
    f"ns3-{name}" for name in ("core", "network", "internet", "point-to-point", "applications", "traffic-control")
)
REMEDY = "As root: apt-get install libns3-dev g++ pkg-config"


def is_there() -> bool:
    """Can programs for ns-3 be built on this machine?"""
    if not (shutil.which("pkg-config") and shutil.which("g++")):
        return False
    return subprocess.run(["pkg-config", "--exists", *LIBRARIES], check=False).returncode == 0


def build(source: Path, folder: Path) -> str:
    """Compile a program for ns-3; its path. Raises CalledProcessError where that fails."""
    said = subprocess.run(["pkg-config", "--cflags", "--libs", *LIBRARIES], check=True, capture_output=True, text=True)
    # Debian's files for pkg-config name libraries that only ns-3's own build needs, by path
    flags = [flag for flag in said.stdout.split() if not flag.endswith(".so")]
    program = str(folder / source.stem)
    subprocess.run(["g++", "-O2", "-o", program, str(source), *flags], check=True)
    return program


class Program:
    """A program for ns-3, built in `folder`: asked with its arguments, it answers with the numbers that it prints."""

    def __init__(self, source: Path, folder: Path) -> None:
        self._program = build(source, folder)

    def __call__(self, _source: Path, *arguments: float | str) -> list[float]:
        """Raises CalledProcessError where it fails."""
        done = subprocess.run([self._program, *map(str, arguments)], check=True, capture_output=True, text=True)
        return [float(word) for word in done.stdout.split()]


def measure(rate_bps: float, buffer_bytes: int, window_bytes: int, duration_s: int, cpu: int) -> tuple[float, float]:
    """Virtual seconds per wall second, the start left out, and goodput in Mbit/s.

    Raises CalledProcessError where the program cannot be built or fails.
    """
    with tempfile.TemporaryDirectory(prefix="warpbed-ns3-") as folder:
        program = build(SOURCE, Path(folder))
        arguments = [str(number) for number in (int(rate_bps), buffer_bytes, window_bytes, duration_s)]
        command = ["taskset", "-c", str(cpu), program, *arguments]
        received, wall_s = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return duration_s / float(wall_s), int(received) * 8e-6 / duration_s
