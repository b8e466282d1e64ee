#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""First process of the differential tests' guest: some scenarios one after the other, then power off.

Runs inside the UML guest with the distribution's Python 3.11 or later and the standard library.  The kernel's
command line names the folder to mount read-write (``wb_out=``), which holds ``scenarios.json`` and receives per
scenario ``<number>.json`` and ``<number>.trace`` (pages of the kernel's trace ring as they are), and, when something
goes wrong, ``error.txt``.

Path, one namespace each, so that neither delay nor loss sits on the sender:

    snd ── rtr: tbf (burst two packets) over pfifo ──▶ wir: netem delay, rate, loss ──▶ rcv

Nothing that the host's files or speed decide may reach the packets: every scenario begins at a multiple of GRID_S on the
guest's clock, long after the last one's connections are gone, and losses are drawn from the scenario's own seed.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

OUT = pathlib.Path("/mnt")
TRACEFS = pathlib.Path("/sys/kernel/tracing")
PORT = 5001
SND = "192.0.2.1"
CLONE_NEWNET = 0x40000000
GRID_S = 1000
PAGE_BYTES = 65536
LIBC = ctypes.CDLL(None, use_errno=True)
SYSCTLS = {
    "tcp_no_metrics_save": "1",
    "tcp_rmem": "4096 16777216 67108864",
    "tcp_wmem": "4096 16777216 67108864",
}


def sh(command: str, text: str | None = None) -> str:
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False, input=text)
    if done.returncode:
        raise RuntimeError(f"{command}: exit {done.returncode}: {done.stderr.strip()} {done.stdout.strip()}")
    return done.stdout


def mount(fstype: str, target: str, options: str = "") -> None:
    if LIBC.mount(b"none", target.encode(), fstype.encode(), 0, options.encode()):
        number = ctypes.get_errno()
        raise OSError(number, f"mount {fstype} on {target}: {os.strerror(number)}")


def boot() -> None:
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    mount("proc", "/proc")
    mount("sysfs", "/sys")
    mount("tracefs", str(TRACEFS))
    for path in ("/tmp", "/run"):
        mount("tmpfs", path)
    match = re.search(r"wb_out=(\S+)", pathlib.Path("/proc/cmdline").read_text())
    assert match, "wb_out= is missing from the kernel's command line"
    mount("hostfs", str(OUT), match[1])


