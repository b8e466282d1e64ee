# SPDX-License-Identifier: Apache-2.0
"""Which of its code glibc chooses in a guest: what every x86-64 can run, whatever the CPU has.

glibc has several versions of its string functions, and libm's logarithms may end in another bit where the CPU has FMA. Programs are told
by their environment, the first one by the kernel's command line.

The variable's length is part of what decides the bytes: it moves the stacks of a run's programs, and iperf3 names its temporary file
by where its stack is and by the clock (mkstemp() of glibc, sysdeps/posix/tempname.c). Of all such numbers, 4.4 % (2^64 mod 62^10 of 2^64)
would make some names likelier than others; then glibc draws another number from the kernel, and all draws after it are other ones.
"""

CHOICE = "GLIBC_TUNABLES"
FEATURES = (
    "AVX", "AVX2", "AVX512F", "AVX512VL", "AVX512BW", "BMI1", "BMI2", "ERMS", "FMA", "FMA4", "FSRM", "LZCNT", "MOVBE",
    "POPCNT", "RTM",
    "SSE4_1", "SSE4_2", "SSSE3", "XSAVEC",
)  # fmt: skip
PREFERENCES = (
    "AVX_Fast_Unaligned_Load", "Fast_Rep_String", "Fast_Unaligned_Copy", "Fast_Unaligned_Load",
    "Prefer_PMINUB_for_stringop", "Slow_BSF",
)  # fmt: skip
"""What glibc concludes from a CPU's model."""
VALUE = "glibc.cpu.hwcaps=" + ",".join(f"-{name}" for name in (*FEATURES, *PREFERENCES))
