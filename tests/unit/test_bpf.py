# SPDX-License-Identifier: Apache-2.0
"""Congestion controls as BPF programs: which files and hosts may have them, what they are made of, and the running kernel's own word."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from pathlib import Path

import pytest

from agent import bpf as agent_bpf
from agent.errors import RunError
from base import landlock
from base.errors import SpecError, UsageError
from hosts import bpf
from hosts.identity import kernel_inputs
from kernels import bpf_objects
from kernels.errors import BuildError
from plan.model import BpfObject, Plan, from_json
from testbed.compile_bpf import not_allowed
from testbed.experiments import prepare
from testbed.new_algorithm import new_algorithm
from tests import lab

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
NEEDS_CLANG = pytest.mark.skipif(
    shutil.which("clang") is None, reason="clang, which makes BPF objects, is not installed"
)
NEEDS_KERNEL = pytest.mark.skipif(
    not agent_bpf.KERNELS_OWN.exists() or os.geteuid() != 0,
    reason="this kernel does not describe itself (CONFIG_DEBUG_INFO_BTF), or this is not root",
)
FILE = """\
warpbed: 1
name: bpf
title: A BPF program
host: vm
duration: 1s
topology: {name: line, params: {rate: 2mbit, delay: 20ms, buffer: 20p}}
flows:
  - {cca: CCA, from: s1, to: d1}
