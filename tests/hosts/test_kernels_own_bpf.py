# SPDX-License-Identifier: Apache-2.0
"""The kernel's own congestion controls in BPF, bpf_cubic and bpf_dctcp, as objects that are given: made from a kernel's source, and run.

Their sources are in the kernel's selftests. They name what the running kernel has only where they are not newer than it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import bpf as agent_bpf
from agent.errors import RunError
from base.paths import cache_dir
from hosts.local.host import LocalHost
from hosts.local.probe import ALGORITHMS
from kernels import series
from kernels.bpf_objects import COMPILER, TRUST
from kernels.fetch import fetch
from plan.model import BpfObject
from testbed.experiments import prepare
from tests import lab

pytestmark = [
    pytest.mark.real_host,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not (shutil.which(COMPILER) and shutil.which("bpftool")), reason="clang or bpftool is not installed"
    ),
    pytest.mark.skipif(
        not agent_bpf.KERNELS_OWN.exists() or os.geteuid() != 0,
        reason="this kernel does not describe itself (CONFIG_DEBUG_INFO_BTF), or this is not root",
    ),
]
NAMES = ("bpf_cubic", "bpf_dctcp")
SELFTESTS = "tools/testing/selftests/bpf"
INCLUDE = "/usr/include/x86_64-linux-gnu"
FILE = """\
warpbed: 1
name: given
title: The kernel's own
duration: 5s
topology: {name: line, params: {rate: none, delay: 0ms}}
flows:
  - {name: f1, cca: {name: bpf_cubic, bpf: bpf_cubic.o}, from: s1, to: d1, size: 1MB}
  - {name: f2, cca: {name: bpf_dctcp, bpf: bpf_dctcp.o}, from: s1, to: d1, size: 1MB}
"""


def version(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split(".")[:2])


@pytest.fixture(scope="module", autouse=True)
def read_and_trusted() -> Iterator[None]:
    """The user's word that a kernel in use may execute the files' own programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TRUST, "1")
        yield


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both objects, from the newest source that is not newer than this kernel."""
    folder = tmp_path_factory.mktemp("given")
    older = [name for name in series.NAMES if version(name) <= version(os.uname().release)]
    if not older:
        pytest.skip("this kernel is older than every source that the project knows")
    source, _ = fetch(max(older, key=version), cache_dir())
    wanted = [f"*/{SELFTESTS}/{name}" for name in ("progs/bpf_*.c", "progs/*.h", "*.h")]
    archive = f"./usr/src/linux-source-{source.series}.tar.xz"
    unpack = f'dpkg-deb --fsys-tarfile "$1" | tar -xO {archive} | tar -xJ --strip-components=1 --wildcards "${{@:2}}"'
    subprocess.run(["bash", "-euo", "pipefail", "-c", unpack, "unpack", source.path, *wanted], cwd=folder, check=True)
    described = subprocess.run(
        ["bpftool", "btf", "dump", "file", agent_bpf.KERNELS_OWN, "format", "c"], check=True, capture_output=True
    )
    (folder / "vmlinux.h").write_bytes(described.stdout)
    for name in NAMES:
        # the C library's headers ask which computer it is, and BPF is none
        flags = ["-O2", "-g", "-target", "bpf", "-D__x86_64__", "-D__TARGET_ARCH_x86", "-I", INCLUDE]
        places = ["-I", ".", "-I", SELFTESTS]
        line = [COMPILER, *flags, *places, "-c", f"{SELFTESTS}/progs/{name}.c", "-o", f"{name}.o"]
        subprocess.run(line, cwd=folder, check=True)
    return folder


@pytest.mark.usefixtures("this_machine")
def test_they_are_run_as_they_are_given(given: Path, tmp_path: Path) -> None:
    """Each carries its flow by the sender's own word, its bytes are in the run's identity, and both are gone afterwards."""
    before = ALGORITHMS.read_text()
    file = lab.write(given, FILE)
    if problems := LocalHost().problems(prepare(file, host="local").plans[0]):
        pytest.skip("; ".join(problems))
    lab.warpbed("execute", "--host", "local", file, "--results", tmp_path / "results", timeout_s=500)
    (run,) = lab.runs(tmp_path / "results/given")
    assert run["status"] == "complete" and set(NAMES) <= set(run["inputs"]["modules"])
    for flow, name in zip(("f1", "f2"), NAMES, strict=True):
        said = json.loads((run["path"] / f"raw/{flow}.client.json").read_text())
        assert said["end"]["sender_tcp_congestion"] == name
    least = 1_000_000 if run["verdict"]["value"] == "valid" else 1  # a busy machine sends less in the time
    assert min(lab.table(run["path"], "flows")["unique_bytes"]) >= least
    assert ALGORITHMS.read_text() == before


@pytest.mark.usefixtures("this_machine")
def test_an_object_is_not_taken_for_another_name(given: Path) -> None:
    """The kernel's bpf_dctcp holds a second algorithm, which lacks what the kernel asks of one."""
    before = ALGORITHMS.read_text()
    for name, words in (
        ("bpf_reno", "registers another name"),
        ("bpf_dctcp_nouse", "cannot be registered|another name"),
    ):
        with (
            pytest.raises(RunError, match=words),
            agent_bpf.registered([BpfObject(name, str(given / "bpf_dctcp.o"), "")]),
        ):
            pass
    assert ALGORITHMS.read_text() == before
