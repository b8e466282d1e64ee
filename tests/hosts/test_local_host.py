# SPDX-License-Identifier: Apache-2.0
"""The local host: real time on this machine's kernel, and nothing left behind, however a run ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from hosts.local import probe, undo
from hosts.local.host import ALLOWED, TRACING, LocalHost
from kernels import bpf_objects
from testbed.experiments import prepare
from tests import lab, reaper
from tests.waiting import wait_until

# No delay and no loss: veth, tbf and pfifo are enough, which nearly every kernel has.

pytestmark = pytest.mark.real_host
NEARBY = """\
warpbed: 1
name: nearby
title: A line without delay
duration: 3s
topology:
  name: line
  params: {rate: 10mbit, delay: 0ms, buffer: 40p}
flows:
  - {name: f1, cca: reno, from: s1, to: d1}
"""
REALTIME_RULES = {"cpu-headroom", "timer-late", "softirq-drops"}
"""What a busy machine may hold against a run; nothing else may be said of this one."""


@pytest.fixture(scope="module")
def nearby(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The experiment's file, where this machine can execute it."""
    file = lab.write(tmp_path_factory.mktemp("nearby"), NEARBY)
    if problems := LocalHost().problems(prepare(file).plans[0]):
        pytest.skip("; ".join(problems))
    return file


def leftovers() -> dict[str, list[str]]:
    """What a run changes outside its namespaces; the interfaces of other tests' hosts come and go meanwhile."""
    instances = TRACING / "instances"
    return {
        "trace instances": sorted(p.name for p in instances.glob("warpbed-*")) if instances.is_dir() else [],
        "allowed algorithms": ALLOWED.read_text().split(),
        "algorithms": probe.ALGORITHMS.read_text().split(),
        "modules": sorted(undo.loaded_modules()),
        "interfaces": sorted(p.name for p in Path("/sys/class/net").iterdir() if not reaper.is_tagged(p.name)),
        "mounts": [line for line in Path("/proc/self/mounts").read_text().splitlines() if "tracefs" in line],
        "lists": sorted(p.name for p in undo.FOLDER.glob("undo*")),
    }


def test_a_plan_needs_of_the_kernel_what_its_links_need(tmp_path: Path) -> None:
    near = prepare(lab.write(tmp_path, NEARBY)).plans[0]
    far = prepare(lab.write(tmp_path, NEARBY.replace("0ms", "5ms"))).plans[0]
    # a wire keeps the time that a packet takes at the link's rate, without any delay too
    assert (
        probe.needed(near)
        == {"veth", "tbf", "pfifo", "netem", "ingress", "matchall", "port rules"}
        == probe.needed(far)
    )


def test_without_root_check_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (problem,) = LocalHost().problems(prepare(lab.write(tmp_path, NEARBY)).plans[0])
    assert "start ./warpbed as root" in problem


@pytest.mark.usefixtures("this_machine")
def test_an_algorithm_that_the_kernel_lacks_starts_nothing(nearby: Path, tmp_path: Path) -> None:
    if probe.has_module("tcp_medley"):
        pytest.skip("tcp_medley is installed for this kernel")
    file = lab.write(tmp_path, NEARBY.replace("reno", "medley"))
    output = lab.warpbed("execute", "--host", "local", file, "--results", tmp_path / "results", code=2)
    assert "has no medley" in output and "--host virtual" in output
    assert not (tmp_path / "results").exists()
    assert "host-local" in lab.warpbed("check", "--host", "local", file, code=1)


@pytest.mark.usefixtures("this_machine")
def test_a_run_in_real_time_has_records_and_a_verdict_and_changes_nothing(nearby: Path, tmp_path: Path) -> None:
    before = leftovers()
    lab.warpbed("execute", "--host", "local", nearby, "--results", tmp_path / "results")
    (run,) = lab.runs(tmp_path / "results/nearby")
    assert run["host"] == "local"
    assert run["environment"]["build"]["kernel_release"] == os.uname().release
    assert {reason["rule"] for reason in run["verdict"]["reasons"]} <= REALTIME_RULES
    assert run["facts"]["realtime"]["timers"] > 100
    assert run["metrics"]["queue_max_packets"] <= 40
    assert len(lab.table(run["path"], "sockets")["t_s"]) > 100
    if run["verdict"]["value"] != "invalid":
        assert run["metrics"]["utilization"] > 0.9
    assert leftovers() == before
    assert lab.processes_with(str(tmp_path / "results")) == []


