# SPDX-License-Identifier: Apache-2.0
"""`hosts.ack: second`: an ACK for every second packet from the first on, and a timer of the chosen length.

Expected ACKs come from the rule alone (RFC 5681 section 4.2, which is what the sink of ns-2 does as well), applied to the packets
that arrive in the capture of the receiver's interface.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from base.errors import SpecError
from hosts.virtual.launch import GuestKernel
from schema.load import load
from tests import kept_results, lab
from tests.segments import FIN, SYN, Segment, segments

# The buffer is too small for slow start, so that packets are lost and come again; one packet at first, which waits for the timer.
EXPERIMENT = """\
warpbed: 1
name: second
title: A receiver that delays ACKs as simulators have it
duration: 4s
topology:
  name: dumbbell
  params: {rate: 10mbit, delay: 19ms, buffer: 12p, access_rate: 1gbit, access_delay: 500us}
hosts: {overhead: none, only: {d1: {ack: second, ack_wait: 100ms}}}
flows:
  - {name: f1, cca: reno, from: s1, to: d1, app: file, size: 600KB, initial_window: 1}
  - {name: f2, cca: cubic, from: s1, to: d1, size: 300KB, start: 1500ms}
sweep:
  parameters: {ack: hosts.only.d1.ack, wait: hosts.only.d1.ack_wait}
  factorial: {ack: [second], wait: [37ms, 250ms]}
"""
LINUX = EXPERIMENT.replace("{d1: {ack: second, ack_wait: 100ms}}", "{d1: {ack: delayed}}").partition("sweep:")[0]
MODULO = 1 << 32


def expected_acks(arrivals: list[Segment], wait_ns: int) -> list[tuple[int, int]]:
    """(time, number) of the ACKs of data, for packets without SYN and up to the FIN."""
    acks: list[tuple[int, int]] = []
    following, apart, waiting = arrivals[0].seq, dict[int, int](), None
    for packet in arrivals:
        if waiting is not None and packet.t_ns >= waiting:
            acks.append((waiting, following))
            waiting = None
        had_hole = bool(apart)
        in_order = packet.seq == following
        if in_order:
            following = (packet.seq + packet.payload_bytes) % MODULO
            while following in apart:
                following = (following + apart.pop(following)) % MODULO
        elif (packet.seq - following) % MODULO < MODULO // 2:
            apart[packet.seq] = packet.payload_bytes
        if in_order and not had_hole and waiting is None:
            waiting = packet.t_ns + wait_ns
        else:
            waiting = None
            acks.append((packet.t_ns, following))
    if waiting is not None:
        acks.append((waiting, following))
    return acks


def of_flow(capture: Path, port: int) -> tuple[list[Segment], list[Segment]]:
    """Data packets that arrive for a port on its data connection, and what goes back, both until the FIN."""
    everything = [s for s in segments(capture) if port in (s.source_port, s.destination_port)]
    sent: dict[int, int] = {}
    for s in everything:
        if s.destination_port == port:
            sent[s.source_port] = sent.get(s.source_port, 0) + s.payload_bytes
    client = max(sent, key=lambda number: sent[number])
    end_ns = next(s.t_ns for s in everything if s.flags & FIN and s.source_port == client)
    mine = [
        s for s in everything if client in (s.source_port, s.destination_port) and not s.flags & SYN and s.t_ns < end_ns
    ]
    there = [s for s in mine if s.source_port == client and s.payload_bytes]
    return there, [s for s in mine if s.source_port == port]


def test_every_second_packet_and_a_timer_of_the_chosen_length(kernel: GuestKernel, tmp_path: Path) -> None:
    timers, duplicates = 0, 0
    for run in lab.runs(kept_results.results(tmp_path, EXPERIMENT)):
        wait_ns = int(run["params"]["wait"].removesuffix("ms")) * 10**6
        (capture,) = (run["path"] / "raw").glob("d1-*.pcap")
        for port in (5201, 5202):
            data, back = of_flow(capture, port)
            acks = [(s.t_ns, s.ack) for s in back]
            wanted = [ack for ack in expected_acks(data, wait_ns) if ack[0] <= data[-1].t_ns]
            assert acks[: len(wanted)] == wanted
            assert len(wanted) > 100
            arrivals = {s.t_ns for s in data}
            timers += sum(t not in arrivals for t, _ in wanted)
            duplicates += sum(s.has_sack for s in back)
    assert timers >= 2 and duplicates > 30


def test_linux_own_receiver_begins_with_an_ack_per_packet(kernel: GuestKernel, tmp_path: Path) -> None:
    (run,) = lab.runs(kept_results.results(tmp_path, LINUX))
    (capture,) = (run["path"] / "raw").glob("d1-*.pcap")
    data, back = of_flow(capture, 5201)
    assert [s.ack for s in back[:8]] == [(s.seq + s.payload_bytes) % MODULO for s in data[:8]]


@pytest.mark.parametrize("text", ["501ms", "0s", "10", "-1ms"])
def test_a_wait_that_no_tcp_may_have_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SpecError, match="ack_wait"):
        load(lab.write(tmp_path, EXPERIMENT.replace("ack_wait: 100ms", f"ack_wait: {text}")))


def test_a_wait_without_acks_that_wait_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="d1: ack_wait is how long"):
        load(lab.write(tmp_path, EXPERIMENT.replace("ack: second, ack_wait", "ack: every, ack_wait")))
