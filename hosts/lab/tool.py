# SPDX-License-Identifier: Apache-2.0
"""Look at a lab machine, tune it for measuring, and put it back: runs there as root, with the standard library only.

    python3 -I tool.py facts|tune|restore [--check] < request.json

Prints one JSON object. Before `tune` changes a thing, its value is written to STATE, once: a second `tune` never takes its own
work for the machine's, and `restore` works after any failure, also after a reboot. Interfaces are known by their index and
device, so that one which a killed run has left under another name is found. A request must say which interfaces are
`protected` (control.py, asked before sudo); one that does not, or that names one of them, is refused.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SYS_NET = Path("/sys/class/net")
CPUS = Path("/sys/devices/system/cpu")
SIOCETHTOOL = 0x8946
OFFLOADS = {"tso": (0x1E, 0x1F), "gso": (0x23, 0x24), "gro": (0x2B, 0x2C)}
"""Name: ETHTOOL_G…, ETHTOOL_S… of linux/ethtool.h."""
CLONE_NEWNET = 0x40000000
STATE = "lab-state.json"


class RefusedError(Exception):
    """A request that must not or cannot be carried out."""


def output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout
    except OSError:
        return ""


def offload(nic: str, name: str, value: int | None = None) -> int:
    """Read, or with a value set, one of OFFLOADS."""
    get, put = OFFLOADS[name]
    data = bytearray(struct.pack("=II", get if value is None else put, value or 0))
    buffer = (ctypes.c_char * len(data)).from_buffer(data)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("16sP", nic.encode(), ctypes.addressof(buffer)))
    return int(struct.unpack("=II", data)[1])


def nic_facts(nic: str) -> dict[str, Any]:
    (entry,) = json.loads(output("ip", "-j", "addr", "show", "dev", nic) or "[{}]") or [{}]
    speed = (SYS_NET / nic / "speed").read_text().strip() if entry.get("operstate") == "UP" else ""
    device = SYS_NET / nic / "device"
    return {
        "index": entry.get("ifindex"), "mac": entry.get("address"), "mtu": entry.get("mtu"),
        "up": "UP" in entry.get("flags", []), "carrier": "LOWER_UP" in entry.get("flags", []),
        "speed_mbps": int(speed) if speed.lstrip("-").isdigit() and int(speed) > 0 else None,
        "device": os.path.realpath(device) if device.exists() else None,
        "addresses": [f"{i['local']}/{i['prefixlen']}" for i in entry.get("addr_info", []) if i.get("scope") == "global"],
        "offloads": {name: offload(nic, name) for name in OFFLOADS},
    }  # fmt: skip


def facts(request: dict[str, Any]) -> dict[str, Any]:
    """Everything that decides whether the machine can be a node."""
    room = os.statvfs("/")
    nics = {nic: nic_facts(nic) if (SYS_NET / nic).exists() else None for nic in request["nics"]}
    return {
        "uid": os.geteuid(), "release": os.uname().release, "version": os.uname().version,
        "free_bytes": room.f_bavail * room.f_frsize,
        "nics": nics, "tools": [tool for tool in request["tools"] if shutil.which(tool) is None],
        "algorithms": Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split(),
        "clock": output("chronyc", "-n", "-c", "tracking").strip().split(","),
        "lacks": attempt(request["attempts"]), "governors": sorted({g.read_text().strip() for g in governors()}),
        "tuned": state_file(request).exists(),
    }  # fmt: skip


def attempt(lines: dict[str, list[str]]) -> dict[str, str]:
    """What the kernel refuses, tried in a network namespace that goes with a child process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        failed: dict[str, str] = {}
        if ctypes.CDLL(None).unshare(CLONE_NEWNET):
            failed = {"namespace": "no network namespace can be made"}
        else:
            for name, commands in lines.items():
                for line in commands:
                    done = subprocess.run(line.split(), capture_output=True, text=True)
                    if done.returncode:
                        failed[name] = (done.stderr.strip().splitlines() or ["refused"])[-1]
        os.write(write, json.dumps(failed).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answers:
        text = answers.read()
    os.waitpid(child, 0)
    found: dict[str, str] = json.loads(text)
    return found


def governors() -> list[Path]:
    return sorted(CPUS.glob("cpu[0-9]*/cpufreq/scaling_governor"))


def state_file(request: dict[str, Any]) -> Path:
    return Path(request["root"]) / STATE


def irqs(nic: str) -> list[Path]:
    """Affinity files of an interface's interrupts."""
    return [
        Path(f"/proc/irq/{entry.name}/smp_affinity_list")
        for entry in sorted((SYS_NET / nic / "device/msi_irqs").glob("*"))
        if Path(f"/proc/irq/{entry.name}").is_dir()
    ]


def changes(request: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """(kind, object, value now, value wanted) of everything that is not as the request wants it."""
    for name, value in request.get("sysctls", {}).items():
        file = Path("/proc/sys") / name.replace(".", "/")
        if not file.exists():
            raise RefusedError(f"sysctl {name}: this kernel has none")
        now = " ".join(file.read_text().split())
        if now != " ".join(str(value).split()):
            yield "file", str(file), now, str(value)
    for file in governors() if request.get("governor") else []:
        if (now := file.read_text().strip()) != request["governor"]:
            yield "file", str(file), now, request["governor"]
    for nic in request["nics"]:
        if not (SYS_NET / nic).exists():
            raise RefusedError(f"{nic}: there is no such interface; it has {', '.join(sorted(os.listdir(SYS_NET)))}")
        for name in OFFLOADS:
            if offload(nic, name):
                yield "offload", f"{nic} {name}", "1", "0"
        for file in irqs(nic) if request.get("irq_cpu") is not None else []:
            if (now := file.read_text().strip()) != str(request["irq_cpu"]):
                yield "file", str(file), now, str(request["irq_cpu"])


def apply(kind: str, what: str, value: str) -> None:
    if kind == "file":
        Path(what).write_text(value)
    else:
        nic, name = what.split()
        offload(nic, name, int(value))


def tune(request: dict[str, Any], check: bool) -> dict[str, Any]:
    """Make the machine as wanted; what it was is in the state file before."""
    protected = request.get("protected")
    if not protected:
        raise RefusedError("which interface SSH comes in by is not known; nothing was changed (lab_control)")
    for nic in protected.keys() & set(request["nics"]):
        raise RefusedError(f"{nic} {protected[nic]}; it is never touched")
    todo = list(changes(request))
    words = [f"{kind} {what}: {now} → {wanted}" for kind, what, now, wanted in todo]
    file = state_file(request)
    if not check and (todo or not file.exists()):
        state = json.loads(file.read_text()) if file.exists() else {"before": [], "nics": {}}
        known = {(kind, what) for kind, what, _ in state["before"]}
        state["before"] += [[kind, what, now] for kind, what, now, _ in todo if (kind, what) not in known]
        for nic in request["nics"]:
            state["nics"].setdefault(nic, nic_facts(nic))
        write(file, state)
        for kind, what, _, wanted in todo:
            apply(kind, what, wanted)
    return {"changed": bool(words), "changes": words}


def write(file: Path, state: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_suffix(".new")
    with open(fresh, "w") as out:
        out.write(json.dumps(state))
        out.flush()
        os.fsync(out.fileno())
    os.rename(fresh, file)


def find(name: str, was: dict[str, Any]) -> str | None:
    """The present name of an interface, by its name, device or index."""
    for entry in sorted(SYS_NET.iterdir(), key=lambda entry: entry.name != name):
        device = os.path.realpath(entry / "device") if (entry / "device").exists() else None
        index = int((entry / "ifindex").read_text()) if (entry / "ifindex").exists() else None
        if (was["device"] and device == was["device"]) or (
            not was["device"] and (entry.name == name or index == was["index"])
        ):
            return entry.name
    return None


def restore(request: dict[str, Any], check: bool) -> dict[str, Any]:
    """Put everything back that `tune` and runs have changed; what cannot be is named and stays in the state file."""
    file = state_file(request)
    if not file.exists():
        return {"changed": False, "changes": [], "left": []}
    state = json.loads(file.read_text())
    words, left = [], []
    for name, was in state["nics"].items():
        now = find(name, was)
        if now is None:
            left.append(f"interface {name}: not there; a run may still hold it")
            continue
        for line in nic_lines(now, name, was):
            words.append(f"ip {line}")
            if not check:
                done = subprocess.run(["ip", *line.split()], capture_output=True, text=True)
                if done.returncode:
                    left.append(f"ip {line}: {done.stderr.strip()}")
    for kind, what, value in reversed(state["before"]):
        words.append(f"{kind} {what}: back to {value}")
        if not check:
            try:
                apply(kind, what, value)
            except OSError as error:
                left.append(f"{kind} {what}: {error.strerror}")
    if not check and not left:
        file.unlink()
    return {"changed": True, "changes": words, "left": left}


def nic_lines(now: str, name: str, was: dict[str, Any]) -> list[str]:
    """ip commands that make an interface what it was."""
    is_now = nic_facts(now)
    lines = []
    if now != name or is_now["mac"] != was["mac"]:
        lines += [f"link set dev {now} down"]
        lines += [f"link set dev {now} name {name}"] if now != name else []
        lines += [f"link set dev {name} address {was['mac']}"] if is_now["mac"] != was["mac"] else []
    lines += [f"addr add {a} dev {name}" for a in was["addresses"] if a not in is_now["addresses"]]
    if was["up"] and (lines or not is_now["up"]):
        lines.append(f"link set dev {name} up")
    return lines


def main(arguments: list[str]) -> int:
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"  # a sudo without secure_path keeps the user's
    try:
        request = json.loads(sys.stdin.read())
        if arguments[0] == "facts":
            answer = facts(request)
        else:
            answer = (tune if arguments[0] == "tune" else restore)(request, "--check" in arguments)
    except (RefusedError, OSError, KeyError, ValueError) as error:
        print(f"{type(error).__name__}: {error}" if not isinstance(error, RefusedError) else error, file=sys.stderr)
        return 1
    print(json.dumps(answer))
    return 1 if answer.get("left") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
