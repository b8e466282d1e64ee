# SPDX-License-Identifier: Apache-2.0
"""An algorithm that is a BPF program on a distribution's own kernel, in an emulated machine, against its specification."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from base.cache import sha256_of
from base.paths import cache_dir
from collectors.errors import Damage
from collectors.tcp_probe import INFINITE, read
from hosts.vm.builds import Builds
from kernels import bpf_objects, stock_machine
from kernels.reference.base import Ack
from kernels.reference.lbc import Lbc
from tests import lab

pytestmark = [
    pytest.mark.real_host,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("clang") is None, reason="clang, which makes BPF objects, is not installed"),
]

SUITE = "bookworm"
LIMIT = 2
"""Packets that an ACK of LBC counts for at most (RFC 3465, L)."""
MSS = 1448
"""1500 bytes less the headers of IPv4 and TCP, and its time stamps."""
FILE = """\
warpbed: 1
name: bpf
title: LBC as a BPF program
duration: 6s
topology: {name: line, params: {rate: 4mbit, delay: 20ms, buffer: 30p}, links: {d1>r1: {loss: 30%}}}   # of ACKs, so that others cover more
hosts: {overhead: none}
flows:
  - {name: f1, cca: bpf_lbc, from: s1, to: d1}
"""


@pytest.fixture
def stock_kernel(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian's own kernel instead of the project's; `builds`: the root image is there."""
    folder = stock_machine.image(SUITE, cache_dir(), own_modules=False)
    monkeypatch.setenv("WARPBED_TEST_X86_KERNEL", str(folder))


class Seen(NamedTuple):
    """Before an ACK of the data: bytes acknowledged and sent since the first event, window and threshold in packets."""

    una: int
    nxt: int
    cwnd: int
    ssthresh: int


def windows(raw: Path) -> list[Seen]:
    damage: list[Damage] = []
    _, fields = read(raw / "tcp_probe.bin", raw / "tcp_probe.format", damage)
    assert not damage
    ports = fields["sport"].tolist()
    mine = fields["sport"] == max(set(ports), key=ports.count)  # of the data; iperf3's control says little
    una, nxt = (fields[name][mine].astype(np.int64) for name in ("snd_una", "snd_nxt"))
    columns = (
        (una - una[0]) % 2**32,
        (nxt - una[0]) % 2**32,
        fields["snd_cwnd"][mine],
        fields["ssthresh"][mine],
    )
    return [Seen(*map(int, row)) for row in zip(*columns, strict=True)]


def test_the_windows_are_the_specification_s(stock_kernel: None, tmp_path: Path) -> None:
    """In slow start to the packet; at the first loss half of the window; in avoidance, from loss to loss, within a packet."""
    results = tmp_path / "results"
    lab.warpbed("execute", lab.write(tmp_path, FILE), "--host", "vm", "--results", results, timeout_s=1500)
    (run,) = lab.runs(results / "bpf")
    assert run["status"] == "complete", run
    assert run["inputs"]["modules"]["bpf_lbc"] == sha256_of(bpf_objects.object_of(bpf_objects.own()["bpf_lbc"]))
    follows_lbc(windows(run["path"] / "raw"))


def follows_lbc(seen: list[Seen]) -> None:
    first_loss = next(i for i, one in enumerate(seen) if one.ssthresh < INFINITE)
    assert first_loss > 20
    # iperf3's 37 bytes come first and do not fill the window
    begin = next(i for i, one in enumerate(seen) if one.una > 0)
    # the ACK after which nothing is acknowledged may have blocks, whose packets count too and are not among what is seen here
    end = next(i for i, one in enumerate(seen) if one.una == seen[first_loss].una)
    most = _follows(seen[begin:end], Lbc(float(seen[begin].cwnd)), tolerance=0)
    assert most > LIMIT  # an ACK has covered more than it counts for
    before = seen[first_loss - 1].cwnd
    assert (
        before // 2 <= seen[first_loss].ssthresh <= (before + LIMIT) // 2
    )  # the ACK that tells of the loss may have opened the window
    assert max(_stretches(seen)) > 30


def _stretches(seen: list[Seen]) -> Iterator[int]:
    """Hold what lies between two losses against the specification; yields how many ACKs each has.

    Recovery, until all is acknowledged that was sent before it, is the kernel's, and ends with the window at ssthresh. At a loss ssthresh
    falls; that it rises is how the kernel shows it (tcp_current_ssthresh(): at least three quarters of the window).
    """
    losses = [i for i in range(1, len(seen)) if seen[i].ssthresh < seen[i - 1].ssthresh]
    for loss, end in itertools.pairwise([*losses, len(seen)]):
        ssthresh = seen[loss].ssthresh
        begin = next((i for i in range(loss, end) if seen[i].una >= seen[loss].nxt), end)
        if end - begin < 2:
            continue
        assert ssthresh <= seen[begin].cwnd <= ssthresh + 1
        spec = Lbc(float(seen[begin].cwnd), ssthresh=float(ssthresh))
        spec.lost = True
        _follows(seen[begin:end], spec, tolerance=1)
        assert spec.window > ssthresh or end - begin < ssthresh
        yield end - begin


def _follows(seen: list[Seen], spec: Lbc, tolerance: int) -> int:
    """Hold each window against the specification's; returns the most packets that one ACK covered."""
    most = 0
    for now, following in itertools.pairwise(seen):
        assert abs(spec.window - now.cwnd) <= tolerance
        acked = -(-(following.una - now.una) // MSS)
        if acked:
            spec.on_ack(Ack(acked, 0.0, None, 0, 0))
        most = max(most, acked)
    return most
