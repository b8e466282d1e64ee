# SPDX-License-Identifier: Apache-2.0
"""The kernel's own algorithms: each runs under its name, with SACK and without; `westwood` is Westwood+."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import westwood
from schema.names import IN_TREE_CCAS
from tests import kept_results, lab
from tests.harness.harness import Flow, Scenario, run_all


def test_each_algorithm_of_the_kernel_sends_under_its_name_with_sack_and_without(kernel: GuestKernel) -> None:
    """All at once, in two runs of one guest; ss tells what a connection really uses and what its handshake agreed on.

    Only dctcp is another one here: towards a host that does not use it as well, the kernel makes it dctcp-reno.
    """
    flows = tuple(Flow(cca, 40000 + i, phases=((5.0, None),)) for i, cca in enumerate(IN_TREE_CCAS))
    base = Scenario(flows, seconds=5, rate_mbit=50, delay_ms=10, trace=False)
    scenarios = [dataclasses.replace(base, sack=sack) for sack in (True, False)]
    for scenario, result in zip(scenarios, run_all(kernel, scenarios), strict=True):
        sockets = {line.split()[3].rsplit(":", 1)[1]: line.split() for line in result.sockets.splitlines()}
        for flow in flows:
            fields = sockets[str(flow.port)]
            assert flow.cca.replace("dctcp", "dctcp-reno") in fields, fields
            assert ("sack" in fields) == scenario.sack, fields
            acked = next(int(word.split(":")[1]) for word in fields if word.startswith("bytes_acked:"))
            assert acked > 30_000, fields


SYN_ONLY = lab.SMALL.replace("duration: 5s", "duration: 2s")


def syn_options(capture: Path) -> Iterator[list[int]]:
    """The kinds of the TCP options of every SYN in a capture of Ethernet and IPv4."""
    data = capture.read_bytes()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at < len(data):
        length = struct.unpack_from(f"{order}I", data, at + 8)[0]
        frame = data[at + 16 : at + 16 + length]
        at += 16 + length
        ip = 14
        tcp = ip + (frame[ip] & 15) * 4
        if frame[12:14] != b"\x08\x00" or frame[ip + 9] != 6 or not frame[tcp + 13] & 2:
            continue
        options, kinds = frame[tcp + 20 : tcp + (frame[tcp + 12] >> 4) * 4], []
        while options and options[0]:
            kinds.append(options[0])
            options = options[1:] if options[0] == 1 else options[options[1] :]
        yield kinds


@pytest.mark.parametrize("sack", [0, 1])
def test_an_experiment_switches_sack_in_the_handshake(kernel: GuestKernel, tmp_path: Path, sack: int) -> None:
    """`hosts: {sysctls: {net.ipv4.tcp_sack: 0}}` is NewReno for reno: option 4, SACK-permitted, is in no SYN."""
    text = SYN_ONLY + f"hosts: {{sysctls: {{net.ipv4.tcp_sack: {sack}}}}}\n"
    (run,) = lab.runs(kept_results.results(tmp_path, text))
    kinds_of = [kinds for capture in (run["path"] / "raw").glob("*.pcap") for kinds in syn_options(capture)]
    assert len(kinds_of) >= 4
    assert all((4 in kinds) == bool(sack) for kinds in kinds_of)


@given(rate=st.floats(100, 10_000), bunch=st.integers(1, 20))
def test_bunched_acks_mislead_westwood_and_not_westwood_plus(rate: float, bunch: int) -> None:
    """The same rate for 6 s of round trips of 100 ms; ACKs come in bunches, 10 us apart.

    After 60 round trips less than one per cent is left of an error at the start (two filters that each keep 7/8 per round trip).
    """
    acks = []
    for i in range(int(6 * rate / bunch)):
        acks += [(i * bunch / rate + k * min(1e-5, 0.1 / rate), 1.0, 0.1) for k in range(bunch)]
    _, per_ack, plus = list(westwood.estimates(acks))[-1]
    assert plus == pytest.approx(rate, rel=0.15)
    if bunch >= 5:
        assert per_ack > 1.5 * plus


BUNCHED = """\
warpbed: 1
name: westwood
title: Westwood beside data in the other direction, whose queue bunches its ACKs
duration: 40s
topology: {name: dumbbell, params: {rate: 10mbit, delay: 29ms, buffer: 40p, access_rate: 1gbit, access_delay: 500us}}
hosts: {ack: every, overhead: none}
flows:
  - {name: f1, cca: westwood, from: s1, to: d1}
  - {name: back, cca: cubic, from: d1, to: s1, start: 1s}
"""


def delivered_and_losses(run: dict[str, Any]) -> tuple[list[tuple[float, float, float]], list[tuple[float, int]]]:
    """(time, newly ACKed bytes, RTT) of f1's ACKs, and (time, ssthresh) of the ends of its recoveries."""
    table = lab.table(run["path"], "sockets")
    mine = table["flow"] == "f1"
    t, una, srtt = table["t_s"][mine], table["snd_una"][mine], table["srtt_us"][mine]
    threshold = table["ssthresh_packets"][mine]
    acks = [(float(t[i]), float(max(0, una[i] - una[i - 1])), float(srtt[i]) / 1e6) for i in range(1, len(t))]
    changes = [i for i in range(1, len(t)) if threshold[i] != threshold[i - 1] and not np.isnan(threshold[i])]
    ends = [i for i, after in itertools.zip_longest(changes, changes[1:]) if after is None or t[after] - t[i] > 0.5]
    return acks, [(float(t[i]), int(threshold[i])) for i in ends]


def test_westwood_is_westwood_plus(kernel: GuestKernel, tmp_path: Path) -> None:
    """ssthresh after a loss is the estimate of one sample per RTT times the least RTT, also where ACKs come bunched."""
    (run,) = lab.runs(kept_results.results(tmp_path, BUNCHED))
    acks, ends = delivered_and_losses(run)
    flow = next(f for f in run["metrics"]["flows"] if f["flow"] == "f1")
    seen = list(westwood.estimates(acks))
    per_packet_s = flow["rtt_min_ms"] / 1e3 / 1448
    ratios = []
    for at_s, threshold in ends:
        per_ack, plus = next((a, p) for t, a, p in reversed(seen) if t <= at_s)
        ratios.append((threshold / (plus * per_packet_s), per_ack / plus))
    print(len(ends), [f"{a:.2f} {b:.2f}" for a, b in ratios])
    assert len(ratios) >= 4
    assert statistics.median(a for a, _ in ratios) == pytest.approx(1, abs=0.15)
    assert statistics.median(b for _, b in ratios) > 1.5