"""


@pytest.fixture(autouse=True)
def not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(bpf_objects.TRUST, raising=False)


def said(folder: Path, cca: str, text: str = FILE) -> str:
    """What is wrong with an experiment file; empty where nothing is."""
    try:
        asked = prepare(lab.write(folder, text.replace("CCA", cca)))
    except SpecError as error:
        return str(error)
    return "\n".join(map(str, asked.errors))


def planned(folder: Path, cca: str) -> Plan:
    file = lab.write(folder, FILE.replace("CCA", cca))
    return prepare(file, host="vm").plans[0]


@pytest.mark.parametrize(
    ("cca", "words"),
    [
        ("bpf_lbcc", "there is no algorithm"),
        ("{name: mine, bpf: none.bpf.o}", "there is no such file"),
        ("{name: mine, bpf: mine.txt}", "neither a source (.bpf.c) nor an object (.o)"),
        ("{name: Mine, bpf: mine.o}", "at most 15 small letters"),
        ("{name: sixteen_letters_, bpf: mine.o}", "at most 15 small letters"),
        ("{name: cubic, bpf: mine.o}", "has another name"),
        ("{name: medley, bpf: mine.o}", "has another name"),
        ("{name: mine, bpf: text.o}", "is no BPF object"),
        ("{name: mine, bpf: short.o}", "is no BPF object"),
        ("{name: bpf_lbc, params: {limit: 3}}", "takes no params"),
        ("{name: mine, bpf: ../mine.o}", "lies outside of the experiment file's folder"),
        ("{name: mine, bpf: /tmp/mine.bpf.c}", "lies outside of the experiment file's folder"),
        ("{name: mine, bpf: link.o}", "lies outside of the experiment file's folder"),
        ("{name: mine, bpf: circle.o}", "circle.o"),
        ("{name: mine, bpf: large.o}", "an algorithm has at most"),
    ],
)
def test_a_wrong_object_is_refused_with_its_line(cca: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "text.o").write_text("hello, hello, hello, hello")
    (tmp_path / "short.o").write_bytes(b"\x7fELF")
    (tmp_path / "link.o").symlink_to(lab.ROOT / "README.md")
    (tmp_path / "circle.o").symlink_to("circle.o")
    with (tmp_path / "large.o").open("wb") as file:
        file.truncate(bpf_objects.MOST_BYTES + 1)
    text = said(tmp_path, cca)
    assert words in text and ":8:" in text


def test_user_mode_linux_cannot_have_one_and_check_says_so(tmp_path: Path) -> None:
    file = lab.write(tmp_path, FILE.replace("host: vm\n", "").replace("CCA", "bpf_lbc"))
    printed = lab.inside("check", file, code=2)
    assert "which User-Mode Linux cannot" in printed and "--host vm" in printed


@NEEDS_CLANG
def test_a_file_that_names_no_host_is_checked_and_reported_for_the_one_that_is_asked(tmp_path: Path) -> None:
    file = lab.write(tmp_path, FILE.replace("host: vm\n", "").replace("CCA", "bpf_lbc"))
    assert "ready to run" in lab.inside("check", "--file-only", "--host", "lab", file)
    for command in ("compare", "report", "metrics"):
        asked = ("--host", "local", file, "--results", tmp_path / "none")
        assert "no results" in lab.inside(command, *asked, code=2)


@NEEDS_CLANG
def test_the_object_decides_the_run_and_travels_with_it(tmp_path: Path) -> None:
    """Its bytes are part of the identity; a host that sends it says where; a plan without one is known by the same inputs as ever."""
    plan = planned(tmp_path, "bpf_lbc")
    (one,) = plan.bpf
    given = bpf_objects.object_of(bpf_objects.own()["bpf_lbc"])
    assert (one.cca, one.path) == ("bpf_lbc", str(given)) and from_json(plan.to_json()) == plan
    (tmp_path / "mine.bpf.o").write_bytes(given.read_bytes() + b"\0")
    (other,) = planned(tmp_path, "{name: mine, bpf: mine.bpf.o}").bpf
    assert other.path == str(tmp_path / "mine.bpf.o") and other.sha256 != one.sha256
    facts = {"key": "k", "modules": []}
    assert kernel_inputs(facts, plan).modules["bpf_lbc"] == one.sha256
    assert "bpf" not in str(kernel_inputs(facts, planned(tmp_path, "cubic")).modules)
    (place,) = bpf.files(plan)
    assert bpf.sent(plan).bpf == (BpfObject("bpf_lbc", place, one.sha256),) and bpf.files(plan)[place] == given


@NEEDS_CLANG
def test_a_source_that_the_compiler_refuses_is_shown_with_its_words(tmp_path: Path) -> None:
    source = tmp_path / "mine.bpf.c"
    source.write_text('#include "cc_bpf.h"\nint nothing;;;\nreturn;\n')
    with pytest.raises(BuildError, match="expected identifier"):
        bpf_objects.object_of(source)
    with pytest.raises(UsageError, match="no such file"):
        bpf_objects.object_of(tmp_path / "none.bpf.c")
    source.write_text('#include "cc_bpf.h"\n')
    made = bpf_objects.object_of(source)
    assert bpf_objects.object_of(source) == made and made.read_bytes().startswith(b"\x7fELF")


SECRET = "word_of_another_file"
READS = {
    "included": '#include "{secret}"',
    "included by a macro": '#define WHICH "{secret}"\n#include WHICH',
    "included from above": '#include "../secret"',
    "a header that is a link": '#include "link.h"',
    "assembled": '__asm__(".incbin \\"{secret}\\"");',
    "assembled in parts": '__asm__(".macro m a b; .\\\\a\\\\b \\"{secret}\\"; .endm; m inc bin");',
}


@NEEDS_CLANG
@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("way", READS)
def test_no_other_file_comes_into_an_object_or_a_message(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bpf_objects, "cache_dir", lambda: tmp_path / "cache")
    secret, folder = tmp_path / "secret", tmp_path / "given"
    secret.write_text(f"{SECRET}\n")
    folder.mkdir()
    (folder / "link.h").symlink_to(secret)
    (folder / "notes.txt").write_text(SECRET)
    source = folder / "mine.bpf.c"
    for read in (secret, folder / "notes.txt"):  # nor what lies beside it and is no header
        source.write_text('#include "cc_bpf.h"\n' + READS[way].format(secret=read) + "\n")
        with pytest.raises(BuildError) as error:
            bpf_objects.object_of(source)
        assert SECRET not in str(error.value)
    source.write_text('#include "beside.h"\n#include "cc_bpf.h"\n#include <linux/bpf.h>\n')
    (folder / "beside.h").write_text("struct beside;\n")
    assert bpf_objects.object_of(source).is_file()


@NEEDS_CLANG
@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
def test_a_source_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpf_objects, "CPU_S", 1)
    doubled = "\n".join(f"#define A{i} A{i - 1} A{i - 1}" for i in range(1, 60))
    source = tmp_path / "bomb.bpf.c"
    source.write_text(f"#define A0 int;\n{doubled}\nA59\n")
    with pytest.raises(BuildError, match="more than 1 s of CPU, 2 GiB of memory"):
        bpf_objects.object_of(source)
    monkeypatch.setattr(bpf_objects, "CPU_S", 20)
    monkeypatch.setattr(bpf_objects, "OUTPUT_BYTES", 1 << 20)
    source.write_text("char large[1 << 24] = {1};\n")
    with pytest.raises(BuildError, match="1 MiB of output"):
        bpf_objects.object_of(source)
    monkeypatch.setattr(bpf_objects, "_spent_s", [200.0, 101.0])
    with pytest.raises(BuildError, match="the 2 sources before it took 301 s; at most 300 s"):
        bpf_objects.object_of(source)


@NEEDS_CLANG
def test_without_landlock_a_source_is_compiled_where_its_user_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 0)
    monkeypatch.setattr(bpf_objects, "cache_dir", lambda: tmp_path / "cache")
    source = tmp_path / "mine.bpf.c"
    source.write_text('#include "cc_bpf.h"\n')
    with pytest.raises(UsageError, match=f"{bpf_objects.TRUST}=1"):
        bpf_objects.object_of(source)
    monkeypatch.setenv(bpf_objects.TRUST, "1")
    assert bpf_objects.object_of(source).is_file()


@NEEDS_CLANG
def test_a_kernel_in_use_executes_a_files_own_program_only_where_its_user_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(bpf_objects.object_of(bpf_objects.own()["bpf_lbc"]), tmp_path / "mine.bpf.o")
    own, given = planned(tmp_path, "bpf_lbc").bpf, planned(tmp_path, "{name: mine, bpf: mine.bpf.o}").bpf
    for host in ("local", "lab", "wan"):
        assert not_allowed(own, host) == [] and bpf_objects.TRUST in not_allowed(given, host)[0]
    assert not_allowed(given, "vm") == []
    file = lab.write(tmp_path, FILE.replace("CCA", "{name: mine, bpf: mine.bpf.o}"))
    asked = ("execute", "--host", "local", file, "--results", tmp_path / "results")
    assert f"{bpf_objects.TRUST}=1" in lab.inside(*asked, code=2) and not (tmp_path / "results").exists()
    assert f"{bpf_objects.TRUST}=1" in lab.inside("check", "--host", "local", file, code=1)
    monkeypatch.setenv(bpf_objects.TRUST, "1")
    assert not_allowed(given, "local") == []


@NEEDS_CLANG
def test_where_a_source_lies_leaves_no_trace_in_its_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its digest is part of a run's identity, and its length decides when a machine has read it."""
    objects = []
    for name in ("here", "a/much/longer/path"):
        folder, cache = tmp_path / name, tmp_path / "caches" / name
        folder.mkdir(parents=True)
        shutil.copy(bpf_objects.own()["bpf_lbc"], folder)
        monkeypatch.chdir(folder)
        monkeypatch.setattr(bpf_objects, "cache_dir", lambda cache=cache: cache)
        objects.append(bpf_objects.object_of(folder / "bpf_lbc.bpf.c"))
    assert objects[0] != objects[1] and objects[0].read_bytes() == objects[1].read_bytes()
    assert str(lab.ROOT).encode() not in objects[0].read_bytes()


