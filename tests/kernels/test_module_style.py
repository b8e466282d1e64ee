# SPDX-License-Identifier: Apache-2.0
"""The modules as a kernel maintainer would look at them: checkpatch, sparse, all warnings, version checks in one place."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from base.cache import recall, remember, sha256_of
from base.paths import cache_dir
from hosts.virtual.launch import GuestKernel
from kernels.build_key import module_sources
from tests import lab
from tests.kept_results import FRESH

MODULES = lab.ROOT / "kernels/modules"
SOURCES = sorted(name for name in module_sources(MODULES) if name.endswith((".c", ".h")))

# File, what checkpatch says there, and why it stands. A file "" means all of them.
EXCEPTIONS = (
    ("compat.h", "LINUX_VERSION_CODE should be avoided", "the one place for it"),
    ("compat.h", "Comparisons should place the constant on the right",
        "LINUX_VERSION_CODE >= … is how kernels write it"),
    ("compat.h", "do not add new typedefs", "the type of proto->ioctl()'s argument differs between kernels"),
    ("compat.h", "space prohibited before that ','", "a macro that stands for a parameter, or for none"),
    ("compat.h", "Macros with complex values", "a macro that stands for a parameter list"),
    ("cc_trace.h", "", "the layout is the one that define_trace.h requires"),
    ("", "Prefer kzalloc_obj over kzalloc", "new in 7.0; Debian 12 and 13 have 6.1 and 6.12"),
    ("rxbatch_sock.h", "struct proto_ops should normally be const",
        "copies of the kernel's own with one operation replaced"),
    ("um_link.c", "struct net_device_ops should normally be const", "a copy of veth's with one operation replaced"),
    ("", "Avoid CamelCase: <Qdisc", "the kernel's own names"),
    ("tcp_iss.c", "Possible repeated word: 'awnd'", "an equation"),
)  # fmt: skip
# A folder that the kernel's build names and leaves out; container_of() inside container_of() in the kernel's own headers.
NOISE = re.compile(
    r"No such file or directory \[-Wmissing-include-dirs\]$|/include/\S+ warning: .*\[-Wshadow\]$"
    r"|note: (shadowed declaration is here|in (expansion|definition) of macro)"
)


def excepted(name: str, complaint: str) -> bool:
    return any(file in ("", name) and text in complaint for file, text, _ in EXCEPTIONS)


@pytest.fixture(scope="module")
def tree(kernel: GuestKernel) -> Path:
    """What an out-of-tree module build of the kernel needs, checkpatch among it."""
    return kernel.linux.parent / "build"


@pytest.mark.parametrize("name", SOURCES)
def test_checkpatch_has_nothing_to_say(tree: Path, name: str) -> None:
    complaints_found = complaints(tree, MODULES / name)
    assert [complaint for complaint in complaints_found if not excepted(name, complaint)] == []


OPTIONS = ("--strict", "--no-tree", "--terse", "--no-summary", "--color=never")
READ_BY_CHECKPATCH = ("checkpatch.pl", "spelling.txt", "const_structs.checkpatch")


@functools.cache
def complaints(tree: Path, file: Path) -> tuple[str, ...]:
    """What checkpatch says about a file; remembered for each content, since two tests ask about all files, a second each."""
    tools = [sha256_of(path) for name in READ_BY_CHECKPATCH if (path := tree / "scripts" / name).exists()]
    question = ["checkpatch", tools, OPTIONS, file.name, sha256_of(file)]
    if (known := recall(cache_dir(), question)) is None:
        known = {"complaints": asked(tree, file)}
        remember(cache_dir(), question, known)
    return tuple(known["complaints"])


def asked(tree: Path, file: Path) -> list[str]:
    """What checkpatch says about a file now."""
    command: list[str | Path] = ["perl", tree / "scripts/checkpatch.pl", *OPTIONS, "-f", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tree)
    assert done.returncode in (0, 1) and "warnings" not in done.stderr, done.stderr
    return [line.partition(": ")[2] for line in done.stdout.splitlines() if re.match(r".+:\d+: ", line)]


def test_checkpatch_is_really_asked(tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "tcp_zeta.c"
    file.write_text("// SPDX-License-Identifier: GPL-2.0-only\nint f( int a ){return a;}\n")
    assert any("open brace" in complaint for complaint in asked(tree, file))


def test_every_exception_is_still_needed(tree: Path) -> None:
    by_source = {name: complaints(tree, MODULES / name) for name in SOURCES}
    unused = [
        (file, text)
        for file, text, _ in EXCEPTIONS
        if not any(
            text in complaint for name, all_words in by_source.items() if file in ("", name) for complaint in all_words
        )
    ]
    assert unused == []


def test_only_compat_h_looks_at_the_kernel_s_version() -> None:
    looks = [
        name
        for name in SOURCES
        if re.search(r"LINUX_VERSION_CODE|KERNEL_VERSION\(|linux/version\.h|RHEL_RELEASE", (MODULES / name).read_text())
    ]
    assert looks == ["compat.h"]


@pytest.fixture(scope="module")
def diagnostics(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What compiler (W=1, -Wshadow) and sparse say about all modules, and about one with known faults; remembered as above."""
    if shutil.which("sparse", path="/usr/bin") is None:
        pytest.skip("sparse is not installed; playbooks/test_environment.yml installs it")
    versions = [
        subprocess.run([tool, "--version"], capture_output=True, check=True).stdout.hex() for tool in ("gcc", "sparse")
    ]
    given = {name: sha256_of(MODULES / name) for name in module_sources(MODULES)}
    question = ["compiler and sparse", tree.resolve().parent.name, versions, given, FAULTY, STRICTLY]
    known = None if os.environ.get(FRESH) else recall(cache_dir(), question)
    if known is None:
        known = {"words": compiled(tree, tmp_path_factory.mktemp("modules"))}
        remember(cache_dir(), question, known)
    return list(known["words"])


