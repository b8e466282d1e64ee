# SPDX-License-Identifier: Apache-2.0
"""Congestion controls in BPF: the project's sources, and objects from sources, kept in the cache by what they are made of.

python -m kernels.bpf_objects FILE.bpf.c    makes the object and prints its path

A source may come from somebody else, and compiling is the first thing that is done with it. So the compiler opens nothing but the
source, the headers beside it and what the distribution has installed: no other file's content comes into an object or a message.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from base import landlock
from base.cache import aside, digest, sha256_of, used
from base.errors import UsageError, WarpbedError
from base.linux import die_with_parent
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
MOST_BYTES = 4 << 20
"""Of a source or an object; the kernel's own examples have a few hundred thousand."""
MOST_HEADERS, HEADER_BYTES_AT_MOST = 100, 16 << 20
"""Beside a source; a kernel's whole description (vmlinux.h) has 3 MB."""
CPU_S, WALL_S, MEMORY_BYTES, OUTPUT_BYTES = 20, 120, 2 << 30, 16 << 20
"""For one source, which takes a fifth of a second and 100 MB; output: the object, and the compiler's words."""
ALL_S = 300
"""For all sources of a command: a sweep can name many."""
_spent_s: list[float] = []
WORDS = 2000
"""Of the compiler's, the last characters."""
TRUST = "WARPBED_TRUST_BPF"
"""Set to 1 by a user who knows the BPF programs of an experiment file."""
SYSTEM = tuple(
    Path(name)
    for name in (
        "/usr/bin", "/usr/include", "/usr/lib", "/usr/lib64", "/usr/libexec", "/bin", "/lib", "/lib64",
        "/etc/alternatives", "/etc/ld.so.cache", "/dev/null", "/dev/urandom",
    )
)  # fmt: skip
"""What a compiler needs, and everybody has."""


def own() -> dict[str, Path]:
    """The project's algorithms in BPF: name → source."""
    return {path.name.removesuffix(SOURCE_END): path for path in sorted(FOLDER.glob(f"*{SOURCE_END}"))}


def object_of(path: Path) -> Path:
    """The object of a source, or an object as it is given.

    Raises UsageError for a file that is neither, and BuildError with the compiler's words.
    """
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file; name a source ({SOURCE_END}) or an object ({OBJECT_END})")
    if (length := path.stat().st_size) > MOST_BYTES:
        raise UsageError(f"{path}: {length} bytes; an algorithm has at most {MOST_BYTES}")
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


def is_trusted() -> bool:
    """Whether the user says that the programs of the experiment file may do what they like."""
    return os.environ.get(TRUST) == "1"


def _headers(source: Path) -> list[Path]:
    """Those beside a source and the project's; one that is a link out of the folder is none."""
    beside = [file for file in source.parent.glob("*.h") if file.resolve().parent == source.parent.resolve()]
    headers = sorted({*FOLDER.glob("*.h"), *(file for file in beside if file.is_file())})
    if len(headers) > MOST_HEADERS or sum(file.stat().st_size for file in headers) > HEADER_BYTES_AT_MOST:
        raise UsageError(
            f"{source.parent}: {len(headers)} headers beside {source.name}; at most {MOST_HEADERS} with {HEADER_BYTES_AT_MOST} bytes in all"
        )
    return headers


def _built(source: Path) -> Path:
    headers = _headers(source)
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
            line = [COMPILER, *FLAGS, "-fno-crash-diagnostics", *folders, "-c", str(source), "-o", str(made[0] / name)]
            if why := _compiled(line, [source, *headers], made[0]):
                raise BuildError(f"{source} cannot be made with {COMPILER}:\n{why}\nIf headers are missing: {REMEDY}")
    return used(final) / name


def _compiled(line: Sequence[str], files: Sequence[Path], folder: Path) -> str:
    """Let the compiler make an object in a folder, within limits; why it could not, empty where it could."""
    is_caged = files[0].parent != FOLDER and not is_trusted()
    if is_caged and not landlock.version():
        raise UsageError(
            f"{files[0]}: a source beside an experiment file is compiled where it can read no other file, which this kernel cannot see to "
            f"(Landlock, Linux 5.13); make the object yourself and name that, or read the source and allow it with {TRUST}=1"
        )
    if sum(_spent_s) > ALL_S:
        raise BuildError(
            f"{files[0]}: the {len(_spent_s)} sources before it took {sum(_spent_s):.0f} s; at most {ALL_S} s are given to all; "
            f"make objects with {COMPILER} and name those"
        )
    compiler = Path(shutil.which(COMPILER) or COMPILER).resolve()
    readable = [*SYSTEM, compiler.parent, compiler.parent.parent / "lib", *(file.resolve() for file in files)]

    def confine() -> None:
        for kind, most in (
            (resource.RLIMIT_CPU, CPU_S),
            (resource.RLIMIT_AS, MEMORY_BYTES),
            (resource.RLIMIT_FSIZE, OUTPUT_BYTES),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(kind, (most, most))
        if is_caged:
            landlock.restrict(readable, [folder])
        die_with_parent()

    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "TMPDIR": str(folder)}
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=words, stderr=words, env=environment, preexec_fn=confine,
            start_new_session=True,
        )  # fmt: skip
        begun = time.monotonic()
        try:
            code = process.wait(WALL_S)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
        finally:
            _spent_s.append(time.monotonic() - begun)
        length = words.seek(0, os.SEEK_END)
        words.seek(max(0, length - WORDS))
        said = words.read().decode(errors="replace").strip()
    if code < 0 or code > 128 or "out of memory" in said:
        return f"it takes more than {CPU_S} s of CPU, {MEMORY_BYTES >> 30} GiB of memory or {OUTPUT_BYTES >> 20} MiB of output"
    return (said or f"it ended with {code}") if code else ""


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
