# SPDX-License-Identifier: Apache-2.0
"""Runs in the lab machine: trace a transfer over the loopback, and print what function_graph says of the functions.

argv: algorithm, entries of the trace to wait for, functions
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

TRACING = Path("/sys/kernel/tracing")
TCP_CONGESTION = 13
LONGEST_S = 900


def put(name: str, text: str) -> None:
    (TRACING / name).write_text(text)


def entries() -> int:
    return int((TRACING / "per_cpu/cpu0/stats").read_text().split("entries: ")[1].split()[0])


def sink(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    while connection.recv(1 << 16):
        pass


def main() -> None:
    name, events, *functions = sys.argv[1:]
    if not (TRACING / "trace").exists():
        subprocess.run(["busybox", "mount", "-t", "tracefs", "tracefs", TRACING], check=True)
    subprocess.run(["ip", "link", "set", "lo", "mtu", "1500", "gso_max_segs", "1"], check=True)
    subprocess.run(["tc", "qdisc", "replace", "dev", "lo", "root", "netem", "delay", "10ms", "loss", "1%"], check=True)
    put("current_tracer", "nop")
    put("trace", "")
    put("tracing_on", "1")
    put("buffer_size_kb", "65536")
    put("set_graph_function", "\n".join(functions))
    for option, value in {"funcgraph-cpu": 0, "funcgraph-tail": 1, "funcgraph-irqs": 0}.items():
        put(f"options/{option}", str(value))
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=sink, args=(listener,), daemon=True).start()
    sender = socket.socket()
    sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, name.encode())
    sender.connect(listener.getsockname())
    put("current_tracer", "function_graph")
    threading.Thread(target=send, args=(sender,), daemon=True).start()
    ends = time.monotonic() + LONGEST_S
    # nobody waits for the buffer meanwhile: a reader that does is woken by an interrupt for each entry, in the middle of what is timed
    while entries() < int(events) and time.monotonic() < ends:
        time.sleep(0.5)
    put("tracing_on", "0")
    with (TRACING / "trace").open("rb") as trace:
        shutil.copyfileobj(trace, sys.stdout.buffer)
    put("current_tracer", "nop")
    sender.close()


def send(sender: socket.socket) -> None:
    data = bytes(1 << 16)
    try:
        while True:
            sender.sendall(data)
    except OSError:
        pass


main()
