# SPDX-License-Identifier: Apache-2.0
"""Look at a lab machine, tune it for measuring, and put it back.

It travels with each task, and has Ansible's utilities and the standard library only: it cannot use base.linux.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import re
import shutil
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: warpbed_lab
short_description: Look at a lab machine, tune it for measuring, and put it back
description:
  - Before anything is changed, its value is written to a file, once. A second O(state=tuned) never takes its own work for the
    machine's, and O(state=restored) works after any failure, also after a reboot.
  - Interfaces are known by their index and device, so that one which a killed run has left under another name is found.
  - O(state=tuned) has to say which interfaces are O(protected), such as the one that SSH comes in by (hosts/lab/control.py, asked
    before sudo). It is refused where it does not, and where a test interface is one of them.
options:
  state:
    description: C(facts) looks only, C(tuned) makes the machine as wanted, C(restored) puts back what was recorded.
    type: str
    choices: [facts, tuned, restored]
    required: true
  root:
    description: Folder on the machine for what Warpbed keeps there.
    type: path
    required: true
  nics:
    description: Test interfaces.
    type: list
    elements: str
    default: []
  protected:
    description: Interfaces that must not be touched, each with the reason (O(state=tuned)).
    type: dict
    default: {}
  tools:
    description: Programs that a node needs; those that are missing are reported (O(state=facts)).
    type: list
    elements: str
    default: []
  attempts:
    description:
      - Name of something that the kernel has to have, with a list of commands that need it. They are tried in a network
        namespace that is thrown away (O(state=facts)).
    type: dict
    default: {}
  sysctls:
    description: Sysctls to set, by name (O(state=tuned)).
    type: dict
    default: {}
  governor:
    description: The CPUs' frequency governor; empty leaves it as it is (O(state=tuned)).
    type: str
    default: ""
  irq_cpu:
    description: CPU for the test interfaces' interrupts; without it they stay where they are (O(state=tuned)).
    type: int
attributes:
  check_mode:
    support: full
"""

RETURN = """
machine:
  description: Everything that decides whether the machine can be a node (with O(state=facts)).
  type: dict
  returned: state is facts
changes:
  description: What was changed, or would be in check mode, as sentences.
  type: list
  elements: str
  returned: state is tuned or restored
left:
  description: What could not be put back; it stays recorded.
  type: list
  elements: str
  returned: state is restored
"""

SYS_NET = Path("/sys/class/net")
CPUS = Path("/sys/devices/system/cpu")
SIOCETHTOOL = 0x8946
OFFLOADS = {"tso": (0x1E, 0x1F), "gso": (0x23, 0x24), "gro": (0x2B, 0x2C)}
"""Name: ETHTOOL_G…, ETHTOOL_S… of linux/ethtool.h."""
CLONE_NEWNET = 0x40000000
STATE = "lab-state.json"
COMMAND_S = 60.0
"""For any command; some load a module."""


class RefusedError(Exception):
    """A request that must not or cannot be carried out."""


def output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_S).stdout
    except OSError:
        return ""
    except subprocess.TimeoutExpired as error:
        raise late(*command) from error


def late(*command: str) -> RefusedError:
    return RefusedError(f"{' '.join(command)}: not done after {COMMAND_S:.0f} s; the machine's log (dmesg) may say why")


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
        "index": entry.get("ifindex"),
        "mac": entry.get("address"),
        "mtu": entry.get("mtu"),
        "up": "UP" in entry.get("flags", []),
        "carrier": "LOWER_UP" in entry.get("flags", []),
        "speed_mbps": int(speed) if speed.lstrip("-").isdigit() and int(speed) > 0 else None,
        "device": os.path.realpath(device) if device.exists() else None,
        "addresses": [
            f"{i['local']}/{i['prefixlen']}" for i in entry.get("addr_info", []) if i.get("scope") == "global"
        ],
        "offloads": {name: offload(nic, name) for name in OFFLOADS},
        "routes": routes(nic),
    }


def routes(nic: str) -> list[str]:
    """Routes of all tables through an interface as ip takes them, but for those that the kernel makes from addresses."""
    commands = []
    for family in ("-4", "-6"):
        for entry in json.loads(output("ip", family, "-j", "-N", "route", "show", "table", "all", "dev", nic) or "[]"):
            if entry.get("protocol") in ("2", "kernel") or entry.get("type", "unicast") not in ("1", "unicast"):
                continue
            argv = [family, str(entry["dst"])]
            for key, word in (
                ("gateway", "via"),
                ("prefsrc", "src"),
                ("metric", "metric"),
                ("table", "table"),
                ("protocol", "proto"),
            ):
                argv += [word, str(entry[key])] if key in entry else []
            commands.append(" ".join(argv + (["onlink"] if "onlink" in entry.get("flags", []) else [])))
    return commands