STRICTLY = (
    "W=1",
    "KCFLAGS=-Wshadow",
    "C=2",
    # sparse 0.6.4 does not know __typeof_unqual__, without which the kernel's build refuses to run it, nor that the length
    # of a literal is constant, which the MODULE_… macros assert; after an error it keeps its warnings to itself
    "CHECK=sparse -D__typeof_unqual__=__typeof__ '-D__builtin_strlen(x)=(sizeof(x)-1)'",
)


def compiled(tree: Path, work: Path) -> list[str]:
    """What they say now."""
    for name in module_sources(MODULES):
        shutil.copy(MODULES / name, work / name)
    (work / "tcp_zeta.c").write_text(FAULTY)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "HOME": os.environ.get("HOME", "/")}
    command: list[str | Path] = ["make", "-C", tree, "ARCH=um", f"M={work}", *STRICTLY, "modules"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    return [line for line in lines if re.search(r"warning:|error:|note:", line) and not NOISE.search(line)]


FAULTY = """\
// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>
#include <linux/types.h>
static const int unused = 3;
__be32 wrong(u32 a);
__be32 wrong(u32 a) { return a; }
static u32 shadowed;
u32 hides(void);
u32 hides(void) { u32 shadowed = 1; return shadowed; }
MODULE_DESCRIPTION("Faults that the tools have to find");
MODULE_LICENSE("GPL");
"""


def test_neither_compiler_nor_sparse_has_anything_to_say(diagnostics: list[str]) -> None:
    assert [line for line in diagnostics if "tcp_zeta.c" not in line] == []


def test_compiler_and_sparse_are_really_asked(diagnostics: list[str]) -> None:
    assert any("tcp_zeta.c" in line and "-Wunused-const-variable" in line for line in diagnostics)
    assert any("tcp_zeta.c" in line and "-Wshadow" in line for line in diagnostics)
    assert any("tcp_zeta.c" in line and "incorrect type in return expression" in line for line in diagnostics)