def enter(netns: str) -> None:
    with open(f"/run/netns/{netns}") as handle:
        if LIBC.setns(handle.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {netns}")


@contextmanager
def inside(netns: str) -> Iterator[None]:
    with open("/proc/self/ns/net") as home:
        enter(netns)
        try:
            yield
        finally:
            LIBC.setns(home.fileno(), CLONE_NEWNET)


def write_sysctl(name: str, value: str) -> None:
    pathlib.Path("/proc/sys/net/ipv4", name).write_text(value)


def build_path() -> None:
    names = ("snd", "rtr", "wir", "rcv")
    sh("ip -batch -", "".join(f"netns add {name}\n" for name in names))
    for name in names:
        with inside(name):  # its own packets would take draws from the losses
            pathlib.Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
            pathlib.Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
    links = (
        ("snd", "192.0.2.1", "rtr", "192.0.2.2"),
        ("rtr", "198.51.100.1", "wir", "198.51.100.2"),
        ("wir", "203.0.113.1", "rcv", "203.0.113.2"),
    )
    mac = {name: f"02:00:00:00:00:{i:02x}" for i, name in enumerate(names)}
    sh(
        "ip -batch -",
        "".join(
            f"link add {left}-{right} netns {left} address {mac[left]} type veth "
            f"peer name {right}-{left} netns {right} address {mac[right]}\n"
            for left, _, right, _ in links
        ),
    )
    lines: dict[str, list[str]] = {name: [] for name in names}
    for left, left_ip, right, right_ip in links:
        for name, other, addr, peer in ((left, right, left_ip, right_ip), (right, left, right_ip, left_ip)):
            lines[name] += [
                f"addr add {addr}/24 dev {name}-{other}",
                f"link set {name}-{other} up",
                f"neigh add {peer} lladdr {mac[other]} dev {name}-{other} nud permanent",
            ]
    lines["wir"].append(f"neigh add 203.0.113.3 lladdr {mac['rcv']} dev wir-rcv nud permanent")
    lines["rcv"].append("addr add 203.0.113.3/24 dev rcv-wir")
    lines["rtr"].append("route add 203.0.113.0/24 via 198.51.100.2")
    lines["wir"].append("route add 192.0.2.0/24 via 198.51.100.1")
    for name in names:
        with inside(name):
            sh("ip -batch -", "\n".join(lines[name]) + "\n")
            for left, _, right, _ in links:
                if name in (left, right):
                    other = right if name == left else left
                    sh(f"ethtool -K {name}-{other} tso off gso off gro off")
            if name in ("rtr", "wir"):
                write_sysctl("ip_forward", "1")
            else:
                for key, value in SYSCTLS.items():
                    write_sysctl(key, value)


def netem(netns: str, dev: str, delay_ms: float, rate_mbit: float, loss_percent: float, seed: int) -> None:
    """Replace the root qdisc; tc of Debian 12 cannot say the seed of the losses, so this speaks netlink itself."""

    def attribute(kind: int, body: bytes) -> bytes:
        return struct.pack("=HH", 4 + len(body), kind) + body + bytes(-len(body) % 4)

    loss = min(2**32 - 1, round(loss_percent / 100 * 2**32))
    options = struct.pack("=IIIIII", 0, 1_000_000, loss, 0, 0, 0)
    options += attribute(10, struct.pack("=q", round(delay_ms * 1e6)))  # TCA_NETEM_LATENCY64
    options += attribute(14, struct.pack("=Q", seed))  # TCA_NETEM_PRNG_SEED
    if rate_mbit:
        options += attribute(6, struct.pack("=IiIi", round(rate_mbit * 125_000), 0, 0, 0))  # TCA_NETEM_RATE
    with inside(netns), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
        body = struct.pack("=BBHiIII", 0, 0, 0, socket.if_nametoindex(dev), 0, 0xFFFFFFFF, 0)  # struct tcmsg, root
        body += attribute(1, b"netem\0") + attribute(2, options)  # TCA_KIND, TCA_OPTIONS
        # RTM_NEWQDISC; REQUEST, ACK, REPLACE, CREATE
        link.send(struct.pack("=IHHII", 16 + len(body), 36, 0x505, 1, 0) + body)
        error = struct.unpack_from("=i", link.recv(4096), 16)[0]
    if error:
        raise OSError(-error, f"netem on {dev}: {os.strerror(-error)}")


def prepare(s: dict[str, Any]) -> None:
    """Make the path what the scenario says."""
    mss = s["packet_bytes"] - 40
    quick = " quickack 1" if s["quickack"] else ""
    frame = s["packet_bytes"] + 14
    with inside("snd"):
        sh(f"ip route replace default via 192.0.2.2 advmss {mss}")
        write_sysctl("tcp_sack", str(int(s["sack"])))
        subprocess.run(["tc", "qdisc", "del", "dev", "snd-rtr", "root"], capture_output=True, check=False)
        if s["sender_mbit"]:
            sh(f"tc qdisc add dev snd-rtr root tbf rate {s['sender_mbit']}mbit burst {2 * frame} limit 100000000")
        elif s["sender_qdisc"]:
            sh(f"tc qdisc add dev snd-rtr root {s['sender_qdisc']}")
    with inside("rcv"):
        sh(f"ip route replace default via 203.0.113.1 advmss {mss}{quick}")
        write_sysctl("tcp_sack", str(int(s["sack"])))
    with inside("rtr"):
        subprocess.run(["tc", "qdisc", "del", "dev", "rtr-wir", "root"], capture_output=True, check=False)
        if s["rate_mbit"]:
            sh(
                "tc -batch -",
                f"qdisc add dev rtr-wir root handle 1: tbf rate {s['rate_mbit']}mbit burst {2 * frame} "
                f"limit 100000000\nqdisc add dev rtr-wir parent 1:1 handle 10: pfifo limit {s['buffer_packets']}\n",
            )
    netem("wir", "wir-rcv", s["delay_ms"], s["rate_mbit"], s["loss_percent"], s["seed"])
    netem("wir", "wir-rtr", s["delay_ms"], 0, s["ack_loss_percent"], s["seed"] + 1)


def receiver(total_flows: int) -> None:
    enter("rcv")
    listener = socket.create_server(("0.0.0.0", PORT), backlog=64)  # noqa: S104 (a namespace of its own)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)

    def drain(conn: socket.socket) -> None:
        buffer = bytearray(1 << 20)
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 16)
        while conn.recv_into(buffer):
            pass

    for _ in range(total_flows):
        conn, _peer = listener.accept()
        threading.Thread(target=drain, args=(conn,), daemon=True).start()
    time.sleep(1e9)


def sender(flow: dict[str, Any], start: float) -> None:
    """Phases: [seconds, bytes per second or null for as much as the window lets]."""
    enter("snd")
    time.sleep(max(0.0, start + flow["start_s"] - time.monotonic()))
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, flow["cca"].encode())
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.bind((SND, flow["port"]))
    sock.connect((flow["dst"], PORT))
    block = bytes(1 << 18)
    for seconds, rate in flow["phases"]:
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            sock.settimeout(end - now)
            try:
                if rate is None:
                    sock.send(block)
                elif rate == 0:
                    time.sleep(end - now)
                else:
                    sock.sendall(block[: int(rate * 0.01)])
                    time.sleep(0.01)
            except TimeoutError:
                break
    os._exit(0)


def blackout(at_s: float, seconds: float, start: float) -> None:
    """Nothing gets through in this direction; as a link that goes down would, but the addresses of neighbours stay."""
    enter("rtr")
    time.sleep(max(0.0, start + at_s - time.monotonic()))
    sh("ip route add blackhole 203.0.113.2/32")
    time.sleep(seconds)
    sh("ip route del blackhole 203.0.113.2/32")


