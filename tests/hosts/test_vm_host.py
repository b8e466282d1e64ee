# SPDX-License-Identifier: Apache-2.0
"""Virtual machines by a real clock: our kernel booted, the network in one machine or a machine per node, and what may go wrong.

Where KVM starts no guest the machines' CPUs are emulated: slow, and never called valid, but otherwise the same.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from base.linux import die_with_parent
from hosts.vm import qemu
from hosts.vm.builds import Builds
from hosts.vm.machine import BootError, Spec, started
from tests import lab
from tests.waiting import wait_until

pytestmark = [pytest.mark.real_host, pytest.mark.slow]


@pytest.fixture(autouse=True)
def real_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines that are reached while they run; those that count instructions have tests of their own."""
    monkeypatch.setenv("WARPBED_VM_CLOCK", "real")


HEAD = "warpbed: 1\ntitle: Machines\nduration: 6s\n"
LINE = (
    HEAD
    + """\
name: line
topology: {name: line, params: {rate: 5mbit, delay: 20ms, buffer: 40p}}
flows:
  - {name: f1, cca: medley, from: s1, to: d1}
"""
)
# Kato 2012 Fig 5.10: A and C send through one shaped router to B and D; six emulated machines on one CPU
KATO = (
    HEAD
    + """\
name: kato
topology: {name: testbed4, params: {rate: 1mbit, rtt_ab: 40ms, rtt_cd: 80ms, buffer: 40p}}
flows:
  - {name: ab, cca: ttfwc, from: a, to: b}
  - {name: cd, cca: reno, from: c, to: d}
"""
)
REAL_TIME = {
    "emulated-cpu", "cpu-headroom", "timer-late", "softirq-drops", "idle-rtt", "rate", "calibration", "clock",
    "clock-unsteady",
    "capture-drops", "clock-unknown", "window-limited",
}  # fmt: skip
"""What may be held against a run on a machine that is slow; nothing else may be said of it."""


def executed(tmp_path: Path, host: str, text: str) -> dict[str, Any]:
    """The one run of an experiment, whose records and verdict are there, and after which nothing is left."""
    lab.warpbed("execute", lab.write(tmp_path, text), "--host", host, "--results", tmp_path / "results")
    (run,) = lab.runs(next((tmp_path / "results").glob("[!.]*")))
    assert run["host"] == host and run["status"] == "complete"
    assert lab.processes_with(str(tmp_path / "results")) == []
    rules = {reason["rule"] for reason in run["verdict"]["reasons"]}
    assert rules <= REAL_TIME
    accelerator = run["facts"]["host"]["accelerator"]
    assert ("emulated-cpu" in rules) == (accelerator == "tcg"), "an emulated CPU is said"
    assert run["verdict"]["value"] in (
        ("suspect", "invalid") if accelerator == "tcg" else ("valid", "suspect", "invalid")
    )
    return run