@NEEDS_CLANG
@pytest.mark.parametrize("option", bpf.OPTIONS)
def test_a_kernel_without_one_of_the_options_is_refused(option: str, tmp_path: Path) -> None:
    config = dict.fromkeys(bpf.OPTIONS, "y")
    plan = planned(tmp_path, "bpf_lbc")
    assert bpf.lacking(plan, config, "the kernel") == []
    (problem,) = bpf.lacking(plan, config | {option: "n"}, "the kernel")
    assert option in problem and "--host vm" in problem
    assert bpf.lacking(planned(tmp_path, "cubic"), {}, "the kernel") == []


@NEEDS_CLANG
@NEEDS_KERNEL
@pytest.mark.usefixtures("this_machine")
def test_the_running_kernel_takes_it_sends_by_it_and_is_left_as_it_was() -> None:
    before = AVAILABLE.read_text().split()
    path = bpf_objects.object_of(bpf_objects.own()["bpf_lbc"])
    with agent_bpf.registered([BpfObject("bpf_lbc", str(path), "")]):
        assert "bpf_lbc" in AVAILABLE.read_text().split()
        assert _sent_under(b"bpf_lbc", 1 << 20) == 1 << 20
    assert AVAILABLE.read_text().split() == before


@NEEDS_CLANG
@NEEDS_KERNEL
@pytest.mark.usefixtures("this_machine")
def test_a_new_algorithm_in_bpf_is_taken_as_it_is_made(tmp_path: Path) -> None:
    for folder in ("kernels/template", "kernels/bpf"):
        shutil.copytree(lab.ROOT / folder, tmp_path / folder)
    (tmp_path / "experiments").mkdir()
    source, experiment = new_algorithm("eta", tmp_path, bpf=True)
    assert "host: vm" in experiment.read_text() and "increase: 2" not in experiment.read_text()
    with agent_bpf.registered([BpfObject("eta", str(bpf_objects.object_of(source)), "")]):
        assert _sent_under(b"eta", 1 << 20) == 1 << 20
    with pytest.raises(UsageError, match=r"kernels/bpf/eta\.bpf\.c"):
        new_algorithm("eta", tmp_path)


@NEEDS_KERNEL
def test_what_the_kernel_or_libbpf_refuses_is_told_in_their_words(tmp_path: Path) -> None:
    file = tmp_path / "none.bpf.o"
    file.write_text("no object")
    with (
        pytest.raises(RunError, match="not a proper ELF object"),
        agent_bpf.registered([BpfObject("x", str(file), "")]),
    ):
        pass


def _sent_under(algorithm: bytes, size: int) -> int:
    """Bytes that arrive on a connection of the loopback under an algorithm."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm)
        sender.connect(server.getsockname())
        assert sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0") == algorithm
        receiver, _ = server.accept()

        def send() -> None:
            sender.sendall(bytes(size))
            sender.shutdown(socket.SHUT_WR)

        writer = threading.Thread(target=send)
        writer.start()
        with receiver:
            got = sum(iter(lambda: len(receiver.recv(1 << 16)), 0))
        writer.join()
    return got
