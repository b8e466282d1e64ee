# SPDX-License-Identifier: Apache-2.0
"""What Yu 2009 chapter 3 says of "lbc", "perack" and "ssipp" in numbers, read from captures with a receiver that delays ACKs from the
first packet on, as the thesis' does."""

from __future__ import annotations

import bisect
import itertools
import statistics
from pathlib import Path
from typing import Any

import pytest

from hosts.virtual.launch import GuestKernel
from tests import kept_results, lab
from tests.segments import Segment, segments

TOGETHER_NS = 50_000
UNTIL = 200
"""Packets, so that the windows are far below the path's 2600 and bursts do not run into each other."""
EXPERIMENT = """\
warpbed: 1
name: slow-starts
title: Slow start from one packet on
duration: 6s
topology:
  name: line
  params: {rate: 100mbit, delay: 150ms, buffer: 1000p}
hosts: {ack: second, ack_wait: 100ms, overhead: none, mss: 960, initial_window: 1}
flows:
  - {name: f1, cca: reno, from: s1, to: d1, app: file, size: 1MB}
sweep:
  parameters: {cca: flows.*.cca}
  factorial: {cca: [perack, lbc, ssipp]}
"""


def packets(run: dict[str, Any]) -> tuple[list[Segment], list[Segment]]:
    """Data as it left the sender, and the ACKs that it got."""
    (capture,) = (Path(run["path"]) / "raw").glob("s1-*.pcap")
    everything = list(segments(capture))
    port = max({s.source_port for s in everything if s.payload_bytes > 500})
    data = [s for s in everything if s.source_port == port and s.payload_bytes]
    return data, [s for s in everything if s.destination_port == port]


def released(data: list[Segment], acks: list[Segment], until: int) -> list[int]:
    """How many packets each ACK of two releases, as long as the numbers ACKed are below this."""
    times = [s.t_ns for s in data]
    size = data[0].payload_bytes
    packets = []
    for before, ack in itertools.pairwise(acks):
        two = (ack.ack - before.ack) % 2**32 == 2 * size
        if two and (ack.ack - data[0].seq) % 2**32 <= until * size:
            packets.append(bisect.bisect_right(times, ack.t_ns + TOGETHER_NS) - bisect.bisect_left(times, ack.t_ns))
    return packets


def rounds(data: list[Segment], acks: list[Segment]) -> list[int]:
    """Packets sent in each round trip: what leaves until the last packet of the round before is ACKed."""
    size, first = data[0].payload_bytes, data[0].seq
    ends = sorted(((ack.ack - first) % 2**32 // size, ack.t_ns) for ack in acks if ack.ack != first)
    sizes, begun, sent = [], 0, 1
    while sent > begun and ends[-1][0] >= sent:
        t_ns = next(t for packets, t in ends if packets >= sent)
        sizes.append(sent - begun)
        begun, sent = sent, sum(s.t_ns <= t_ns + TOGETHER_NS for s in data)
    return sizes


def positions(data: list[Segment]) -> list[int]:
    return [(s.seq - data[0].seq) % 2**32 // data[0].payload_bytes for s in data]


@pytest.fixture(scope="module")
def runs(
    kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[list[Segment], list[Segment]]]:
    done = lab.runs(kept_results.results(tmp_path_factory.mktemp("slow-starts"), EXPERIMENT))
    return {run["params"]["cca"]: packets(run) for run in done}


def test_with_byte_counting_an_ack_releases_four_packets_and_without_three(
    runs: dict[str, tuple[list[Segment], list[Segment]]],
) -> None:
    """Yu 2009 s3.1: LBC lets one ACK release four packets; where only ACKs count it is two that were ACKed and one of growth.

    In the mean: the kernel may leave one packet to the next ACK (TSO deferral)."""
    assert statistics.mean(released(*runs["lbc"], UNTIL)) == pytest.approx(4, abs=0.05)
    assert statistics.mean(released(*runs["perack"], UNTIL)) == pytest.approx(3, abs=0.05)
    assert all(len(released(*runs[cca], UNTIL)) > 50 for cca in ("lbc", "perack"))


def test_with_delayed_acks_the_window_grows_by_half_per_round_trip_and_with_inverted_pairs_it_doubles(
    runs: dict[str, tuple[list[Segment], list[Segment]]],
) -> None:
    """Yu 2009 s3.1: R log1.5(W) against R log2(W), and SSIPP in the time of the second."""
    for cca, growth in (("perack", 1.5), ("lbc", 2.0), ("ssipp", 2.0)):
        sent = [count for count in rounds(*runs[cca]) if count >= 8][:5]
        print(cca, rounds(*runs[cca]))
        assert (sent[-1] / sent[0]) ** (1 / (len(sent) - 1)) == pytest.approx(growth, abs=0.06)


def test_a_receiver_that_delays_answers_each_packet_of_inverted_pairs(
    runs: dict[str, tuple[list[Segment], list[Segment]]],
) -> None:
    """Yu 2009 s3.2: packet 0 alone, then 2, 1, 4, 3 ...; as many ACKs as packets, and none is sent again."""
    data, acks = runs["ssipp"]
    assert positions(data)[:11] == [0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9]
    assert len({s.seq for s in data}) == len(data) > 1000
    answers = [s for s in acks if s.ack != data[0].seq]
    assert len(answers) == pytest.approx(len(data), rel=0.02)
    for cca in ("lbc", "perack"):
        assert len(runs[cca][1]) == pytest.approx(len(runs[cca][0]) / 2, rel=0.05)