def change(at_s: float, command: str, start: float) -> None:
    """Run a command, or `write PATH TEXT`; with `! WORD` in front it must fail, with that word in what it says."""
    time.sleep(max(0.0, start + at_s - time.monotonic()))
    wanted = ""
    if command.startswith("! "):
        _, wanted, command = command.split(" ", 2)
    try:
        if command.startswith("write "):
            _, path, text = command.split(" ", 2)
            pathlib.Path(path).write_text(text)
        else:
            sh(command)
    except (OSError, RuntimeError) as error:
        if not wanted or wanted not in str(error):
            raise
    else:
        if wanted:
            raise RuntimeError(f"this should have failed: {command}")


def drain_trace(path: pathlib.Path) -> None:
    pipe = os.open(TRACEFS / "per_cpu/cpu0/trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with open(path, "wb", buffering=1 << 20) as out:
            while page := os.read(pipe, PAGE_BYTES):
                out.write(page)
    except BlockingIOError:
        pass
    finally:
        os.close(pipe)


def trace_lost() -> int:
    stats = (TRACEFS / "per_cpu/cpu0/stats").read_text().splitlines()
    return sum(int(line.split(":")[1]) for line in stats if line.split(":")[0] in ("overrun", "dropped events"))


def counters(netns: str) -> dict[str, int]:
    """The kernel's TCP counters of a namespace."""
    result: dict[str, int] = {}
    with inside(netns):
        text = pathlib.Path("/proc/net/netstat").read_text() + pathlib.Path("/proc/net/snmp").read_text()
    lines = text.splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        if names.startswith(("TcpExt:", "Tcp:")):
            result.update(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
    return result


def run(s: dict[str, Any], number: int) -> dict[str, Any]:
    for module in s["modules"]:
        sh("insmod " + " ".join([module["path"], *(f"{k}={v}" for k, v in module["params"].items())]))
    prepare(s)
    (TRACEFS / "trace").write_text("")
    (TRACEFS / "buffer_size_kb").write_text(str(s["trace_kb"]))
    for event in s["events"]:
        (TRACEFS / "events" / event / "enable").write_text("1")
        (OUT / f"{number}.format").write_text((TRACEFS / "events" / event / "cc_hook/format").read_text())
    children = []

    def fork(function: Any, *args: Any) -> None:
        pid = os.fork()
        if pid == 0:
            try:
                function(*args)
            except BaseException:  # noqa: BLE001 (the process ends here)
                (OUT / "error.txt").write_text(f"scenario {number}:\n{traceback.format_exc()}")
                os._exit(1)
            os._exit(0)
        children.append(pid)

    before = {name: counters(name) for name in ("snd", "rcv")}
    fork(receiver, len(s["flows"]))
    start = math.ceil((time.monotonic() + 1) / GRID_S) * float(GRID_S)
    for flow in s["flows"]:
        fork(sender, flow, start)
    for at_s, seconds in s["blackouts"]:
        fork(blackout, at_s, seconds, start)
    for at_s, command in s["changes"]:
        fork(change, at_s, command, start)
    time.sleep(max(0.0, start + s["seconds"] - time.monotonic()))
    (TRACEFS / "tracing_on").write_text("0")
    queue = json.loads(sh("tc -s -j -n rtr qdisc show dev rtr-wir"))
    sender_queue = json.loads(sh("tc -s -j -n snd qdisc show dev snd-rtr"))
    with inside("snd"):
        sockets = sh("ss -tinHO")
    after = {name: counters(name) for name in before}
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    for pid in children:
        os.waitpid(pid, 0)
    result = {
        "start_us": start * 1e6,
        "queue": queue,
        "sender_queue": sender_queue,
        "sockets": sockets,
        "trace_lost": trace_lost(),
        "counters": {name: {key: after[name][key] - value for key, value in before[name].items()} for name in after},
    }
    if s["events"]:
        drain_trace(OUT / f"{number}.trace")
    for event in s["events"]:
        (TRACEFS / "events" / event / "enable").write_text("0")
    (TRACEFS / "tracing_on").write_text("1")
    time.sleep(GRID_S / 2)  # until the last sockets are gone
    with inside("snd"):
        subprocess.run(["tc", "qdisc", "del", "dev", "snd-rtr", "root"], capture_output=True, check=False)
    for module in reversed(s["modules"]):
        if pathlib.Path("/sys/module", module["name"]).exists():
            sh(f"rmmod {module['name']}")
    return result


def main() -> None:
    try:
        boot()
        build_path()
        for number, scenario in enumerate(json.loads((OUT / "scenarios.json").read_text())):
            result = run(scenario, number)
            (OUT / f"{number}.json").write_text(json.dumps(result))
    except BaseException:  # noqa: BLE001 (process 1 must reach the power switch)
        text = traceback.format_exc()
        print(text, file=sys.stderr, flush=True)
        if os.path.ismount(OUT):
            (OUT / "error.txt").write_text(text)
    os.sync()
    LIBC.reboot(0x4321FEDC)


if __name__ == "__main__":
    main()
