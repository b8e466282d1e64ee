# SPDX-License-Identifier: Apache-2.0
"""One end of a campaign's transfers: a program that answers one request per call and leaves the work to a process behind.

    python3 -I agent.pyz < request.json > answer.json

Requests are {"do": …}: probe, start, status, close, fetch, remove, list, trace. Nothing that it is told is given to a shell.
Each attempt at a transfer has a folder <root>/transfers/<id>/, whose status.json says how far it is; a second `start` of
the same attempt starts nothing.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any, BinaryIO

from agent import bpf, environment
from agent.transfer import Transfer, boot_id, read_status, supervise, write_status
from base.errors import WarpbedError

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")
READY_S = 20.0
CLOSE_S = 15.0
ANSWER_S = 10.0
"""Of a program that only tells something."""
TRACE_TIMEOUT_S = 120.0
HOP = re.compile(r"^\s*(\d+)\s+(.*)$")


class RequestError(WarpbedError):
    """A request that cannot be served; the text says why."""


def main() -> int:
    """Serve the request on standard input."""
    try:
        request = json.loads(sys.stdin.read())
        root = Path(request["root"])
        if not root.is_absolute():
            raise RequestError(f"{root}: the agent's folder must be an absolute path")
        if request["do"] == "fetch":
            _fetch(_folder(root, request), sys.stdout.buffer)
            return 0
        serve = {
            "probe": _probe, "start": _start, "status": _status, "close": _close, "remove": _remove, "list": _list,
            "trace": _trace,
        }[request["do"]]  # fmt: skip
        answer = serve(root, request)
    except RequestError as error:
        answer = {"refused": str(error)}
    except (KeyError, ValueError, TypeError) as error:
        answer = {"refused": f"not a request: {type(error).__name__}: {error}"}
    except OSError as error:
        answer = {"refused": f"{error.filename or ''}: {error.strerror}"}
    print(json.dumps(answer))
    return 0


def _folder(root: Path, request: dict[str, Any]) -> Path:
    name = request["id"]
    if not isinstance(name, str) or not ID.fullmatch(name):
        raise RequestError(f"{name!r}: not the id of a transfer")
    return root / "transfers" / name


def _probe(root: Path, request: dict[str, Any]) -> dict[str, Any]:
    """What the host is and has: room, algorithms, whether it takes BPF programs, tools, clock, and the interface of its test address."""
    address = str(ipaddress.IPv4Address(request["address"]))
    root.mkdir(parents=True, exist_ok=True)
    room = os.statvfs(root)
    return {
        "time_ns": time.time_ns(), "boot_id": boot_id(), "uid": os.geteuid(),
        "free_bytes": room.f_bavail * room.f_frsize, "interface": interface_of(address),
        "algorithms": Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split(),
        "bpf": bpf.KERNELS_OWN.exists(),
        "kernel": environment.kernel(), "tools": dict(environment.tools()), "clock": _clock(),
    }  # fmt: skip


def interface_of(address: str) -> str | None:
    """Name of the interface that has an address; None where none has it."""
    try:
        done = subprocess.run(["ip", "-j", "-4", "addr", "show"], capture_output=True, text=True, timeout=ANSWER_S)
    except subprocess.TimeoutExpired as error:
        raise RequestError(f"ip did not answer within {ANSWER_S:.0f} s") from error
    for entry in json.loads(done.stdout or "[]"):
        if any(info.get("local") == address for info in entry.get("addr_info", [])):
            return str(entry["ifname"])
    return None


def _clock() -> dict[str, Any]:
    """What chrony says of this host's clock; "source" is None where chrony does not run."""
    try:
        done = subprocess.run(["chronyc", "-n", "-c", "tracking"], capture_output=True, text=True, timeout=ANSWER_S)
    except (OSError, subprocess.TimeoutExpired):
        return {"source": None}
    fields = done.stdout.strip().split(",")
    if done.returncode or len(fields) < 14:
        return {"source": None}
    # reference id, address, stratum, reference time, system time offset, …, root delay, root dispersion, interval, leap
    bound_s = float(fields[10]) / 2 + float(fields[11]) + abs(float(fields[4]))
    return {
        "source": fields[1],
        "stratum": int(fields[2]),
        "offset_s": float(fields[4]),
        "bound_s": bound_s,
        "leap": fields[13],
    }


