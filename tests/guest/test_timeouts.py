# SPDX-License-Identifier: Apache-2.0
"""Timeouts, packets and sequence numbers of a run against the sending kernel's own counters, as its socket was sampled last."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from base.netlink import attributes
from collectors import samples
from collectors.errors import Damage
from tests import lab

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


def last_of_each_socket(run: Path) -> dict[int, dict[str, int]]:
    """By source port what the kernel counted until the last sample, of sockets that sent data."""
    fields = {"rto": TOTAL_RTO, "segments": SEGMENTS, "sent": BYTES_SENT, "again": BYTES_AGAIN}
    damage: list[Damage] = []
    found: dict[int, dict[str, int]] = {}
    for sample in samples.samples(run / "raw/sockets.bin", damage, samples.as_it_is):
        for message in samples.payloads(sample.answer):
            (port,) = struct.unpack_from("!H", message, 4)
            info = attributes(message[MESSAGE_BYTES:]).get(INFO)
            if info is not None:
                found[port] = {name: struct.unpack_from(form, info, at)[0] for name, (form, at) in fields.items()}
    assert not damage
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    (found,) = lab.runs(lab.execute(tmp_path_factory.mktemp("timeouts"), EXPERIMENT))
    return found


def test_timeouts_are_those_that_the_kernel_counted(run: dict[str, Any]) -> None:
    kernel = last_of_each_socket(run["path"])
    flows = lab.table(run["path"], "flows")
    counted = {name: kernel[int(port)]["rto"] for name, port in zip(flows["flow"], flows["src_port"], strict=True)}
    assert min(counted.values()) >= 10
    # a capture shows no timer: its length is estimated, and what leaves after the last sample is in the capture alone
    assert run["metrics"]["timeouts"] == {name: pytest.approx(count, abs=2) for name, count in counted.items()}


def test_packets_and_the_highest_sequence_number_are_the_kernels(run: dict[str, Any]) -> None:
    kernel = last_of_each_socket(run["path"])
    flows = lab.table(run["path"], "flows")
    ports = dict(zip(flows["flow"], flows["src_port"], strict=True))
    segments = sum(kernel[int(port)]["segments"] for port in ports.values())
    assert run["metrics"]["sent_packets"] == pytest.approx(segments, rel=0.005)  # the last sample is up to 10 ms older
    for name, port in ports.items():
        own = kernel[int(port)]
        # what left within the last 10 ms, at most a window
        assert run["metrics"]["highest_sequence_bytes"][name] == pytest.approx(own["sent"] - own["again"], abs=20_000)


def test_the_run_is_readable(run: dict[str, Any]) -> None:
    assert json.loads((run["path"] / "run.json").read_text())["sources"]["f1"]["highest"] == "capture at the sender"