@pytest.mark.usefixtures("this_machine")
def test_kill_9_leaves_nothing(nearby: Path, tmp_path: Path) -> None:
    before = leftovers()
    results = tmp_path / "results"
    process = subprocess.Popen(
        lab.command("execute", "--host", "local", nearby, "--results", results), cwd=lab.ROOT, stdout=subprocess.PIPE
    )
    wait_until(lambda: list(results.glob(".aside/*/raw/*.pcap")), while_running=process)
    assert leftovers() != before  # or else this test would see nothing
    process.kill()
    process.communicate()
    wait_until(lambda: leftovers() == before, 30, say=leftovers)
    wait_until(lambda: not lab.processes_with(str(results)), 30, say=lambda: lab.processes_with(str(results)))
    wait_until(lambda: not (results / ".aside").exists(), 30)


@pytest.fixture(scope="module")
def by_bpf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment without rate and delay, which a kernel without netem has too, whose algorithm is a BPF program."""
    text = NEARBY.replace("params: {rate: 10mbit, delay: 0ms, buffer: 40p}", "params: {rate: none, delay: 0ms}")
    text = text.replace(
        "{name: f1, cca: reno, from: s1, to: d1}", "{name: f1, cca: bpf_lbc, from: s1, to: d1, size: 2MB}"
    )
    file = lab.write(tmp_path_factory.mktemp("by_bpf"), text)
    if shutil.which(bpf_objects.COMPILER) is None:
        pytest.skip("clang, which makes BPF objects, is not installed")
    if problems := LocalHost().problems(prepare(file, host="local").plans[0]):
        pytest.skip("; ".join(problems))
    return file


@pytest.mark.slow
@pytest.mark.usefixtures("this_machine")
def test_an_algorithm_in_bpf_carries_a_run_and_is_gone_after_it(by_bpf: Path, tmp_path: Path) -> None:
    before = leftovers()
    lab.warpbed("execute", "--host", "local", by_bpf, "--results", tmp_path / "results")
    (run,) = lab.runs(tmp_path / "results/nearby")
    assert run["status"] == "complete" and run["inputs"]["modules"]["bpf_lbc"]
    (sent,) = lab.table(run["path"], "flows")["unique_bytes"].tolist()
    said = json.loads((run["path"] / "raw/f1.client.json").read_text())
    assert said["end"]["sender_tcp_congestion"] == "bpf_lbc"
    assert sent >= (2_000_000 if run["verdict"]["value"] == "valid" else 1)  # a busy machine sends less in the time
    assert leftovers() == before
    assert lab.processes_with(str(tmp_path / "results")) == []


@pytest.mark.usefixtures("this_machine")
@pytest.mark.parametrize("killed", ["controller", "agent"])
def test_an_algorithm_in_bpf_goes_with_whoever_is_killed(killed: str, by_bpf: Path, tmp_path: Path) -> None:
    """A registered one stays with the kernel by itself: its map is held by being registered."""
    before, results = leftovers(), tmp_path / "results"
    process = subprocess.Popen(
        lab.command("execute", "--host", "local", by_bpf, "--results", results),
        cwd=lab.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: "bpf_lbc" in probe.ALGORITHMS.read_text().split(), while_running=process)
    if killed == "controller":
        process.kill()
    else:
        for pid in wait_until(lambda: _agents(results), while_running=process):
            os.kill(pid, signal.SIGKILL)
    process.communicate()
    wait_until(lambda: leftovers() == before, 30, say=leftovers)
    wait_until(lambda: not lab.processes_with(str(results)), 30, say=lambda: lab.processes_with(str(results)))


def _agents(results: Path) -> list[int]:
    """The agent's first two processes; the watcher of what it registers leads a session of its own.

    None while there are more: whatever the agent starts bears the agent's command line until it executes its own.
    """
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line, pid = entry.read_bytes(), int(entry.parent.name)
            if b"agent.host" in line and str(results).encode() in line and os.getsid(pid) != pid:
                found.append(pid)
        except (OSError, ProcessLookupError):
            continue
    return found if len(found) == 2 else []


def test_steps_are_taken_back_last_one_first_and_a_failing_one_keeps_none(tmp_path: Path) -> None:
    value, folder = tmp_path / "value", tmp_path / "made"
    value.write_text("first")
    with undo.undoing(tmp_path / "run") as steps:
        steps.add("write", str(value), value.read_text())
        value.write_text("second")
        steps.add("write", str(value), value.read_text())
        value.write_text("third")
        steps.add("rmdir", str(folder))  # is never made
    assert value.read_text() == "first"


def test_what_a_killed_undo_left_is_taken_back_by_the_next_run(tmp_path: Path) -> None:
    value = tmp_path / "value"
    value.write_text("changed")
    (tmp_path / "run").mkdir()
    undo.Undo(tmp_path / "run/undo.json").add("write", str(value), "before")
    with undo.undoing(tmp_path / "run"):
        assert value.read_text() == "before"


def test_a_second_run_at_the_same_time_is_refused(tmp_path: Path) -> None:
    with undo.undoing(tmp_path), pytest.raises(undo.BusyError), undo.undoing(tmp_path):
        pass