def rows(run: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    columns = lab.table(run["path"], kind)
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def assert_recorded(run: dict[str, Any], flows: dict[str, tuple[str, str, str]], builds: Builds) -> None:
    """flows: name → (algorithm, sender, receiver)."""
    kernel = run["environment"]["kernel"]
    assert kernel["release"] == builds.kernel_facts["kernel_release"]
    built = {module["name"]: module["srcversion"] for module in builds.kernel_facts["modules"]}
    table = {row["flow"]: row for row in rows(run, "flows")}
    for name, (cca, source, target) in flows.items():
        if f"tcp_{cca}" in built:
            assert kernel["srcversions"][f"tcp_{cca}"] == built[f"tcp_{cca}"]
        for node in (source, target):
            assert (run["path"] / f"raw/{node}-eth0.pcap").stat().st_size > 2_000
        assert table[name]["cca"] == cca and table[name]["delivered_bytes"] > 50_000
        samples = [row for row in rows(run, "sockets") if row["flow"] == name]
        assert len(samples) > 20 and max(row["cwnd_packets"] for row in samples) >= 10
    # How fast emulated machines are is no matter here: six of them on a busy CPU stand still for seconds, and the path is
    # then idle for most of a run. That all arrives is what delivered_bytes says.
    assert run["metrics"]["utilization"] < 1.01


def test_one_machine_runs_the_whole_network(builds: Builds, tmp_path: Path) -> None:
    run = executed(tmp_path, "vm", LINE)
    assert_recorded(run, {"f1": ("medley", "s1", "d1")}, builds)
    assert run["metrics"]["flows"][0]["rtt_min_ms"] > 40


def test_sender_router_and_receiver_are_machines_of_their_own(builds: Builds, tmp_path: Path) -> None:
    run = executed(tmp_path, "cabled", LINE)
    assert_recorded(run, {"f1": ("medley", "s1", "d1")}, builds)
    assert set(run["facts"]["clocks"]) == set(run["facts"]["realtime"]) == {"s1", "r1", "d1"}
    assert run["metrics"]["flows"][0]["rtt_min_ms"] > 40


def test_katos_testbed_is_six_machines_with_two_flows_through_one_shaper(builds: Builds, tmp_path: Path) -> None:
    run = executed(tmp_path, "cabled", KATO)
    assert_recorded(run, {"ab": ("ttfwc", "a", "b"), "cd": ("reno", "c", "d")}, builds)
    assert set(run["facts"]["clocks"]) == {"a", "b", "c", "d", "r1", "r2"}
    rtt_ms = {flow["flow"]: flow["rtt_min_ms"] for flow in run["metrics"]["flows"]}
    assert rtt_ms["ab"] > 40 and rtt_ms["cd"] > 80


def test_kvm_is_used_only_if_a_guest_boots_under_it(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = builds.kernel / "linux"
    chosen = qemu.accelerator(kernel)
    assert chosen.reason and chosen.name in ("kvm", "tcg")
    # the same probe sees a guest that starts, here with an emulated CPU, and one that does not
    monkeypatch.setattr(qemu, "_accelerated", lambda name: ["-accel", "tcg", "-cpu", "max"])
    monkeypatch.setattr(qemu, "PROBE_S", 60.0)
    assert qemu._start_without_root(kernel) is None
    monkeypatch.setattr(qemu, "_accelerated", lambda name: ["-accel", "no-such-accelerator"])
    assert "no-such-accelerator" in str(qemu._start_without_root(kernel))


def machine_of(builds: Builds, image: Path) -> Spec:
    return Spec("machine", builds.kernel / "linux", image, 256, 1, qemu.accelerator(builds.kernel / "linux").name)


def test_a_failed_boot_shows_the_kernel_s_last_message(builds: Builds, tmp_path: Path) -> None:
    (tmp_path / "root.ext2").write_bytes(bytes(1 << 20))
    with started([machine_of(builds, tmp_path / "root.ext2")], tmp_path) as (machine,):
        with pytest.raises(BootError, match="Unable to mount root fs"):
            machine.wait_booted(lambda: False)
    assert not machine.is_alive


def test_a_boot_that_hangs_is_given_up_in_time(builds: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hosts.vm.machine.BOOT_S", {"kvm": 2.0, "tcg": 2.0})
    stopped = dataclasses.replace(machine_of(builds, builds.image / "root.ext2"), memory_mib=256)
    with started([stopped], tmp_path) as (machine,):
        os.kill(machine._process.pid, signal.SIGSTOP)
        with pytest.raises(BootError, match="not up after 2 s"):
            machine.wait_booted(lambda: False)
    assert not machine.is_alive


def start(tmp_path: Path, host: str, text: str) -> subprocess.Popen[bytes]:
    """An execution whose run has begun to send."""
    results = tmp_path / "results"
    process = subprocess.Popen(
        lab.command("execute", lab.write(tmp_path, text), "--host", host, "--results", results),
        cwd=lab.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=die_with_parent,
    )
    wait_until(
        lambda: any(b"running" in log.read_bytes() for log in results.glob(".aside/*/raw/*.log")),
        600,
        while_running=process,
        every_s=0.1,
    )
    return process


def qemus(parent: int) -> list[int]:
    """The QEMUs that a process has started."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = entry.read_text().rpartition(")")[0], entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if "qemu-system" in name and int(rest[1]) == parent:
            pids.append(int(entry.parent.name))
    return pids


def test_a_machine_that_vanishes_is_named_and_a_killed_controller_leaves_none(builds: Builds, tmp_path: Path) -> None:
    process = start(tmp_path, "cabled", LINE)
    own = sorted(qemus(process.pid))
    assert len(own) == 3
    os.kill(own[-1], signal.SIGKILL)  # d1, started last
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 1 and b"d1" in output
    (failed,) = (tmp_path / "results/line").glob("*.failed-1")
    assert "d1" in (failed / "run.json").read_text()
    process = start(tmp_path, "vm", LINE)
    (machine,) = qemus(process.pid)
    process.kill()
    process.communicate()
    wait_until(lambda: not Path(f"/proc/{machine}").exists() and not (tmp_path / "results/.aside").exists(), 30)