def _start(root: Path, request: dict[str, Any]) -> dict[str, Any]:
    folder = _folder(root, request)
    transfer = Transfer.from_request(request["transfer"])
    if not folder.exists():
        aside = folder.with_name(f".{folder.name}.{os.getpid()}")
        aside.mkdir(parents=True, mode=0o700)
        write_status(aside, {"state": "starting", "boot_id": boot_id(), "pid": 0})
        try:
            os.rename(aside, folder)
        except OSError:  # another call was faster
            shutil.rmtree(aside, ignore_errors=True)
        else:
            _detach(folder, transfer)
    deadline = time.monotonic() + READY_S
    while (status := read_status(folder)).get("state") == "starting" and time.monotonic() < deadline:
        time.sleep(0.05)
    return _seen(status)


def _detach(folder: Path, transfer: Transfer) -> None:
    """Leave the transfer to a process in a session of its own, which no lost connection ends."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(folder / "console.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number, target in ((0, null), (1, log), (2, log)):
        os.dup2(target, number)
    os.chdir("/")
    try:
        supervise(folder, transfer)
    finally:
        os._exit(0)


def _seen(status: dict[str, Any]) -> dict[str, Any]:
    """A status with what became of its process: "lost" where that has gone without saying how it ended."""
    if status.get("state") in ("absent", "ended"):
        return status
    if status.get("boot_id") != boot_id():
        return {**status, "state": "lost", "reason": "the host has restarted in the middle"}
    pid = int(status.get("pid") or 0)
    if pid and not _is_supervisor(pid, str(status.get("started"))):
        return {**status, "state": "lost", "reason": "the process behind it was killed"}
    return status


def _is_supervisor(pid: int, started: str) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return False
    return fields[19] == started and fields[0] != "Z"


def _status(root: Path, request: dict[str, Any]) -> dict[str, Any]:
    return _seen(read_status(_folder(root, request)))


def _close(root: Path, request: dict[str, Any]) -> dict[str, Any]:
    """End a transfer's processes, if there are any; its files stay."""
    folder = _folder(root, request)
    status = _seen(read_status(folder))
    pid = int(status.get("pid") or 0)
    deadline = time.monotonic() + CLOSE_S
    if status["state"] in ("ready", "running", "starting") and pid:
        os.kill(pid, signal.SIGTERM)
        while _is_supervisor(pid, str(status.get("started"))) and time.monotonic() < deadline:
            time.sleep(0.05)
        if _is_supervisor(pid, str(status.get("started"))):
            os.kill(pid, signal.SIGKILL)  # what it has started dies with it
    return _seen(read_status(folder))


def _fetch(folder: Path, out: BinaryIO) -> None:
    """The files of an ended transfer as a compressed tar stream."""
    with tarfile.open(fileobj=out, mode="w|gz") as archive:
        for path in sorted(folder.iterdir()):
            if path.is_file():
                archive.add(path, arcname=path.name, recursive=False)


def _remove(root: Path, request: dict[str, Any]) -> dict[str, Any]:
    _close(root, request)
    shutil.rmtree(_folder(root, request), ignore_errors=True)
    return {"removed": True}


def _list(root: Path, _request: dict[str, Any]) -> dict[str, Any]:
    """Every transfer that has a folder here, with its state."""
    folders = sorted(path for path in (root / "transfers").glob("*") if ID.fullmatch(path.name))
    return {"transfers": {path.name: _seen(read_status(path))["state"] for path in folders}}


def _trace(_root: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Hops to an address with three round-trip times each, ms (Ho 2008 Table 6.1)."""
    address = str(ipaddress.IPv4Address(request["address"]))
    command = ["traceroute", "-n", "-q", "3", "-w", "2", "-m", "30", address]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TRACE_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RequestError(f"traceroute {address}: {error}") from error
    if done.returncode:
        raise RequestError(f"traceroute {address}: {done.stderr.strip()}")
    return {"hops": hops(done.stdout)}


def hops(text: str) -> list[dict[str, Any]]:
    """traceroute's lines as {"hop", "addresses", "rtt_ms"}; a router that did not answer has neither."""
    rows = []
    for line in text.splitlines()[1:]:
        match = HOP.match(line)
        if match:
            fields = match[2].split()
            delays = [float(word) for word, unit in itertools.pairwise(fields) if unit == "ms"]
            addresses = [word for word in fields if re.fullmatch(r"[0-9.]+\.[0-9.]+\.[0-9.]+", word)]
            rows.append({"hop": int(match[1]), "addresses": list(dict.fromkeys(addresses)), "rtt_ms": delays})
    return rows


if __name__ == "__main__":
    sys.exit(main())
