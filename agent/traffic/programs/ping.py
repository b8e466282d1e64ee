# SPDX-License-Identifier: Apache-2.0
"""ICMP echo requests: the round-trip time of the path. The kernel answers, so no process wakes up."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

from agent.traffic import clock
from agent.traffic.control import Control
from agent.traffic.family import family
from agent.traffic.programs.datagrams import LINGER_S, SOCKET_BYTES
from plan import draws
from plan.model import TrafficPlan
from plan.summary import spread

ICMP = struct.Struct("!BBHHH")
IP_BYTES = {socket.AF_INET: 20, socket.AF_INET6: 40}
ECHO_REQUEST, ECHO_REPLY = 8, 0
ECHO_REQUEST_V6, ECHO_REPLY_V6 = 128, 129


def checksum(data: bytes) -> int:
    """RFC 1071."""
    padded = data + b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def request(identifier: int, number: int, payload_bytes: int, version: int = socket.AF_INET) -> bytes:
    """An echo request with as many bytes behind its header; the kernel makes the checksum of one of IPv6."""
    payload = bytes(payload_bytes)
    if version == socket.AF_INET6:
        return ICMP.pack(ECHO_REQUEST_V6, 0, 0, identifier, number) + payload
    header = ICMP.pack(ECHO_REQUEST, 0, 0, identifier, number)
    return ICMP.pack(ECHO_REQUEST, 0, checksum(header + payload), identifier, number) + payload


def ping(plan: TrafficPlan, addresses: dict[str, str], control: Control) -> dict[str, Any]:
    """Send, and look for answers at each sending and at the end."""
    settings, target = plan.settings, addresses[plan.settings["to"]]
    every, random = draws.from_plan(settings["every_s"]), draws.stream(settings["seed"])
    version = family(target)
    protocol, reply = socket.IPPROTO_ICMP, ECHO_REPLY
    if version == socket.AF_INET6:
        protocol, reply = socket.IPPROTO_ICMPV6, ECHO_REPLY_V6
    payload = settings["packet_bytes"] - IP_BYTES[version] - ICMP.size
    sent_ns: list[int] = []
    rtt_ns: dict[int, int] = {}
    with socket.socket(version, socket.SOCK_RAW, protocol) as sock:
        clock.large_buffers(sock, SOCKET_BYTES)
        clock.stamped(sock)
        sock.setblocking(False)
        control.ready()
        if not control.wait_start():
            return {"sent": 0}

        def drain() -> None:
            for packet, when_ns, sender in clock.received(sock):
                # those of IPv6 come without the IP header
                here = (packet[0] & 15) * 4 if version == socket.AF_INET else 0
                if len(packet) < here + ICMP.size or sender != target:
                    continue
                kind, _, _, identifier, number = ICMP.unpack_from(packet, here)
                if kind == reply and identifier == plan.port:
                    # 16 bits of the number come back: the latest request that has them
                    index = len(sent_ns) - 1 - ((len(sent_ns) - 1 - number) & 0xFFFF)
                    if index >= 0 and index not in rtt_ns:
                        rtt_ns[index] = when_ns - sent_ns[index]

        for when_s in draws.arrivals(every, settings["start_s"], settings["stop_s"], random):
            clock.sleep_until_ns(control.start_ns + round(when_s * 1e9))
            drain()
            if control.has_ended():
                break
            packet = request(plan.port, len(sent_ns) & 0xFFFF, payload, version)
            sent_ns.append(time.clock_gettime_ns(time.CLOCK_REALTIME))
            try:
                sock.sendto(packet, (target, 0))
            except OSError:
                continue  # a full queue on this very host: it counts as lost
        clock.sleep_until_ns(control.start_ns + round((settings["stop_s"] + LINGER_S) * 1e9))
        drain()
    began_ns = control.realtime_start_ns()
    samples = [[(sent_ns[i] - began_ns) / 1e9, rtt_ns[i] / 1e6] for i in sorted(rtt_ns)]
    lost = len(sent_ns) - len(rtt_ns)
    return {
        "sent": len(sent_ns),
        "answered": len(rtt_ns),
        "lost_share": lost / len(sent_ns) if sent_ns else None,
        **spread("rtt", "ms", [sample[1] for sample in samples]),
        "samples": samples,
    }


PROGRAMS = {("ping", "client"): ping}
