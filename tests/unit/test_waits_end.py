# SPDX-License-Identifier: Apache-2.0
"""Programs that stand still (SIGSTOP) or flood: every wait for them has an end, says what it waited for, and fills no memory."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from agent import capture, endpoint, environment
from agent.errors import RunError
from base import cache
from base.errors import WarpbedError
from base.linux import die_with_parent
from hosts import watch
from hosts.base import Execution
from hosts.lines import Lines
from hosts.local import host as local
from hosts.local import probe
from hosts.nodes import station
from hosts.nodes.station import Station, StationError
from hosts.remote import Remote
from hosts.virtual.console import Console
from plan.model import Module
from playbooks.library import warpbed_lab
from tests import lab
from tests.waiting import wait_until

STANDS_STILL = "kill -STOP $$"
FAR_S = 60.0
"""Nothing here takes that long: a wait that lasts longer had no end."""
FIRST_PIDS = 0xEFFFFFFC
"""The inode of the namespace of processes that is no container's (Linux' PROC_PID_INIT_INO)."""


def stuck_in(folder: Path, monkeypatch: pytest.MonkeyPatch, *programs: str) -> None:
    """Programs of these names that stand still, before all others."""
    for name in programs:
        (folder / name).write_text(f"#!/bin/sh\n{STANDS_STILL}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def started(script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        preexec_fn=die_with_parent,
    )


@contextlib.contextmanager
def running(script: str) -> Iterator[subprocess.Popen[bytes]]:
    with started(script) as process:
        try:
            yield process
        finally:
            process.kill()


def execution(folder: Path, is_cancelled: bool = False) -> Execution:
    return Execution(cast(Any, None), folder, 0, 1, lambda seconds: None, lambda: is_cancelled)


@contextlib.contextmanager
def little_memory(most: float) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def test_an_agent_of_this_machine_that_stands_still_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents: list[subprocess.Popen[bytes]] = []

    def start(folder: Path, tracing: Path) -> subprocess.Popen[bytes]:
        agents.append(started(STANDS_STILL))
        return agents[0]

    monkeypatch.setattr(local, "_prepare", lambda *about: tmp_path)
    monkeypatch.setattr(local, "_start", start)
    monkeypatch.setattr(watch, "END_S", 0.3)
    begun = time.monotonic()
    stopped, _, code = local._execute(execution(tmp_path, is_cancelled=True), [], cast(Any, None))
    assert stopped is not None and stopped["detail"] == "interrupted"
    assert code == agents[0].returncode == -signal.SIGKILL and time.monotonic() - begun < FAR_S


def test_a_silent_agent_is_given_up_with_the_reason(tmp_path: Path) -> None:
    with open(tmp_path / "log", "wb") as log, running(STANDS_STILL) as process:
        stopped = watch.follow(process, Console(), log, execution(tmp_path), watch.Silence(0.2))
    assert stopped is not None and (stopped["stage"], stopped["subject"]) == ("watchdog", "agent")


def test_modprobe_that_stands_still_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck_in(tmp_path, monkeypatch, "modprobe")
    monkeypatch.setattr(local, "PREPARE_S", 0.2)
    monkeypatch.setattr(local, "loaded_modules", list)
    with pytest.raises(subprocess.SubprocessError, match=r"modprobe.* timed out"):
        local._load(Module("tcp_vegas"))


def test_a_kernel_whose_abilities_are_not_found_out_in_time_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/cat")
    monkeypatch.setattr(probe, "ATTEMPTS_S", 0.2)
    monkeypatch.setattr(subprocess, "run", lambda line, **how: _run_stuck(how["timeout"]))
    [problem] = probe._kernel_problems(cast(Any, None))
    assert "was not found out within 0 s; run it with --host virtual" in problem


def _run_stuck(timeout_s: float, run: Any = subprocess.run) -> Any:
    return run(["sh", "-c", STANDS_STILL], timeout=timeout_s)


class Near(Remote):
    """A machine that is this one, whose agent is a script."""

    script = ""

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return started(self.script)


def its_station(folder: Path, script: str) -> Station:
    remote = Near("192.0.2.1", 22, "root", None)
    object.__setattr__(remote, "script", script)
    one = Station("r1", remote, folder / "log")
    one.start()
    return one


def test_a_machines_agent_that_stands_still_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "END_S", 0.3)
    monkeypatch.setattr(station, "ANSWER_S", 0.3)
    one = its_station(tmp_path, STANDS_STILL)
    with pytest.raises(StationError, match="did not tell its time within 0 s"):
        one.clock()
    assert not one.has_reached("built")
    one.stop()
    assert one._process is not None and one._process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("flood", ["yes WARPBED at x", "yes WARPBED running 1", "yes WARPBED", "cat /dev/zero"])
def test_a_machines_agent_that_floods_holds_nobody_up_and_fills_neither_memory_nor_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flood: str
) -> None:
    monkeypatch.setattr(station, "ANSWER_S", 0.3)
    monkeypatch.setattr(station, "Lines", lambda log: Lines(log, kept=100_000))
    with little_memory(20e6):
        one = its_station(tmp_path, f"exec {flood}")
        wait_until(lambda: one.log.exists() and one.log.stat().st_size > 100_000)
        assert not one.has_reached("built")
        with pytest.raises(StationError, match="did not tell its time within 0 s"):
            one.clock()
        assert one._process is not None
        one._process.kill()
        one.stop()
    assert one.log.stat().st_size < 101_000


@pytest.mark.parametrize("message", ["running soon", "at", "running"])
def test_a_message_that_is_none_is_told_with_the_machine(tmp_path: Path, message: str) -> None:
    one = its_station(tmp_path, f"echo WARPBED {message}; cat")
    with pytest.raises(StationError, match=f"its agent says '{message}', which is no message") as told:
        wait_until(lambda: one.has_reached("built"))
    assert told.value.node == "r1"
    one.stop()


def test_a_guest_that_floods_fills_neither_memory_nor_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "Lines", lambda log: Lines(log, kept=100_000))
    script = (
        "head -c 30000000 /dev/zero; echo; for n in 1 2 3; do echo WARPBED running $n; done; echo WARPBED running x"
    )
    console = Console()
    with (
        little_memory(10e6),
        open(tmp_path / "log", "wb") as log,
        running(script) as process,
    ):
        assert watch.follow(process, console, log, execution(tmp_path), watch.Silence(FAR_S)) is None
    assert console.virtual_s == 3
    assert (tmp_path / "log").stat().st_size < 101_000
    for number in range(1000):
        console.line(f"WARPBED error {number}")
    assert len(console.errors) < 100 and console.errors[-1] == "999"


def test_lines_are_cut_where_they_end_and_where_they_are_too_long() -> None:
    log = io.BytesIO()
    said = Lines(log, kept=12, longest=4)
    assert said.take(b"ab") == []
    assert said.take(b"c\r\nde\nf") == ["abc", "de"]
    assert said.take(b"ghijkl") == []
    assert said.take(b"mn\n\no\n") == ["fghi", "", "o"]
    assert log.getvalue() == b"abc\r\nde\nfghi\n[it said more than is kept of it; the rest is left out]\n"


def test_tcpdump_that_does_not_say_that_it_listens_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck_in(tmp_path, monkeypatch, "tcpdump")
    monkeypatch.setattr(capture, "READY_TIMEOUT_S", 0.3)
    monkeypatch.setattr(capture, "entered", lambda pid: contextlib.nullcontext())
    with pytest.raises(RunError, match="capture lan0: tcpdump did not say within 0 s that it listens"):
        capture.TcpdumpCapture(os.getpid(), "lan0", 100, tmp_path, before=die_with_parent)


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("echo lan0: no such device >&2; exit 1", "tcpdump: lan0: no such device"),
        (f"echo closed >&2; exec 2>&-; {STANDS_STILL}", "tcpdump: closed"),
    ],
)
def test_tcpdump_that_ends_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, reason: str) -> None:
    stuck_in(tmp_path, monkeypatch, "tcpdump")
    (tmp_path / "tcpdump").write_text(f"#!/bin/sh\n{does}\n")
    monkeypatch.setattr(capture, "entered", lambda pid: contextlib.nullcontext())
    with pytest.raises(RunError, match=reason):
        capture.TcpdumpCapture(os.getpid(), "lan0", 100, tmp_path, before=die_with_parent)


LISTENS = """#!/usr/bin/python3 -IS
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # as tcpdump, also where whoever started it ignores the signal
try:
    sys.stderr.write("tcpdump: listen")
    sys.stderr.flush()
    time.sleep(0.1)
    print("listening on lan0", file=sys.stderr)
    while True:  # signal.pause() would miss a signal that comes just before it
        time.sleep(0.05)
