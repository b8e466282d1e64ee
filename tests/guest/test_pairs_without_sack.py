# SPDX-License-Identifier: Apache-2.0
"""Inverted pairs where SACK is off, as in ns-2's Reno: a receiver's duplicate ACKs bring another window with them, which nothing but the
sequence tells from a mere change of the window."""

from __future__ import annotations

from pathlib import Path

import pytest

from hosts.virtual.launch import GuestKernel
from tests import kept_results

EXPERIMENT = """\
warpbed: 1
name: pairs
title: Inverted pairs with SACK and without
duration: 12s
topology: {{name: dumbbell, params: {{pairs: 1, rate: 50mbit, delay: 220ms, buffer: 3000p, access_rate: 1gbit, access_delay: 0ms}}}}
hosts:
  ack: {ack}
  overhead: none
  mss: 986
  initial_window: 1
  sysctls: {{net.ipv4.tcp_timestamps: 0, net.ipv4.tcp_sack: {sack}}}
flows:
  - {{name: f, cca: {cca}, from: s1, to: d1, start: 1s, exactly: true, initial_ssthresh: {ssthresh}}}
captures: {{at: [d1>r2]}}
samplers: {{sockets: 100ms}}
metrics: [slow_start_ssthresh_packets.f, initial_packets.5]
"""


def metrics(folder: Path, name: str, **changes: object) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = kept_results.run(folder, name, EXPERIMENT.format(**changes))["metrics"]
    return found


@pytest.mark.parametrize("sack", [1, 0])
def test_spm_estimates_what_fits_an_idle_path(kernel: GuestKernel, tmp_path: Path, sack: int) -> None:
    """2644 packets of 1040 bytes in 0.44 s at 50 Mbit/s (Yu 2009 page 104); Ethernet's header takes 1.3 % more."""
    found = metrics(tmp_path, "spm", cca="spm", ack="every", sack=sack, ssthresh=32)
    assert found["slow_start_ssthresh_packets"]["f"] == pytest.approx(2644, rel=0.05)


def test_ssipp_with_delayed_acks_grows_as_reno_does_without(kernel: GuestKernel, tmp_path: Path) -> None:
    """Yu 2009 section 3.1; the first packet's ACK waits 0.1 s, so it is somewhat later."""
    pairs, plain = (
        metrics(tmp_path, cca, cca=cca, ack=ack, sack=0, ssthresh=2000)["initial_packets"]["5"]
        for cca, ack in (("ssipp", "second"), ("perack", "every"))
    )
    print(pairs, plain)
    assert 0.75 * plain < pairs <= plain
