# SPDX-License-Identifier: Apache-2.0
"""The process behind one end of a transfer: capture, transfer, samples, and a status file that says how far it is.

Everything it starts dies with it, and it ends by itself at its deadline, so that no service stays open where the
controlling host has gone. The receiver's service listens on the test address only, takes one transfer, and asks for
a key that was made for this attempt and is on no disk.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import hashlib
import ipaddress
import json
import os
import pkgutil
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from agent import bpf, confined, environment, left_behind, sockets
from agent.capture import TcpdumpCapture
from agent.errors import RunError
from agent.samples import Sampler
from base.linux import die_with_parent
from plan.model import BpfObject

PROGRAM = "filetransfer.py"
TICK_S = 0.02
FLUSH_S = 1.2
"""tcpdump gets packets in blocks, at the latest after a second."""
SILENCE_S = 60.0
"""Longest time that data may stay unacknowledged, or a side may hear nothing of the other."""
KEY = "0123456789abcdef"
LARGEST_OBJECT_BYTES = 4 << 20
"""Of a BPF object; those of the kernel's own algorithms have some tens of thousands."""
CCA = "abcdefghijklmnopqrstuvwxyz0123456789_"


@dataclass(frozen=True)
class Transfer:
    """What an end has to do.

    side: "receiver" or "sender"; own and peer: test addresses; deadline_s: when it ends whatever has happened
    key: hexadecimal, made for this attempt, on no disk and in no command line
    bpf: the algorithm as a BPF object, in base64, to be registered for this transfer; empty: the kernel has it
    """

    side: str
    own: str
    peer: str
    interface: str
    port: int
    deadline_s: float
    key: str = dataclasses.field(repr=False)
    cca: str = ""
    size_bytes: int = 0
    pacing_bps: int | None = None
    rate_at_most_bps: int | None = None
    snap_bytes: int = 96
    packets_at_most: int = 0
    sockets_interval_s: float = 0.1
    bpf: str = dataclasses.field(default="", repr=False)

    @staticmethod
    def from_request(data: dict[str, Any]) -> Transfer:
        """Raises ValueError or TypeError for values that are not what they are named."""
        transfer = Transfer(**data)
        for address in (transfer.own, transfer.peer):
            ipaddress.IPv4Address(address)
        if transfer.side not in ("receiver", "sender") or not 1024 <= transfer.port <= 65535:
            raise ValueError(f"side {transfer.side!r}, port {transfer.port}")
        if set(transfer.cca) - set(CCA) or set(transfer.key) - set(KEY):
            raise ValueError(f"cca {transfer.cca!r}, or a key that is not hexadecimal")
        if len(transfer.object()) > LARGEST_OBJECT_BYTES:
            raise ValueError(f"bpf: more than {LARGEST_OBJECT_BYTES} bytes")
        return transfer

    def object(self) -> bytes:
        """The BPF object. Raises ValueError where it is not base64."""
        try:
            return base64.b64decode(self.bpf, validate=True)
        except binascii.Error as error:
            raise ValueError(f"bpf: {error}") from error


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def read_status(folder: Path) -> dict[str, Any]:
    try:
        status: dict[str, Any] = json.loads((folder / "status.json").read_text())
    except FileNotFoundError:
        return {"state": "absent"}
    return status


def write_status(folder: Path, status: dict[str, Any]) -> None:
    fresh = folder / ".status.json"
    with open(fresh, "w") as file:
        file.write(json.dumps(status))
        file.flush()
        os.fsync(file.fileno())
    os.rename(fresh, folder / "status.json")


def supervise(folder: Path, transfer: Transfer) -> None:
    """Do this end's part; status.json ends as {"state": "ended", "ok": …, "reason": …} with what was measured."""

    def told_to_end(*_: object) -> None:
        raise RunError("transfer", transfer.side, "told to end")

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, told_to_end)
    started = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19]
    base: dict[str, Any] = {"boot_id": boot_id(), "pid": os.getpid(), "started": started}
    write_status(folder, {**base, "state": "starting"})
    end = _End(folder, transfer, base)
    facts: dict[str, Any] = {"ok": False, "reason": ""}
    try:
        with left_behind.watched() if transfer.bpf else contextlib.nullcontext(), bpf.registered(end.objects()):
            end.run()
        facts["ok"] = True
    except RunError as error:
        facts["reason"] = str(error)
    except BaseException as error:  # noqa: BLE001 — whatever it is, the other side must hear of it
        facts["reason"] = f"{type(error).__name__}: {error}"
        traceback.print_exc()
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        end.close()
        write_status(folder, {**base, **facts, **end.facts, "state": "ended"})