except KeyboardInterrupt:
    print("3 packets dropped by kernel", file=sys.stderr)
"""


def test_tcpdump_that_listens_is_waited_for_and_tells_what_it_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck_in(tmp_path, monkeypatch, "tcpdump")
    (tmp_path / "tcpdump").write_text(LISTENS)
    monkeypatch.setattr(capture, "entered", lambda pid: contextlib.nullcontext())
    one = capture.TcpdumpCapture(os.getpid(), "lan0", 100, tmp_path, before=die_with_parent)
    one.check_running()
    assert one.stop() == 3


def test_ip_and_tc_that_stand_still_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck_in(tmp_path, monkeypatch, "ip", "tc")
    monkeypatch.setattr(endpoint, "ANSWER_S", 0.2)
    monkeypatch.setattr(environment, "ANSWER_S", 0.2)
    monkeypatch.setattr(environment, "entered", lambda pid: contextlib.nullcontext())
    monkeypatch.setattr(environment, "TOOLS", {"ip": ["ip", "-V"]})
    with pytest.raises(endpoint.RequestError, match="ip did not answer within 0 s"):
        endpoint.interface_of("192.0.2.1")
    with pytest.raises(RunError, match="environment tc: tc qdisc show: not done after 0 s"):
        environment.node(os.getpid(), [])
    assert environment.tools() == {"ip": None}


OF_A_MACHINE = """
import os, subprocess, sys, types
sys.path.insert(0, sys.argv[1])
from agent import machine, mininet_build
machine.HOLD_S = machine.GIVE_BACK_S = mininet_build.BATCH_S = 0.3
network = machine.MachineNetwork.__new__(machine.MachineNetwork)
network._holders, network._taken = {}, [("r1", "r1-eth0", "eth0", "02:00:00:00:00:01")]
for act in (lambda: network._hold("r1"), lambda: mininet_build.batch("ip", ["link"])):
    try:
        act()
    except Exception as error:
        print(f"{type(error).__name__}: {error}".splitlines()[0])
