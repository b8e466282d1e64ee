# SPDX-License-Identifier: Apache-2.0
"""Batched receivers leave the packets alone: with and without them the packets are the same."""

from __future__ import annotations

import struct
from pathlib import Path
from socket import IPPROTO_TCP
from typing import Any

import pytest

from hosts.virtual.launch import GuestKernel
from plan.model import FIRST_PORT
from tests import kept_results, lab
from tests.segments import segments

CASES = {
    "delayed ACKs": lab.SMALL,
    "an ACK for every packet": lab.SMALL.replace("flows:", "hosts: {ack: every}\nflows:"),
    "loss": lab.SMALL.replace("buffer: 40p", "buffer: 40p, loss: 0.5%"),
    "a transfer of a size": lab.SMALL.replace("to: d1", "to: d1, size: 5MB"),
    "two streams": lab.SMALL.replace("to: d1", "to: d1, parallel: 2"),
    "100 Mbit/s": lab.SMALL.replace("20mbit", "100mbit").replace("40p", "200p"),
    # both ends of more than a hundred connections: data is held for twice as long
    "120 streams": lab.SMALL.replace("20mbit", "100mbit")
    .replace("40p", "400p")
    .replace("to: d1", "to: d1, parallel: 120"),
}


@pytest.mark.parametrize("case", CASES)
def test_data_connections_are_equal_with_and_without(kernel: GuestKernel, tmp_path: Path, case: str) -> None:
    """Every packet of the data connections, at both ends, to the nanosecond and with all its numbers. The control
    connection is left out: it carries what iperf3's server says that it counted."""
    batched, plain = (
        {end: data_packets(run["path"] / f"raw/{end}.pcap") for end in ENDS}
        for run in with_and_without(tmp_path, CASES[case])
    )
    assert len(batched["s1-eth0"]) > 1000
    assert batched == plain


def with_and_without(folder: Path, text: str) -> list[dict[str, Any]]:
    """The experiment's run with batched receivers and without."""
    return [
        kept_results.run(folder, batched, text + f"virtual: {{batch_receivers: {batched}}}\n")
        for batched in ("true", "false")
    ]


TRAFFIC = """\
warpbed: 1
name: batched-traffic
title: Traffic whose sinks and servers read
duration: 6s
topology: {name: dumbbell, params: {rate: 20mbit, delay: 9ms, buffer: 40p}}
hosts: {overhead: none}
captures: {at: [s1>r1, d1>r2]}
traffic:
"""
ENDS = ("s1-eth0", "d1-eth0")
PROGRAMS = {
    "transfers": "{name: t, kind: transfers, cca: cubic, from: s1, to: d1, count: 3, stop: 2s, size: 2500KB}",
    "on and off": "{name: t, kind: on_off, cca: reno, from: s1, to: d1, connections: 2, on: 1s, off: 500ms}",
}

ASKING = "{name: t, kind: web, cca: cubic, from: s1, to: d1, think: 300ms, objects: 8}"
"""A browser asks for the next object once it has read one."""


def test_a_receiver_that_asks_for_more_is_not_batched(kernel: GuestKernel, tmp_path: Path) -> None:
    with_batches, without = map(both_ends, with_and_without(tmp_path, TRAFFIC + f"  - {ASKING}\n"))
    assert len(with_batches[0]) > 1000
    assert with_batches == without


def both_ends(run: dict[str, Any]) -> list[list[Any]]:
    """The packets that each end captured."""
    return [list(segments(run["path"] / f"raw/{end}.pcap")) for end in ENDS]


@pytest.mark.parametrize("program", PROGRAMS)
def test_connections_of_traffic_are_equal_too(kernel: GuestKernel, tmp_path: Path, program: str) -> None:
    """Whole captures of both ends, packet by packet; their readers do not block, and close once they have all."""
    runs = with_and_without(tmp_path, TRAFFIC + f"  - {PROGRAMS[program]}\n")
    batches = [run["facts"]["module_params_at_end"].get("warp_rxbatch", {}).get("batches", "0") for run in runs]
    assert [int(count) > 0 for count in batches] == [True, False]
    with_batches, without = map(both_ends, runs)
    assert len(with_batches[0]) > 1000
    assert with_batches == without


def data_packets(capture: Path) -> list[tuple[int, int, bytes]]:
    """Time, length and headers of every packet of all connections but the first, which is iperf3's control connection.

    Headers: from the IP addresses to the last TCP option that was captured; connection by connection, each way by itself.
    """
    content = capture.read_bytes()
    order, offset = "<" if content[:4] == b"\x4d\x3c\xb2\xa1" else ">", 24
    by_flow: dict[bytes, list[tuple[int, int, bytes]]] = {}
    clients: list[bytes] = []
    while offset < len(content):
        seconds, nanoseconds, captured, length = struct.unpack_from(order + "IIII", content, offset)
        frame = content[offset + 16 : offset + 16 + captured]
        offset += 16 + captured
        if frame[12:14] != b"\x08\x00" or frame[23] != IPPROTO_TCP:
            continue
        source, destination = frame[34:36], frame[36:38]
        if destination == struct.pack("!H", FIRST_PORT) and source not in clients:
            clients.append(source)
        headers = frame[26 : 34 + (frame[46] >> 4) * 4]
        by_flow.setdefault(source + destination, []).append((seconds * 10**9 + nanoseconds, length, headers))
    server = struct.pack("!H", FIRST_PORT)
    # the end is the application's: whether a last window update or a reset crosses the FIN
    return [packet for client in clients[1:] for way in (client + server, server + client) for packet in by_flow[way]]


def test_batches_are_really_made(small: Path) -> None:
    (run,) = lab.runs(small)
    params = run["environment"]["kernel"]["module_params"]["warp_rxbatch"]
    assert (params["ports"], params["unseen"]) == ("5201-5201", "5201-5201")
    batches = int(run["facts"]["module_params_at_end"]["warp_rxbatch"]["batches"])
    payload = lab.table(run["path"], "flows")["delivered_bytes"][0]
    packets_received = payload / 1448
    assert 0 < batches < packets_received / 10
