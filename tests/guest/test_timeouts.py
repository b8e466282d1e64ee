# SPDX-License-Identifier: Apache-2.0
"""Timeouts, packets and sequence numbers of a run against the sending kernel's own counters, as its socket was sampled last."""

from __future__ import annotations

import json
import struct
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from base.netlink import attributes
from collectors import samples
from collectors.errors import Damage
from tests import kept_results, lab

EXPERIMENT = """\
warpbed: 1
name: timeouts
title: Two flows whose path loses so much that timers expire
duration: 40s
topology:
  name: dumbbell
  params: {pairs: 2, rate: 2mbit, delay: 30ms, buffer: 20p, loss: 12%}
flows:
  - {name: f1, cca: reno, from: s1, to: d1}
  - {name: f2, cca: cubic, from: s2, to: d2}
samplers: {sockets: 10ms}
metrics: [timeouts.f1, timeouts.f2, sent_packets, highest_sequence_bytes.f1]
"""
MESSAGE_BYTES, INFO = 72, 2
RETRANSMISSIONS, BYTES_SENT, BYTES_AGAIN, SEGMENTS = ("=I", 100), ("=Q", 200), ("=Q", 208), ("=I", 156)
TOTAL_RTO = ("=H", 240)
"""Of struct tcp_info (include/uapi/linux/tcp.h): tcpi_total_rto, "Total number of RTO timeouts, including SYN/SYN-ACK and recurring
timeouts", since Linux 6.7."""


def last_of_each_flow(run: Path) -> dict[str, dict[str, int]]:
    """What the kernel counted of each flow's socket until its last sample, and when that was (`at_ns`)."""
    fields = {"rto": TOTAL_RTO, "segments": SEGMENTS, "sent": BYTES_SENT, "again": BYTES_AGAIN}
    damage: list[Damage] = []
    last: dict[tuple[str, int], dict[str, int]] = {}
    for sample in samples.samples(run / "raw/sockets.bin", damage, samples.as_it_is):
        for message in samples.payloads(sample.answer):
            (port,), address = struct.unpack_from("!H", message, 4), str(IPv4Address(bytes(message[8:12])))
            info = attributes(message[MESSAGE_BYTES:]).get(INFO)
            if info is not None:
                last[address, port] = {
                    name: struct.unpack_from(form, info, at)[0] for name, (form, at) in fields.items()
                } | {"at_ns": sample.time_ns}
    assert not damage
    flows = lab.table(run, "flows")
    return {
        name: last[address, int(port)]
        for name, address, port in zip(flows["flow"], flows["src_addr"], flows["src_port"], strict=True)
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    (only,) = lab.runs(kept_results.results(tmp_path_factory.mktemp("timeouts"), EXPERIMENT))
    return only


def test_timeouts_are_those_that_the_kernel_counted(run: dict[str, Any]) -> None:
    counted = {name: kernel["rto"] for name, kernel in last_of_each_flow(run["path"]).items()}
    assert min(counted.values()) >= 10
    assert run["metrics"]["timeouts"] == counted


def until(capture: bytes, end_ns: int) -> bytes:
    """What a pcap file in nanoseconds holds up to a time."""
    assert capture[:4] == bytes.fromhex("4d3cb2a1")
    at = 24
    while at < len(capture):
        second, ns, length, _ = struct.unpack_from("<4I", capture, at)
        if second * 10**9 + ns > end_ns:
            break
        at += 16 + length
    return capture[:at]


def test_a_capture_tells_about_as_many_timeouts(run: dict[str, Any], tmp_path: Path) -> None:
    """It shows no timer: its length is estimated, so that a probe of the tail (RFC 8985 s7) before any RTT is known, or
    a repair nearly as late as the timer, counts as one. What leaves after the last sample is in the capture alone and left out.
    """
    kernel = last_of_each_flow(run["path"])["f1"]
    capture, collected = tmp_path / "s1-eth0.pcap", tmp_path / "collected"
    whole = (run["path"] / "raw/s1-eth0.pcap").read_bytes()
    capture.write_bytes(until(whole, kernel["at_ns"]))
    assert capture.stat().st_size < len(whole), "the flow has not sent anything after its last sample"
    lab.warpbed("collect", capture, "--out", collected)
    (row,) = [row for row in pq.read_table(collected / "flows.parquet").to_pylist() if row["data_packets"] > 100]
    assert row["timeouts"] == pytest.approx(kernel["rto"], abs=3)


def test_packets_and_the_highest_sequence_number_are_the_kernels(run: dict[str, Any]) -> None:
    kernel = last_of_each_flow(run["path"])
    segments = sum(one["segments"] for one in kernel.values())
    assert run["metrics"]["sent_packets"] == pytest.approx(segments, rel=0.005)  # the last sample is up to 10 ms older
    sent = {name: pytest.approx(one["sent"] - one["again"], abs=5000) for name, one in kernel.items()}
    assert run["metrics"]["highest_sequence_bytes"] == sent


def test_the_run_is_readable(run: dict[str, Any]) -> None:
    assert json.loads((run["path"] / "run.json").read_text())["sources"]["f1"]["highest"] == "capture at the sender"
