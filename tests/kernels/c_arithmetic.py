# SPDX-License-Identifier: Apache-2.0
"""The modules' integer arithmetic in a library of this machine, where a test can give it any value."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

from base.paths import ROOT

TYPES = """\
typedef unsigned char u8; typedef unsigned int u32; typedef int s32;
typedef unsigned long long u64; typedef long long s64;
#define READ_ONCE(x) (x)
#define BIT(n) (1UL << (n))
#define U32_MAX 0xffffffffU
#define USEC_PER_SEC 1000000L
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min_t(t, a, b) min((t)(a), (t)(b))
#define max_t(t, a, b) max((t)(a), (t)(b))
#define abs(x) ((x) < 0 ? -(x) : (x))
static inline u64 div_u64(u64 a, u32 b) { return a / b; }
static inline u64 div64_u64(u64 a, u64 b) { return a / b; }
static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 c) { return (unsigned __int128)a * b / c; }
"""
HEADERS = ("linux/math64.h", "linux/minmax.h", "linux/types.h", "cc_common.h", "cc_rtt.h")
"""What the headers include and TYPES stands for."""


def library(folder: Path, header: str, functions: str) -> ctypes.CDLL:
    """Compile functions that use a header of kernels/modules; signed overflow ends the process."""
    for name in HEADERS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    text = (ROOT / "kernels/modules" / header).read_text()
    (folder / "all.c").write_text(f"{TYPES}\n{text}\n{functions}\n")
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        "-ftrapv",
        "-Wall",
        "-Wno-unused-function",
        "-I",
        ".",
        "-o",
        "all.so",
        "all.c",
    ]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "all.so"))
