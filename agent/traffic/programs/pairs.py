# SPDX-License-Identifier: Apache-2.0
"""Packet pairs (Yu 2009 s4.4): two packets with a given gap between them, and the gap that the path leaves."""

from __future__ import annotations

import math
import socket
import struct
import time
from typing import Any

from agent.traffic import clock
from agent.traffic.control import Control
from agent.traffic.family import ANY, family_of
from agent.traffic.programs.datagrams import IP_UDP_BYTES, LINGER_S, SOCKET_BYTES
from plan import draws
from plan.model import TrafficPlan
from plan.summary import quantile

PROBE = struct.Struct("!IHHQ")
"""Number of the pair, 0 or 1 for its packets, index of the gap, time of sending (ns of CLOCK_REALTIME)."""
DRAIN_NS = 200_000_000


def send(plan: TrafficPlan, addresses: dict[str, str], control: Control) -> dict[str, Any]:
    """Pairs one after the other; one whose time has come while the one before is under way follows right after it."""
    settings, gaps, version = plan.settings, plan.settings["gaps_ns"], family_of(addresses)
    packet = bytearray(settings["packet_bytes"] - IP_UDP_BYTES[version])
    every, random = draws.from_plan(settings["every_s"]), draws.stream(settings["seed"])
    pairs = refused = 0
    with socket.socket(version, socket.SOCK_DGRAM) as sock:
        clock.large_buffers(sock, SOCKET_BYTES)
        sock.setblocking(False)
        sock.connect((addresses[settings["to"]], plan.port))
        control.ready()
        if not control.wait_start():
            return {"pairs": 0}
        for when_s in draws.arrivals(every, settings["start_s"], settings["stop_s"], random):
            due_ns = max(control.start_ns + round(when_s * 1e9), time.monotonic_ns())
            for second in (0, 1):
                index = pairs % len(gaps)
                clock.sleep_until_ns(due_ns + second * gaps[index])
                PROBE.pack_into(packet, 0, pairs, second, index, time.clock_gettime_ns(time.CLOCK_REALTIME))
                try:
                    sock.send(packet)
                except (BlockingIOError, ConnectionRefusedError):
                    refused += 1
            pairs += 1
            if control.has_ended():
                break
    return {"pairs": pairs, "refused": refused}


def receive(plan: TrafficPlan, addresses: dict[str, str], control: Control) -> dict[str, Any]:
    """Input gaps as sent and output gaps as they arrive, by the gap that was asked for."""
    settings, version = plan.settings, family_of(addresses)
    first: dict[int, tuple[int, int]] = {}
    inputs: list[list[int]] = [[] for _ in settings["gaps_ns"]]
    outputs: list[list[int]] = [[] for _ in settings["gaps_ns"]]
    with socket.socket(version, socket.SOCK_DGRAM) as sock:
        clock.large_buffers(sock, SOCKET_BYTES)
        clock.stamped(sock)
        sock.bind((ANY[version], plan.port))
        sock.setblocking(False)
        control.ready()
        if not control.wait_start():
            return {"gaps": []}
        here_ns = control.start_ns
        end_ns = control.start_ns + round((settings["stop_s"] + LINGER_S) * 1e9)
        while here_ns < end_ns and not control.has_ended():
            here_ns += DRAIN_NS
            clock.sleep_until_ns(here_ns)
            for data, when_ns, _ in clock.received(sock):
                number, second, index, sent_ns = PROBE.unpack_from(data)
                if not second:
                    first[number] = (sent_ns, when_ns)
                elif number in first and index < len(inputs):
                    began_ns, arrived_ns = first.pop(number)
                    inputs[index].append(sent_ns - began_ns)
                    outputs[index].append(when_ns - arrived_ns)
    asked = settings["gaps_ns"]
    return {"gaps": [_row(asked[i], inputs[i], outputs[i]) for i in range(len(asked))]}


def _row(asked_ns: int, inputs: list[int], outputs: list[int]) -> dict[str, Any]:
    row: dict[str, Any] = {"asked_gap_s": asked_ns / 1e9, "pairs": len(outputs)}
    if not outputs:
        return {**row, "input_gap_s": None, "output_gap_s": None}
    ordered = sorted(outputs)
    return {
        **row,
        "input_gap_s": math.fsum(inputs) / len(inputs) / 1e9,
        "output_gap_s": math.fsum(outputs) / len(outputs) / 1e9,
        "output_gap_p50_s": quantile(ordered, 0.5) / 1e9,
        "output_gap_min_s": ordered[0] / 1e9,
        "output_gap_max_s": ordered[-1] / 1e9,
    }


PROGRAMS = {("packet_pairs", "client"): send, ("packet_pairs", "server"): receive}
