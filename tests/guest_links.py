# SPDX-License-Identifier: Apache-2.0
"""First process of a guest that builds a network and sends numbered frames over each of its links.

WARPBED_OUT holds plan.json (as plan.model writes it) and traffic.json: {"s>d1": {"count", "gap_ns", "sizes"}}. What
arrives is written to s>d1.bin: per frame number, send time, arrival time (ns, from the start of the traffic), length,
and whether it is as it was sent. queues.json has the queues of every namespace at the end.

As in a run, network and traffic begin without memory (agent.beginning): how long a boot takes depends on the files of this machine, since
each look-up that fails takes virtual time, so compiled Python files matter. Frames leave when they are due, to the nanosecond: a timerfd
has no slack. A sleep has one nanosecond, which it takes unless another timer of the kernel fires just then, and rounds what it is
asked for, a float, from wherever the boot had ended.
"""

import ctypes
import errno
import heapq
import json
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agent import init
from plan.console import OUT, say

RECORD = struct.Struct("<iqqi?")
SO_TIMESTAMPNS = 35
ETH_P_ALL = 3
LONGEST_WAY_S = 5
FRAME_TYPE = b"\x88\xb5"
CLOCK_MONOTONIC, TFD_TIMER_ABSTIME = 1, 1
libc = ctypes.CDLL(None, use_errno=True)


class Alarm:
    """Wakes this process at times of CLOCK_MONOTONIC, ns."""

    def __init__(self) -> None:
        self._timer = libc.timerfd_create(CLOCK_MONOTONIC, os.O_CLOEXEC)

    def sleep_until(self, when_ns: int) -> None:
        setting = (ctypes.c_long * 4)(0, 0, *divmod(when_ns, 10**9))
        if libc.timerfd_settime(self._timer, TFD_TIMER_ABSTIME, setting, None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")
        os.read(self._timer, 8)


def frame(number: int, size: int) -> bytes:
    """Numbers are there three times, so that one wrong bit does not hide which frame it was."""
    head = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02" + FRAME_TYPE + struct.pack("<iii", number, number, number)
    return head + bytes(size - len(head))


def number_of(data: bytes) -> int:
    numbers = struct.unpack_from("<iii", data, 14)
    return int(max(numbers, key=numbers.count))


def main() -> None:
    init.mount_all()
    os.chdir("/tmp")
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", LANG="C.UTF-8", TERM="dumb")
    from agent.beginning import Forgetful
    from agent.namespaces import entered
    from agent.network import BuiltNetwork, load_module
    from plan.model import from_json

    out = Path(OUT)
    plan = from_json((out / "plan.json").read_text())
    traffic = json.loads((out / "traffic.json").read_text())
    time.sleep(float(os.environ.get("GUEST_LATER_S", "0")))
    pace = Forgetful()
    pace.gate("booted")
    for module in plan.modules:
        load_module(module.path, module.params)
    network = BuiltNetwork(plan)
    pace.gate("built")
    senders, receivers, queue = {}, {}, []
    for name in traffic:
        a, b = name.split(">")
        for side, node, peer in (("send", a, b), ("receive", b, a)):
            with entered(network.pid(node)):
                sock = socket.socket(
                    socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL if side == "receive" else 0)
                )
            if side == "receive":
                sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 30)  # SO_RCVBUFFORCE
                sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
                sock.setblocking(False)
                receivers[name] = sock
            else:
                sock.setsockopt(socket.SOL_SOCKET, 32, 1 << 30)  # SO_SNDBUFFORCE
                senders[name] = sock
            with entered(network.pid(node)):
                sock.bind((network.interface(node, peer), ETH_P_ALL if side == "receive" else 0))
        queue.append((0, 0, name))
    start_ns = (time.monotonic_ns() // 10**9 + 1) * 10**9
    network.start_schedules(start_ns)
    epoch_ns = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns() + start_ns
    heapq.heapify(queue)
    sent: dict[str, list[int]] = {name: [] for name in traffic}
    alarm, slept_ns, now_ns = Alarm(), -1, 0
    while queue:
        due_ns, number, name = heapq.heappop(queue)
        if due_ns > slept_ns:  # reading the clock too often without sleeping costs virtual time
            alarm.sleep_until(start_ns + due_ns)
            slept_ns, now_ns = due_ns, time.monotonic_ns() - start_ns
        job = traffic[name]
        last = number + 1 if job["gap_ns"] else job["count"]
        for each in range(number, last):
            sent[name].append(now_ns)
            try:
                senders[name].send(frame(each, job["sizes"][each % len(job["sizes"])]))
            except OSError as error:
                if error.errno != errno.ENOBUFS:  # the sender's own queue dropped it
                    raise
        if last < job["count"]:
            heapq.heappush(queue, (due_ns + job["gap_ns"], last, name))
    time.sleep(LONGEST_WAY_S)
    for name, sock in receivers.items():
        sizes, records = traffic[name]["sizes"], []
        while True:
            try:
                data, extra, _, _ = sock.recvmsg(2048, 64)
            except BlockingIOError:
                break
            if len(data) < 26:
                continue
            seconds, ns = struct.unpack("=qq", extra[0][2])
            arrived = seconds * 10**9 + ns - epoch_ns
            number = number_of(data)
            if not 0 <= number < traffic[name]["count"] or arrived < 0:
                continue
            good = data == frame(number, sizes[number % len(sizes)])
            records.append(RECORD.pack(number, sent[name][number], arrived, len(data), good))
        (out / f"{name}.bin").write_bytes(b"".join(records))
    queues = {name: queues_of(pid) for name, pid in network.pids().items()}
    (out / "queues.json").write_text(json.dumps(queues))
    say("done")


def queues_of(pid: int) -> dict[str, object]:
    """A namespace's queues as the agent tells them, and as tc does."""
    from agent.environment import queue_statistics
    from agent.namespaces import entered

    with entered(pid):
        shown = subprocess.run(["tc", "-s", "-j", "qdisc", "show"], capture_output=True, text=True).stdout
    return {"told": queue_statistics(pid), "shown": shown}


if __name__ == "__main__":
    init.first_process(main)