network.stop()
print(network._holders["r1"].returncode)
"""


def test_programs_that_build_a_machines_network_and_stand_still_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck_in(tmp_path, monkeypatch, "mnexec", "ip", "nsenter")
    if subprocess.run([local.SYSTEM_PYTHON, "-c", "import mininet"], capture_output=True, check=False).returncode:
        pytest.skip("the distribution's Python has no Mininet")
    line = [local.SYSTEM_PYTHON, "-I", "-B", "-c", OF_A_MACHINE, str(lab.ROOT)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=FAR_S, check=False)
    assert done.stdout.splitlines() == [
        "RunError: network r1: mnexec did not make its namespace within 0 s",
        "BuildError: ip -batch: not done after 0 s",
        "-9",
    ], done.stderr


def test_commands_on_a_lab_machine_that_stand_still_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck_in(tmp_path, monkeypatch, "ip")
    monkeypatch.setattr(warpbed_lab, "COMMAND_S", 0.2)
    with pytest.raises(warpbed_lab.RefusedError, match=r"ip -j addr: not done after 0 s; .*dmesg"):
        warpbed_lab.output("ip", "-j", "addr")
    lacks = warpbed_lab.attempt({"veth": ["ip link add"]})
    if os.geteuid() == 0:
        assert lacks["veth"].startswith("ip link add: not done after 0 s")
    warpbed_lab.write(warpbed_lab.state_file({"root": str(tmp_path)}), {"before": [], "nics": {"lan0": {}}})
    monkeypatch.setattr(warpbed_lab, "find", lambda name, was: name)
    monkeypatch.setattr(warpbed_lab, "nic_lines", lambda now, name, was: ["link set lan0 up"])
    left = warpbed_lab.restore({"root": str(tmp_path)}, check=False)["left"]
    assert len(left) == 1 and left[0].startswith("ip link set lan0 up: not done after 0 s")


def test_who_holds_what_is_waited_for_is_told_and_the_wait_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "locks/build"
    monkeypatch.setattr(cache, "NOTICE_S", 0.1)
    monkeypatch.setattr(cache, "PATIENCE_S", 0.5)
    file.parent.mkdir()
    with running(f"exec 9>{shlex.quote(str(file))}; flock 9; echo held; {STANDS_STILL}") as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(WarpbedError, match=r"build: still held after \d+ s by .*; end that process") as told:
            with cache.locked(file):
                pytest.fail("it is held")
        # flock(1) has taken it for the shell that started it, and has ended; to a container Linux tells nothing of such a one
        holders = r"what process \d+ has started, which has ended itself"
        if os.stat("/proc/self/ns/pid").st_ino != FIRST_PIDS:
            holders += "|another process"
        assert re.search(f"by ({holders}); end that process", str(told.value))
        assert re.match(f"waiting for {re.escape(str(file))}, which is held by ({holders})", capsys.readouterr().err)
        with cache.locked(file, wait=False) as descriptor:
            assert descriptor is None
    with cache.locked(file) as descriptor:
        assert descriptor is not None
        assert cache._holder(descriptor) == f"process {os.getpid()} ({Path('/proc/self/comm').read_text().strip()})"


def test_what_becomes_free_in_time_is_taken(tmp_path: Path) -> None:
    with cache.locked(tmp_path / "lock") as held:
        assert held is not None
        other = os.dup(held)
    threading.Timer(0.2, os.close, [other]).start()
    with cache.locked(tmp_path / "lock") as mine:
        assert mine is not None
