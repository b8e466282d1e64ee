# SPDX-License-Identifier: Apache-2.0
"""Which connections begin without an RTT: what `check` says before a run (rule first-rtt) is what the kernel then reports."""

from __future__ import annotations

from pathlib import Path

from hosts.virtual.launch import GuestKernel
from testbed.experiments import prepare
from tests import kept_results, lab

EXPERIMENT = """\
warpbed: 1
name: first-rtt
title: An answer to the SYN before and after it is sent again
duration: 6s
topology:
  name: line
  params: {rate: 20mbit, delay: 490ms, buffer: 100p}
hosts: {overhead: none, sysctls: {net.ipv4.tcp_timestamps: STAMPS}}
flows:
  - {name: f1, cca: reno, from: s1, to: d1}
samplers: {sockets: 100ms}
sweep:
  parameters: {delay: topology.params.delay}
  factorial: {delay: [490ms, 550ms]}
"""
DELAYS = ("490ms", "550ms")


def first_rtts_us(folder: Path, text: str) -> dict[str, int]:
    return {
        run["params"]["delay"]: int(lab.table(run["path"], "tcp_info")["rtt_us"][0])
        for run in lab.runs(kept_results.results(folder, text))
    }


def named(folder: Path, text: str) -> set[str]:
    """Delays of which the rule speaks. Between 1 and 1.08 s the kernel's timer may be later than the answer."""
    return {
        delay
        for delay in DELAYS
        if any(f.rule == "first-rtt" for f in prepare(lab.write(folder, alone(text, delay))).findings)
    }


def alone(text: str, delay: str) -> str:
    return text[: text.index("sweep:")].replace("delay: 490ms", f"delay: {delay}")


def test_the_rule_names_the_connections_whose_first_rtt_the_kernel_does_not_know(
    kernel: GuestKernel, tmp_path: Path
) -> None:
    for stamps, unknown in (("0", {"550ms"}), ("1", set())):
        folder = tmp_path / stamps
        folder.mkdir()
        text = EXPERIMENT.replace("STAMPS", stamps).replace("first-rtt", f"first-rtt-{stamps}", 1)
        rtts = first_rtts_us(folder, text)
        assert {delay for delay, rtt in rtts.items() if rtt == 0} == unknown == named(folder, text)
        assert abs(rtts["490ms"] - 980_000) < 2000
