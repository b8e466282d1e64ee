#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""First process of the differential tests' guest: one scenario, then power off.

Runs inside the UML guest with the distribution's Python 3.11 or later and the standard library.  The kernel's
command line names the folder to mount read-write (``wb_out=``), which holds ``scenario.json`` and receives
``trace.txt``, ``result.json`` and, when something goes wrong, ``error.txt``.

Path, one namespace each, so that neither delay nor loss sits on the sender:

    snd ── rtr: tbf (burst two packets) over pfifo ──▶ wir: netem delay, rate, loss ──▶ rcv
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from typing import Any

OUT = pathlib.Path("/mnt")
TRACEFS = pathlib.Path("/sys/kernel/tracing")
PORT = 5001
SND = "192.0.2.1"
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def sh(command: str) -> str:
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
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


def build_path(s: dict[str, Any]) -> None:
    for name in ("snd", "rtr", "wir", "rcv"):
        sh(f"ip netns add {name}")
    links = (
        ("snd", "192.0.2.1", "rtr", "192.0.2.2"),
        ("rtr", "198.51.100.1", "wir", "198.51.100.2"),
        ("wir", "203.0.113.1", "rcv", "203.0.113.2"),
    )
    for left, left_ip, right, right_ip in links:
        sh(f"ip link add {left}-{right} netns {left} type veth peer name {right}-{left} netns {right}")
        for name, other, addr in ((left, right, left_ip), (right, left, right_ip)):
            dev = f"{name}-{other}"
            sh(f"ip -n {name} addr add {addr}/24 dev {dev}")
            sh(f"ip -n {name} link set {dev} up")
            sh(f"ip netns exec {name} ethtool -K {dev} tso off gso off gro off")
    sh("ip -n rcv addr add 203.0.113.3/24 dev rcv-wir")
    sysctls = ["net.ipv4.ip_forward=1"]
    for name in ("rtr", "wir"):
        sh(f"ip netns exec {name} sysctl -q -w {sysctls[0]}")
    mss = s["packet_bytes"] - 40
    sh(f"ip -n snd route add default via 192.0.2.2 advmss {mss}")
    quick = " quickack 1" if s["quickack"] else ""
    sh(f"ip -n rcv route add default via 203.0.113.1 advmss {mss}{quick}")
    sh("ip -n rtr route add 203.0.113.0/24 via 198.51.100.2")
    sh("ip -n wir route add 192.0.2.0/24 via 198.51.100.1")
    for name in ("snd", "rcv"):
        for sysctl in (
            "tcp_no_metrics_save=1",
            f"tcp_sack={int(s['sack'])}",
            "tcp_rmem=4096 16777216 67108864",
            "tcp_wmem=4096 16777216 67108864",
        ):
            key, value = sysctl.split("=")
            enter_write = f"/proc/sys/net/ipv4/{key}"
            subprocess.run(["ip", "netns", "exec", name, "sh", "-c", f"echo '{value}' > {enter_write}"], check=True)
    frame = s["packet_bytes"] + 14
    rate, delay = s["rate_mbit"], s["delay_ms"]
    if rate:
        sh(f"tc -n rtr qdisc add dev rtr-wir root handle 1: tbf rate {rate}mbit burst {2 * frame} limit 100000000")
        sh(f"tc -n rtr qdisc add dev rtr-wir parent 1:1 handle 10: pfifo limit {s['buffer_packets']}")
    if s["sender_mbit"]:
        sh(f"tc -n snd qdisc add dev snd-rtr root tbf rate {s['sender_mbit']}mbit burst {2 * frame} limit 100000000")
    loss = f" loss random {s['loss_percent']}%" if s["loss_percent"] else ""
    wire = f" rate {rate}mbit" if rate else ""
    sh(f"tc -n wir qdisc add dev wir-rcv root netem delay {delay}ms limit 1000000{wire}{loss}")
    sh(f"tc -n wir qdisc add dev wir-rtr root netem delay {delay}ms limit 1000000")


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
    time.sleep(max(0.0, start + at_s - time.monotonic()))
    sh("ip -n wir link set wir-rcv down")
    time.sleep(seconds)
    sh("ip -n wir link set wir-rcv up")


def change(at_s: float, command: str, start: float) -> None:
    time.sleep(max(0.0, start + at_s - time.monotonic()))
    sh(command)


def run(s: dict[str, Any]) -> dict[str, Any]:
    for module in s["modules"]:
        sh("insmod " + " ".join([module["path"], *(f"{k}={v}" for k, v in module["params"].items())]))
    build_path(s)
    (TRACEFS / "buffer_size_kb").write_text(str(s["trace_kb"]))
    for event in s["events"]:
        (TRACEFS / "events" / event / "enable").write_text("1")
    children = []

    def fork(function: Any, *args: Any) -> None:
        pid = os.fork()
        if pid == 0:
            try:
                function(*args)
            except BaseException:  # noqa: BLE001 (the process ends here)
                (OUT / "error.txt").write_text(traceback.format_exc())
            os._exit(1)
        children.append(pid)

    fork(receiver, len(s["flows"]))
    time.sleep(0.1)
    start = time.monotonic() + 0.1
    for flow in s["flows"]:
        fork(sender, flow, start)
    for at_s, seconds in s["blackouts"]:
        fork(blackout, at_s, seconds, start)
    for at_s, command in s["changes"]:
        fork(change, at_s, command, start)
    time.sleep(s["seconds"] + 0.1)
    (TRACEFS / "tracing_on").write_text("0")
    queue = json.loads(sh("tc -s -j -n rtr qdisc show dev rtr-wir"))
    sockets = sh("ip netns exec snd ss -tinHO")
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    overrun = (TRACEFS / "per_cpu/cpu0/stats").read_text()
    with open(TRACEFS / "trace") as trace, open(OUT / "trace.txt", "w") as out:
        for line in trace:
            if not line.startswith("#"):
                out.write(line.split(": ", 1)[1])
    return {"start_us": start * 1e6, "queue": queue, "sockets": sockets, "trace_stats": overrun}


def main() -> None:
    try:
        boot()
        scenario = json.loads((OUT / "scenario.json").read_text())
        result = run(scenario)
        (OUT / "result.json").write_text(json.dumps(result))
    except BaseException:  # noqa: BLE001 (process 1 must reach the power switch)
        text = traceback.format_exc()
        print(text, file=sys.stderr, flush=True)
        if os.path.ismount(OUT):
            (OUT / "error.txt").write_text(text)
    os.sync()
    LIBC.reboot(0x4321FEDC)


if __name__ == "__main__":
    main()