def facts(request: dict[str, Any]) -> dict[str, Any]:
    """Everything that decides whether the machine can be a node."""
    room = os.statvfs("/")
    nics = {nic: nic_facts(nic) if (SYS_NET / nic).exists() else None for nic in request["nics"]}
    return {
        "uid": os.geteuid(),
        "release": os.uname().release,
        "version": os.uname().version,
        "free_bytes": room.f_bavail * room.f_frsize,
        "nics": nics,
        "tools": [tool for tool in request["tools"] if shutil.which(tool) is None],
        "algorithms": Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split(),
        "clock": output("chronyc", "-n", "-c", "tracking").strip().split(","),
        "lacks": attempt(request["attempts"]),
        "governors": sorted({g.read_text().strip() for g in governors()}),
        "tuned": state_file(request).exists(),
    }


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
                    try:
                        done = subprocess.run(line.split(), capture_output=True, text=True, timeout=COMMAND_S)
                    except subprocess.TimeoutExpired:
                        failed[name] = str(late(line))
                        break
                    if done.returncode:
                        failed[name] = (done.stderr.strip().splitlines() or ["refused"])[-1]
        os.write(write, json.dumps(failed).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answers:
        text = answers.read()
    os.waitpid(child, 0)
    lacks: dict[str, str] = json.loads(text)
    return lacks


def governors() -> list[Path]:
    return sorted(CPUS.glob("cpu[0-9]*/cpufreq/scaling_governor"))


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


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
    protected = request["protected"]
    if not protected:
        raise RefusedError("which interface SSH comes in by is not known; nothing was changed (lab_control)")
    for nic in protected.keys() & set(request["nics"]):
        raise RefusedError(f"{nic} {protected[nic]}; it is never touched")
    todo = list(changes(request))
    sentences = [f"{kind} {what}: {now} → {wanted}" for kind, what, now, wanted in todo]
    file = state_file(request)
    if not check and (todo or not file.exists()):
        state: dict[str, Any] = {"before": [], "nics": {}, "boot_id": boot_id()}
        if file.exists():
            state = json.loads(file.read_text())
        known = {(kind, what) for kind, what, _ in state["before"]}
        state["before"] += [[kind, what, now] for kind, what, now, _ in todo if (kind, what) not in known]
        for nic in request["nics"]:
            state["nics"].setdefault(nic, nic_facts(nic))
        write(file, state)
        for kind, what, _, wanted in todo:
            apply(kind, what, wanted)
    return {"changed": bool(sentences), "changes": sentences}


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
    sentences, left = [], []
    for name, was in state["nics"].items():
        now = find(name, was)
        if now is None:
            left.append(f"interface {name}: not there; a run may still hold it")
            continue
        for line in nic_lines(now, name, was):
            sentences.append(f"ip {line}")
            if not check:
                try:
                    done = subprocess.run(["ip", *line.split()], capture_output=True, text=True, timeout=COMMAND_S)
                except subprocess.TimeoutExpired:
                    left.append(str(late("ip", line)))
                    continue
                if done.returncode:
                    left.append(f"ip {line}: {done.stderr.strip()}")
    rebooted = state.get("boot_id", boot_id()) != boot_id()
    for kind, what, value in reversed(state["before"]):
        if rebooted and what.startswith(
            "/proc/irq/"
        ):  # the number may be another device's now, and its affinity is the default
            continue
        sentences.append(f"{kind} {what}: back to {value}")
        if not check:
            try:
                apply(kind, what, value)
            except OSError as error:
                left.append(f"{kind} {what}: {error.strerror}")
    if not check and not left:
        file.unlink()
    return {"changed": True, "changes": sentences, "left": left}


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
    # a route without a gateway first: the way to the gateway may be one
    wanted: list[str] = sorted(was.get("routes", []), key=lambda route: " via " in route)
    were_lost = bool(lines)
    for route in wanted:
        family, destination = route.split(" ", 1)
        if were_lost or route not in is_now["routes"]:
            lines.append(f"{family} route replace {destination} dev {name}")
    return lines


ARGUMENTS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["facts", "tuned", "restored"], "required": True},
    "root": {"type": "path", "required": True},
    "nics": {"type": "list", "elements": "str", "default": []},
    "protected": {"type": "dict", "default": {}},
    "tools": {"type": "list", "elements": "str", "default": []},
    "attempts": {"type": "dict", "default": {}},
    "sysctls": {"type": "dict", "default": {}},
    "governor": {"type": "str", "default": ""},
    "irq_cpu": {"type": "int"},
}


def main() -> None:
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"  # a sudo without secure_path keeps the user's
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        check_arguments(module.params)
        result = RESULTS[module.params["state"]](module.params, module.check_mode)
    except RefusedError as error:
        module.fail_json(msg=str(error))
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"{type(error).__name__}: {error}")
    else:
        if result.get("left"):
            module.fail_json(msg=f"not restored: {'; '.join(result['left'])}", **result)
        module.exit_json(**result)


def check_arguments(request: dict[str, Any]) -> None:
    """What an argument spec cannot say."""
    if not request["root"].startswith("/"):
        raise RefusedError(f"root: {request['root']} is not an absolute path")
    for name, commands in request["attempts"].items():
        if not isinstance(commands, list) or not all(isinstance(line, str) and line.split() for line in commands):
            raise RefusedError(f"attempts: {name} is not a list of commands")
    for name, value in request["sysctls"].items():
        if not re.fullmatch(r"[\w-]+([./][\w-]+)+", name):
            raise RefusedError(f"sysctls: {name} is not a sysctl's name, such as net.ipv4.tcp_rmem")
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise RefusedError(f"sysctls: {name} is {value!r}, not a text or a number")


def look(request: dict[str, Any], check: bool) -> dict[str, Any]:
    """The machine's facts; looking changes nothing, in check mode or not."""
    return {"changed": False, "machine": facts(request)}


RESULTS: dict[str, Callable[[dict[str, Any], bool], dict[str, Any]]] = {
    "facts": look,
    "tuned": tune,
    "restored": restore,
}


if __name__ == "__main__":
    main()
