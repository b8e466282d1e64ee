#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""First process of the differential tests' guest: some scenarios one after the other, then power off.

Runs inside the UML guest with the distribution's Python 3.11 or later and the standard library.  The kernel's
command line names the folder to mount read-write (``wb_out=``), which holds ``scenarios.json`` and receives per
scenario ``<number>.json``, ``<number>.trace`` (pages of the kernel's trace ring as they are) and, where it is asked for,
``<number>.pcap``, and, when something goes wrong, ``error.txt``.

Path, one namespace each, so that neither delay nor loss sits on the sender:

    snd, alt ── rtr: tbf (burst two packets) over pfifo ──▶ wir: netem delay, rate, loss ──▶ rcv

Nothing that the host's files or speed decide may reach the packets: every scenario begins at a multiple of GRID_S on the
guest's clock, long after the last one's connections are gone, and losses are drawn from the scenario's own seed.
"""

from __future__ import annotations

import json
import math
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

sys.path[0] = str(pathlib.Path(__file__).resolve().parents[2])
from base.linux import mount, power_off  # noqa: E402
from tests.harness import guest_cycles  # noqa: E402 (the first process finds the checkout by itself)
from tests.harness.guest_path import (  # noqa: E402
    SENDERS,
    build_path,
    counters,
    enter,
    inside,
    prepare,
    sh,
    use_ipv6,
)

OUT = pathlib.Path("/mnt")
TRACEFS = pathlib.Path("/sys/kernel/tracing")
PORT = 5001
GRID_S = 1000
RENEGE_S = 0.15
SO_RCVBUFFORCE = 33
SO_MAX_PACING_RATE = 47
IPV6_ADDRFORM = 1
PAGE_BYTES = 65536


def boot() -> None:
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    mount("none", "/proc", "proc")
    mount("none", "/sys", "sysfs")
    mount("none", str(TRACEFS), "tracefs")
    for path in ("/tmp", "/run"):
        mount("none", path, "tmpfs")
    match = re.search(r"wb_out=(\S+)", pathlib.Path("/proc/cmdline").read_text())
    assert match, "wb_out= is missing from the kernel's command line"
    mount("none", str(OUT), "hostfs", 0, match[1])


def renege(conn: socket.socket, times: list[float], start: float) -> None:
    """Leave no room for what came out of order: the kernel drops it, though it has been SACKed."""
    for at_s in times:
        time.sleep(max(0.0, start + at_s - time.monotonic()))
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        time.sleep(RENEGE_S)
        conn.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)


def receiver(total_flows: int, *, ipv6: bool, renege_s: list[float], start: float) -> None:
    enter("rcv")
    if ipv6:
        listener = socket.create_server(("::", PORT), family=socket.AF_INET6, backlog=64, dualstack_ipv6=True)
    else:
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
        if renege_s:
            threading.Thread(target=renege, args=(conn, renege_s, start), daemon=True).start()
    time.sleep(1e9)


def become_ipv4(sock: socket.socket, after_s: float) -> None:
    time.sleep(after_s)
    sock.setsockopt(socket.IPPROTO_IPV6, IPV6_ADDRFORM, socket.AF_INET)


def sender(flow: dict[str, Any], start: float) -> None:
    """Phases: [seconds, bytes per second or null for as much as the window lets]."""
    enter(flow["host"])
    time.sleep(max(0.0, start + flow["start_s"] - time.monotonic()))
    ipv6 = ":" in flow["dst"]
    sock = socket.socket(socket.AF_INET6 if ipv6 else socket.AF_INET, socket.SOCK_STREAM)
    cca = flow["cca"].encode()
    sock.setsockopt(
        socket.IPPROTO_TCP, socket.TCP_CONGESTION, flow["begins_with"].encode() if flow["chosen_s"] else cca
    )
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if flow["max_pacing"]:
        sock.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, flow["max_pacing"])
    source = SENDERS[flow["host"]][ipv6]
    if flow["addrform_s"]:  # an IPv4 destination written as ::ffff:203.0.113.2
        source = "::ffff:" + SENDERS[flow["host"]][0]
        threading.Thread(target=become_ipv4, args=(sock, flow["addrform_s"]), daemon=True).start()
    sock.bind((source, flow["port"]))
    sock.connect((flow["dst"], PORT))
    if flow["chosen_s"]:
        threading.Thread(target=choose, args=(sock, cca, start + flow["chosen_s"]), daemon=True).start()
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


def choose(sock: socket.socket, cca: bytes, at: float) -> None:
    time.sleep(max(0.0, at - time.monotonic()))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cca)


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


def start_capture(path: pathlib.Path) -> subprocess.Popen[bytes]:
    """Headers of all that passes the sender's interface, with its times in nanoseconds."""
    command = f"ip netns exec snd tcpdump -i snd-rtr -s 128 -B 65536 --time-stamp-precision=nano -Z root -w {path} tcp"
    return subprocess.Popen(command.split(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


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
    capture = start_capture(OUT / f"{number}.pcap") if s["capture"] else None
    start = math.ceil((time.monotonic() + 1) / GRID_S) * float(GRID_S)
    fork(lambda: receiver(len(s["flows"]), ipv6=s["ipv6"], renege_s=s["renege_s"], start=start))
    for flow in s["flows"]:
        fork(sender, flow, start)
    for at_s, seconds in s["blackouts"]:
        fork(blackout, at_s, seconds, start)
    for at_s, command in s["changes"]:
        fork(change, at_s, command, start)
    time.sleep(max(0.0, start + s["seconds"] - time.monotonic()))
    (TRACEFS / "tracing_on").write_text("0")
    if capture:
        capture.terminate()
        capture.wait()
    queue = json.loads(sh("tc -s -j -n rtr qdisc show dev rtr-wir"))
    sender_queue = json.loads(sh("tc -s -j -n snd qdisc show dev snd-rtr"))
    with inside("snd"):
        sockets = sh("ss -tinoHO")
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
    if s["ipv6"]:
        use_ipv6(on=False)
    for module in reversed(s["modules"]):
        if pathlib.Path("/sys/module", module["name"]).exists():
            sh(f"rmmod {module['name']}")
    return result


def main() -> None:
    try:
        boot()
        build_path()
        for number, scenario in enumerate(json.loads((OUT / "scenarios.json").read_text())):
            result: Any
            if scenario["cycles"]:
                prepare(scenario)
                result = guest_cycles.run(scenario["cycles"], scenario["modules"], scenario["ccas"])
            else:
                result = run(scenario, number)
            (OUT / f"{number}.json").write_text(json.dumps(result))
    except BaseException:  # noqa: BLE001 (process 1 must reach the power switch)
        text = traceback.format_exc()
        print(text, file=sys.stderr, flush=True)
        if os.path.ismount(OUT):
            (OUT / "error.txt").write_text(text)
    power_off()


if __name__ == "__main__":
    main()