class _End:
    def __init__(self, folder: Path, transfer: Transfer, base: dict[str, Any]) -> None:
        self.folder, self.transfer, self.base = folder, transfer, base
        self.facts: dict[str, Any] = {}
        self._capture: TcpdumpCapture | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._object = folder / "algorithm.bpf.o"

    def run(self) -> None:
        t = self.transfer
        self.facts["environment"] = {
            "kernel": environment.kernel(),
            "tools": dict(environment.tools()),
            "nodes": {t.side: environment.node(os.getpid(), [t.interface])},
        }
        expression = ["tcp", "port", str(t.port), "and", "host", t.peer]
        self._capture = TcpdumpCapture(
            os.getpid(), t.interface, t.snap_bytes, self.folder, t.packets_at_most, tuple(expression), die_with_parent
        )
        request = self._request()
        self.facts["start_realtime_ns"], self.facts["start_monotonic_ns"] = time.time_ns(), time.monotonic_ns()
        with open(self.folder / f"{t.side}.json", "wb") as out:
            self._process = self._started(out)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode())
        self._process.stdin.close()
        if t.side == "receiver":
            self._wait_listening()
            write_status(self.folder, {**self.base, "state": "ready"})
        else:
            write_status(self.folder, {**self.base, "state": "running"})
        self._watch()
        time.sleep(FLUSH_S)
        self.facts["captures_cut"] = self._capture.is_full()
        self.facts["capture_drops"] = self._capture.stop()

    def objects(self) -> list[BpfObject]:
        """The algorithm, if it is a BPF object; its file is gone when this end has ended."""
        if not self.transfer.bpf:
            return []
        content = self.transfer.object()
        self._object.write_bytes(content)
        return [BpfObject(self.transfer.cca, str(self._object), hashlib.sha256(content).hexdigest())]

    def _request(self) -> dict[str, Any]:
        """What the program that transfers is told on its standard input."""
        t = self.transfer
        request: dict[str, Any] = {"own": t.own, "peer": t.peer, "port": t.port, "key": t.key, "silence_s": SILENCE_S}
        if t.side == "sender":
            sending = {"cca": t.cca, "size": t.size_bytes, "pacing_bps": t.pacing_bps}
            return request | sending | {"rate_at_most_bps": t.rate_at_most_bps}
        return request | {"at_most": t.size_bytes}

    def _started(self, out: IO[bytes]) -> subprocess.Popen[bytes]:
        """The receiver, which others can reach, confined; the sender needs root to choose an algorithm that is not for all."""
        program = pkgutil.get_data("agent", PROGRAM) or b""
        if self.transfer.side == "receiver":
            service = confined.start(program, ["receive"], sys.executable, self.transfer.deadline_s, out)
            self.facts["confined"] = confined.facts(service.pid)
            return service
        (self.folder / PROGRAM).write_bytes(program)
        line = [sys.executable, "-B", "-I", "-S", str(self.folder / PROGRAM), "send"]
        return subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, preexec_fn=die_with_parent
        )

    def _wait_listening(self) -> None:
        """The program says nothing; the kernel's table of sockets does."""
        address = int.from_bytes(ipaddress.IPv4Address(self.transfer.own).packed, "little")
        wanted = f"{address:08X}:{self.transfer.port:04X}"
        deadline = time.monotonic() + 10
        while not any(
            line.split()[1:4:2] == [wanted, "0A"] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        ):
            self._check_alive(may_end=False)
            if time.monotonic() > deadline:
                raise RunError("transfer", "receiver", f"no service on {self.transfer.own}:{self.transfer.port}")
            time.sleep(TICK_S)

    def _check_alive(self, may_end: bool) -> bool:
        """Whether the transfer still runs. Raises RunError where it has failed, or the capture has."""
        assert self._process is not None and self._capture is not None
        try:
            self._capture.check_running()
        except RunError as error:
            room = os.statvfs(self.folder)
            free = room.f_bavail * room.f_frsize
            raise RunError("capture", error.subject, f"{error.detail} ({free // 10**6} MB free)") from error
        code = self._process.poll()
        if code is None:
            return True
        if code or not may_end:
            raise RunError("transfer", self.transfer.side, f"exit code {code}: {self._words()}")
        return False

    def _words(self) -> str:
        text = (self.folder / f"{self.transfer.side}.json").read_text(errors="replace")
        try:
            return str(json.loads(text).get("error", "no reason given"))
        except (ValueError, AttributeError):
            return text[-300:].strip() or "it printed nothing"

    def _watch(self) -> None:
        t = self.transfer
        deadline = time.monotonic() + t.deadline_s
        sampler, next_sample = None, time.monotonic()
        if t.side == "sender":
            sampler = Sampler(
                open(self.folder / "sockets.bin", "wb", buffering=1 << 20), sockets.PROTOCOL, sockets.question(t.port)
            )
            sampler.add(0)
        try:
            while self._check_alive(may_end=True):
                now = time.monotonic()
                if now > deadline:
                    raise RunError("transfer", t.side, f"not done within {t.deadline_s:g} s")
                if sampler is not None and now >= next_sample:
                    sampler.sample()
                    next_sample += t.sockets_interval_s * max(1, int((now - next_sample) / t.sockets_interval_s) + 1)
                time.sleep(TICK_S)
        finally:
            if sampler is not None:
                sampler.close()
        self.facts["ended_s"] = (time.monotonic_ns() - self.facts["start_monotonic_ns"]) / 1e9
        if self._words_of_result():
            raise RunError("transfer", t.side, self._words_of_result())

    def _words_of_result(self) -> str:
        try:
            return str(json.loads((self.folder / f"{self.transfer.side}.json").read_text()).get("error", ""))
        except ValueError:
            return "its result is not JSON"

    def close(self) -> None:
        """End what still runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._capture is not None:
            self._capture.kill()
        (self.folder / PROGRAM).unlink(missing_ok=True)
        self._object.unlink(missing_ok=True)
