# SPDX-License-Identifier: Apache-2.0
"""Load every module, send a little with every algorithm, unload, again and again; see guest.py."""

from __future__ import annotations

import os
import pathlib
import platform
import socket
import threading
import time
from typing import Any

from base.linux import checked, libc, mount
from tests.harness.guest_path import SENDERS, enter, inside

PORT = 5002
BYTES = 60_000
PAUSE_S = 200
"""Longer than any socket lives once it is closed (TIME_WAIT takes 60 s)."""
FINIT_MODULE, DELETE_MODULE = {"x86_64": (313, 176), "aarch64": (273, 106)}[platform.machine()]
KMEMLEAK = pathlib.Path("/sys/kernel/debug/kmemleak")
FIGURES = ("Slab", "SUnreclaim", "VmallocUsed", "Percpu", "PageTables", "KernelStack")
DROP = pathlib.Path("/proc/sys/vm/drop_caches")


def load(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        checked(libc.syscall(FINIT_MODULE, handle, b"", 0), str(path))
    finally:
        os.close(handle)


def unload(name: str) -> None:
    checked(libc.syscall(DELETE_MODULE, name.encode(), os.O_NONBLOCK), f"unloading {name}")


def serve() -> None:
    """In a thread of its own, which is in the receiver's namespace: read every connection to its end."""
    enter("rcv")
    listener = socket.create_server(("0.0.0.0", PORT), backlog=256)  # noqa: S104 (a namespace of its own)
    while True:
        conn, _ = listener.accept()
        threading.Thread(target=drain, args=(conn,), daemon=True).start()


def drain(conn: socket.socket) -> None:
    while conn.recv(1 << 20):
        pass
    conn.close()


def send(ccas: list[str]) -> None:
    """A connection of each algorithm, all at once; they end with everything delivered."""
    block, socks = bytes(BYTES), []
    with inside("snd"):
        for cca in ccas:
            sock = socket.socket()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cca.encode())
            sock.bind((SENDERS["snd"][0], 0))
            sock.connect(("203.0.113.2", PORT))
            socks.append(sock)
    for sock in socks:
        sock.sendall(block)
    for sock in socks:
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)
        sock.close()


def memory() -> dict[str, int]:
    """kB of what the kernel keeps for itself, caches that can be dropped left out."""
    DROP.write_text("3")
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return {name: kib[name] for name in FIGURES if name in kib}


def run(count: int, modules: list[dict[str, Any]], ccas: list[str]) -> list[dict[str, int]]:
    """The memory after each cycle.

    Raises RuntimeError with kmemleak's words where the kernel has it and an object is lost.
    """
    if pathlib.Path("/sys/kernel/debug").is_dir():
        mount("none", "/sys/kernel/debug", "debugfs")
    lost()  # of the boot
    if KMEMLEAK.exists():
        KMEMLEAK.write_text("clear")
    threading.Thread(target=serve, daemon=True).start()
    time.sleep(1)
    figures = []
    for _ in range(count):
        for module in modules:
            load(module["path"])
        send(ccas)
        time.sleep(PAUSE_S)
        for module in reversed(modules):
            unload(module["name"])
        figures.append(memory())
    if message := lost():
        raise RuntimeError(f"kmemleak:\n{message}")
    return figures


def lost() -> str:
    """What kmemleak says after two scans (an object in a register escapes one), empty without it."""
    if not KMEMLEAK.exists():
        return ""
    for _ in range(2):
        time.sleep(10)  # younger objects are not told
        KMEMLEAK.write_text("scan")
    return KMEMLEAK.read_text()
