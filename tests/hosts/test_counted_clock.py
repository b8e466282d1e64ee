# SPDX-License-Identifier: Apache-2.0
"""A machine whose clock counts instructions: valid runs, the same to the byte on a busy computer, and near the virtual host."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from base.linux import die_with_parent
from hosts.vm import counted, initramfs
from hosts.vm.builds import Builds
from kernels.stock_machine import SYSTEM
from tests import lab
from tests.hosts.test_vm_host import qemus
from tests.waiting import wait_until

pytestmark = [pytest.mark.real_host, pytest.mark.slow]

LINE = """\
warpbed: 1
name: counted
title: A clock that counts
duration: 8s
warmup: 2s
topology: {name: line, params: {rate: 2mbit, delay: 20ms, buffer: 20p}}
hosts: {overhead: none}
flows:
  - {name: f1, cca: medley, from: s1, to: d1}
  - {name: f2, cca: cubic, from: s1, to: d1, start: 1s}
"""
BUSY = """\
import random, time
while True:
    end = time.perf_counter() + random.uniform(0.0002, 0.004)
    while time.perf_counter() < end:
        pass
    time.sleep(random.uniform(0.001, 0.02))
"""
SLEEPER = """\
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <sys/reboot.h>

int main(void)
{
	unsigned long hash = 0;
	struct timespec now;

	for (int i = 0; i <= 20000; i++) {
		nanosleep(&(struct timespec){ 0, 20000 + i * 7919L % 150000 }, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		hash = hash * 31 + now.tv_sec * 1000000000UL + now.tv_nsec;
		if (i % 500 == 0)
			printf("slept %d %ld.%09ld %lx\\n", i, now.tv_sec, now.tv_nsec, hash);
	}
	fflush(stdout);
	return reboot(RB_AUTOBOOT);
}
"""
"""Sleeps twenty thousand times, and says when it woke: of each sleep, what QEMU's two threads do decides about a leap of the clock."""


@pytest.fixture(scope="module", autouse=True)
def counted_clock() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARPBED_VM_CLOCK", "counted")
        yield


@pytest.fixture(scope="module")
def first(builds: Builds, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The run with seed 1 on a computer that does nothing else for this test."""
    return executed(tmp_path_factory.mktemp("first") / "run", "vm")


@contextlib.contextmanager
def computer_busy() -> Iterator[None]:
    """Every CPU has another process, which works and rests for times drawn at random: so it comes between at every kind of moment."""
    line = [sys.executable, "-S", "-c", BUSY]
    own = [subprocess.Popen(line, preexec_fn=die_with_parent) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for process in own:
            process.kill()
            process.wait()


@contextlib.contextmanager
def one_cpu() -> Iterator[None]:
    """This thread, and what it starts meanwhile, share a CPU."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _wake_without_end(monitor: Path, process: subprocess.Popen[bytes]) -> None:
    """Each empty line wakes QEMU's main thread, which then looks whether the CPU waits."""
    wait_until(monitor.exists, 60, while_running=process, every_s=0.01)
    with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
        connection.connect(str(monitor))
        while process.poll() is None:
            connection.sendall(b"\n")
            time.sleep(0)  # one line a wake: a full socket is read at once


def sleeper_boots(builds: Builds, folder: Path, *, disturbed: bool) -> bytes:
    """The console of a machine that only sleeps. disturbed: while its main thread is woken without end."""
    folder.mkdir()
    program, archive, disk, monitor = (folder / name for name in ("init", "initrd", "disk", "monitor"))
    subprocess.run(["gcc", "-O1", "-static", "-x", "c", "-", "-o", program], input=SLEEPER.encode(), check=True)
    with archive.open("wb") as stream:
        root = initramfs.Archive(stream)
        root.device("dev/console", 5, 1)
        root.file(counted.INIT.lstrip("/"), program, 0o755)
        root.end()
    disk.write_bytes(bytes(1 << 16))
    line = counted.command(builds.kernel / "linux", archive, disk, 256, 1, (builds.kernel / SYSTEM).is_dir())
    process = subprocess.Popen(
        [*line, "-qmp", f"unix:{monitor},server=on,wait=off"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=die_with_parent,
    )
    waker = threading.Thread(target=_wake_without_end, args=(monitor, process))
    if disturbed:
        waker.start()
    said, _ = process.communicate(timeout=600)
    if disturbed:
        waker.join()
    return said


def test_no_leap_of_the_clock_depends_on_which_of_qemus_threads_is_late(builds: Builds, tmp_path: Path) -> None:
    """Without the lock that a recording QEMU holds (counted.ICOUNT), each boot that was disturbed differed from the first.

    On one CPU, where the threads wait for one another: on two, boots without the lock were equal.
    """
    with one_cpu():
        consoles = [sleeper_boots(builds, tmp_path / str(number), disturbed=number > 0) for number in range(3)]
    assert consoles[0].count(b"slept ") == 41 and b"slept 20000 " in consoles[0]
    assert [number for number, console in enumerate(consoles) if console != consoles[0]] == []


def executed(folder: Path, host: str, seed: int = 1) -> dict[str, Any]:
    folder.mkdir()
    file, results = lab.write(folder, LINE), folder / "results"
    lab.warpbed("execute", file, "--host", host, "--seed", str(seed), "--results", results, timeout_s=900)
    (run,) = lab.runs(folder / "results/counted")
    assert run["host"] == host and run["status"] == "complete"
    return run


def files(run: dict[str, Any]) -> dict[str, bytes]:
    return {str(file.relative_to(run["path"])): file.read_bytes()
            for kind in ("raw", "records") for file in sorted((run["path"] / kind).iterdir())}  # fmt: skip


def test_a_run_is_valid_the_same_to_the_byte_and_near_the_virtual_one(first: dict[str, Any], tmp_path: Path) -> None:
    assert first["verdict"] == {"value": "valid", "reasons": [], "clock": "counted"}
    # no second of the run was one of this computer's: its timers are late by what its CPU works, not by what this one is busy with
    assert first["facts"]["realtime"]["timer_late_p99_us"] < 200
    with computer_busy():
        second = executed(tmp_path / "second", "vm")
    a, b = files(first), files(second)
    assert a.keys() == b.keys() and [name for name in a if a[name] != b[name]] == []
    assert any(name.endswith(".pcap") for name in a) and "raw/guest.json" in a
    cost = first["facts"]["host"]
    assert cost["clock"] == "counted" and (cost["instructions"] is None or cost["instructions"] > 10**7)
    virtual = executed(tmp_path / "virtual", "virtual")
    for metric in ("utilization", "goodput_mbps"):
        assert first["metrics"][metric] == pytest.approx(virtual["metrics"][metric], rel=0.01)


def test_another_seed_gives_other_initial_sequence_numbers(first: dict[str, Any], tmp_path: Path) -> None:
    """The seed reaches the machine's random numbers: what repeats is the run, not every run."""
    other = executed(tmp_path / "other", "vm", seed=2)
    assert [flow["initial_seq"] for flow in _flows(first)] != [flow["initial_seq"] for flow in _flows(other)]


def _flows(run: dict[str, Any]) -> list[dict[str, Any]]:
    table = lab.table(run["path"], "flows")
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


def test_a_killed_controller_leaves_no_machine(builds: Builds, tmp_path: Path) -> None:
    results = tmp_path / "results"
    process = subprocess.Popen(
        lab.command("execute", lab.write(tmp_path, LINE), "--host", "vm", "--results", results),
        cwd=lab.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=die_with_parent,
    )
    wait_until(
        lambda: any(b"booted" in log.read_bytes() for log in results.glob(".aside/*/raw/console.log")),
        300,
        while_running=process,
        every_s=0.1,
    )
    (machine,) = qemus(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not Path(f"/proc/{machine}").exists() and not (results / ".aside").exists(), 30)


def test_a_setting_that_is_none_is_refused_before_anything_starts(
    builds: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value, word in (
        ("WARPBED_VM_CLOCK", "atomic", "counted or real"),
        ("WARPBED_USERLAND", "host", "pinned"),
    ):
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            file = lab.write(tmp_path, LINE)
            printed = lab.warpbed("execute", file, "--host", "vm", "--results", tmp_path / "r", code=2)
        assert word in printed and not (tmp_path / "r").exists()
