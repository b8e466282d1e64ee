# SPDX-License-Identifier: Apache-2.0
"""Congestion controls in BPF: the project's sources, and objects from sources, kept in the cache by what they are made of.

python -m kernels.bpf_objects FILE.bpf.c    makes the object and prints its path
"""

from __future__ import annotations

import argparse
import functools
import re
import subprocess
import sys
from pathlib import Path

from base.cache import aside, digest, sha256_of, used
from base.errors import UsageError, WarpbedError
from base.paths import ROOT, cache_dir
from kernels.errors import BuildError

FOLDER = ROOT / "kernels/bpf"
SOURCE_END, OBJECT_END = ".bpf.c", ".o"
NAME = re.compile(r"[a-z][a-z0-9_]{0,14}")
"""The kernel has 15 characters for an algorithm's name."""
COMPILER = "clang"
SOURCE_AT = "/warpbed"
"""Where a source seems to lie: the description has its path, and the object's digest is part of a run's identity."""
FLAGS = (
    "-O2", "-g", f"-fdebug-compilation-dir={SOURCE_AT}", "-Wall", "-Werror", "-target", "bpf",
    "-I", "/usr/include/x86_64-linux-gnu",
)  # fmt: skip
"""-g: libbpf finds the kernel's structures by the description that debugging has."""
REMEDY = "As root: apt-get install --no-install-recommends clang libbpf-dev libc6-dev linux-libc-dev"
ELF, MACHINE_AT, BPF_MACHINE = b"\x7fELF", 18, 247
HEADER_BYTES = 20


def own() -> dict[str, Path]:
    """The project's algorithms in BPF: name → source."""
    return {path.name.removesuffix(SOURCE_END): path for path in sorted(FOLDER.glob(f"*{SOURCE_END}"))}


def object_of(path: Path) -> Path:
    """The object of a source, or an object as it is given.

    Raises UsageError for a file that is neither, and BuildError with the compiler's words.
    """
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file; name a source ({SOURCE_END}) or an object ({OBJECT_END})")
    if path.name.endswith(SOURCE_END):
        return _built(path)
    with path.open("rb") as stream:
        head = stream.read(HEADER_BYTES)
    machine = int.from_bytes(head[MACHINE_AT:HEADER_BYTES], "little")
    if not head.startswith(ELF) or len(head) < HEADER_BYTES or machine != BPF_MACHINE:
        raise UsageError(
            f"{path} is no BPF object; make one with {COMPILER} -target bpf -g, or name the source ({SOURCE_END})"
        )
    return path


def _built(source: Path) -> Path:
    headers = sorted({*FOLDER.glob("*.h"), *source.parent.glob("*.h")})
    sums = [sha256_of(file) for file in (source, *headers)]
    final = cache_dir() / "bpf" / digest([sums, FLAGS, _compiler()])[:20]
    name = f"{source.name.removesuffix('.c')}{OBJECT_END}"
    with aside(final, marker=name) as made:
        if made:
            folders = [
                word
                for folder in (FOLDER, source.parent)
                for word in ("-I", str(folder), f"-ffile-prefix-map={folder}={SOURCE_AT}")
            ]
            line = [COMPILER, *FLAGS, *folders, "-c", str(source), "-o", str(made[0] / name)]
            completed = subprocess.run(line, capture_output=True, text=True)
            if completed.returncode:
                raise BuildError(
                    f"{source} cannot be made with {COMPILER}:\n{completed.stderr.strip()[-2000:]}\nIf headers are missing: {REMEDY}"
                )
    return used(final) / name


@functools.cache
def _compiler() -> str:
    try:
        return subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=True).stdout.partition(
            "\n"
        )[0]
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"an algorithm in BPF C needs {COMPILER}: {error}. {REMEDY}") from error


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="kernels.bpf_objects", description="make the object of an algorithm in BPF C")
    parser.add_argument("source", type=Path)
    try:
        print(object_of(parser.parse_args(arguments).source))
    except WarpbedError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
