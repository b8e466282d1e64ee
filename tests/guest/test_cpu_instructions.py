# SPDX-License-Identifier: Apache-2.0
"""Instructions whose answer the CPU decides: the guest's kernel has none, and which of the guest's programs have some is known.

What they answer where they are used reaches no packet: rdtsc, rdrand and rdseed answer otherwise in each replay (test_replays.py). Of
what cpuid says glibc makes nothing (agent/plain_code.py), and in one of the replays what it would make of it ("another CPU's code").
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import plain_code
from hosts.virtual import pinned
from hosts.virtual.launch import GuestKernel

INSTRUCTION = re.compile(r"\t(?:data16 |rep |lock )*(rdtscp?|rdrand|rdseed|rdpid|cpuid|xgetbv)\b")
PROGRAMS = (
    "usr/bin/iperf3",
    "usr/bin/python3.11",
    "usr/bin/tcpdump",
    "usr/bin/kmod",
    "usr/sbin/nginx",
    "bin/ip",
    "sbin/tc",
)
"""What runs in a guest beside the project's own Python."""
KNOWN = {
    "nginx": {"cpuid"},  # the length of a cache line
    "ld-linux-x86-64.so.2": {
        "cpuid",
        "rdtsc",
        "xgetbv",
    },  # which string functions; how long it takes itself, told to nobody
    "libc.so.6": {"rdtsc"},
    "libcrypto.so.3": {
        "cpuid",
        "rdrand",
        "rdseed",
        "rdtsc",
        "xgetbv",
    },  # which code; its generator takes its seed from the kernel
    "libgcrypt.so.20": {"cpuid", "rdrand", "rdtsc", "xgetbv"},
    **{name: {"cpuid"} for name in ("liblzma.so.5", "libpcre2-8.so.0", "libzstd.so.1")},
}
"""Of the pinned user land, by the beginnings of their names. libc's and the loader's rdtsc time the loader itself (LD_DEBUG=statistics)."""

needs_objdump = pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump (binutils) is not there")


def instructions(file: Path) -> set[str]:
    """Which of them a program has."""
    names: set[str] = set()
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", file], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            names.update(INSTRUCTION.findall(line))
    assert process.returncode == 0, file
    return names


def with_libraries(root: Path) -> Iterator[Path]:
    """The programs, and all libraries that they and one another name."""
    waiting, seen = [root / name for name in PROGRAMS], set[str]()
    while waiting:
        file = _inside(root, waiting.pop())
        yield file
        output = subprocess.run(["objdump", "-p", file], check=True, capture_output=True, text=True).stdout
        for name in re.findall(r"NEEDED\s+(\S+)", output):
            if name not in seen:
                seen.add(name)
                places = [
                    root / folder / name for folder in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "lib64")
                ]
                waiting.append(next(place for place in places if place.exists() or place.is_symlink()))


def _inside(root: Path, file: Path) -> Path:
    """A link's end, seen from the root."""
    while file.is_symlink():
        to = file.readlink()
        file = root / to.relative_to("/") if to.is_absolute() else file.parent / to
    return file


@needs_objdump
def test_the_pattern_finds_each_of_them(tmp_path: Path) -> None:
    lines = ("rdtsc", "rdtscp", "rdrand %rax", "rdseed %eax", "rdpid %rax", "cpuid", "xgetbv")
    (tmp_path / "all.s").write_text("".join(f"\t{line}\n" for line in lines))
    done = subprocess.run(["as", "-o", tmp_path / "all.o", tmp_path / "all.s"], check=False)
    assert done.returncode == 0 and instructions(tmp_path / "all.o") == {line.split()[0] for line in lines}


@needs_objdump
def test_the_guests_kernel_and_its_modules_have_none(kernel: GuestKernel) -> None:
    files = [kernel.linux.resolve(), *sorted(kernel.modules.glob("*.ko"))]
    assert len(files) > 20
    assert {file.name: names for file in files if (names := instructions(file))} == {}


@needs_objdump
def test_which_programs_of_the_guest_have_some_is_known() -> None:
    root = pinned.root()
    if root is None:
        pytest.skip("WARPBED_USERLAND=host: this machine's programs, which nobody has listed")
    by_file = {file: had for file in set(with_libraries(root)) if (had := instructions(file))}
    names = {name: had for file, had in by_file.items() for name in [_known_name(file.name)]}
    assert names == KNOWN


def _known_name(name: str) -> str:
    """Files have their whole versions: libstdc++.so.6.0.30."""
    return next((known for known in KNOWN if name.startswith(known)), name)


BEYOND_X86_64 = {
    (0x0, 0x2): (9, 12, 19, 20, 22, 23, 28),  # leaf 1, ecx: SSSE3, FMA, SSE4.1, SSE4.2, MOVBE, POPCNT, AVX
    (0x1, 0x1): (3, 5, 8, 9, 11, 16, 30, 31),  # leaf 7, ebx: BMI1, AVX2, BMI2, ERMS, RTM, AVX512F, AVX512BW, AVX512VL
    (0x2, 0x2): (5, 16),  # leaf 0x80000001, ecx: LZCNT, FMA4
    (0x3, 0x0): (1,),  # leaf 0xd, 1, eax: XSAVEC
}
"""Bits that say what a CPU has beyond x86-64 (Intel's manual, volume 2, CPUID; AMD's, volume 3, appendix E)."""


def chosen_by(root: Path, tunables: str) -> dict[tuple[int, int], int]:
    """Which features the guest's loader means to use on this CPU, as it says itself."""
    loader = _inside(root, root / "lib64/ld-linux-x86-64.so.2")
    done = subprocess.run(
        [loader, "--list-diagnostics"], env={plain_code.CHOICE: tunables}, check=True, capture_output=True, text=True
    )
    masks = re.findall(r"features\[(0x\w+)\]\.active\[(0x\w+)\]=(0x\w+)", done.stdout)
    return {(int(leaf, 16), int(register, 16)): int(value, 16) for leaf, register, value in masks}


def test_glibc_is_left_the_code_that_every_x86_64_runs() -> None:
    root = pinned.root()
    if root is None:
        pytest.skip("WARPBED_USERLAND=host: this machine's glibc")
    plain, own = (chosen_by(root, text) for text in (plain_code.VALUE, plain_code.VALUE.replace("-", "_")))
    bits = [(word, 1 << bit) for word, bits in BEYOND_X86_64.items() for bit in bits]
    assert [(word, bit) for word, bit in bits if plain[word] & bit] == []
    assert own == chosen_by(root, ""), "names that mean nothing leave the choice as it is"
    if all(not own[word] & bit for word, bit in bits):
        pytest.skip("this CPU has nothing that could be masked")
