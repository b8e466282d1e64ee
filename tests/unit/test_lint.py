# SPDX-License-Identifier: Apache-2.0
"""Fidelity lint: each rule is silent on a sound experiment and speaks on one that breaks it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from network import tc
from testbed import lint as rules
from testbed.experiments import prepare
from testbed.lint import lint
from tests import lab


def found(tmp_path: Path, old: str, new: str) -> dict[str, str]:
    assert old in lab.SMALL
    prepared = prepare(lab.write(tmp_path, lab.SMALL.replace(old, new)))
    return {finding.rule: finding.severity for finding in prepared.findings}


def test_a_sound_experiment_has_no_findings(tmp_path: Path) -> None:
    assert found(tmp_path, "cubic", "cubic") == {}


@pytest.mark.parametrize(
    ("old", "new", "rule", "severity"),
    [
        ("rate: 20mbit, delay: 9ms, buffer: 40p", "rate: 1gbit, delay: 900ms, buffer: 1p", "buffer-bdp", "warning"),
        ("flows:", "captures: {snap: 60B}\nflows:", "snap", "error"),
        ("flows:", "hosts: {sysctls: {net.ipv4.tcp_rmem: 4096 8192 16384}}\nflows:", "socket-buffer", "warning"),
    ],
)
def test_a_broken_rule_is_found(tmp_path: Path, old: str, new: str, rule: str, severity: str) -> None:
    assert found(tmp_path, old, new)[rule] == severity


def test_a_netem_limit_below_the_packets_in_flight_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = prepare(lab.write(tmp_path, lab.SMALL)).plans[0]
    assert "netem-limit" not in {finding.rule for finding in lint(plan)}
    monkeypatch.setattr(rules, "netem_limit", lambda _direction: 3)
    assert "netem-limit" in {finding.rule for finding in lint(plan)}
    monkeypatch.undo()
    direction = plan.network.links[1].forward
    assert tc.netem_limit(direction) >= direction.rate_bps * direction.delay_ns / 8e9 / 64  # type: ignore[operator]


def test_a_bottleneck_on_the_senders_own_interface_is_found(tmp_path: Path) -> None:
    plan = prepare(lab.write(tmp_path, lab.SMALL)).plans[0]
    first, middle, last = plan.network.links
    network = dataclasses.replace(
        plan.network, links=(dataclasses.replace(first, forward=middle.forward), middle, last)
    )
    assert "sender-queue" in {finding.rule for finding in lint(dataclasses.replace(plan, network=network))}


SLOW_CARDS = """\
warpbed: 1
name: cards
title: Hosts whose own links have a rate and a buffer
duration: 2s
topology: {name: two_stage, params: {fast: 0, slow: 3, rate: 100mbit, slow_rate: 40mbit}}
flows:
"""


@pytest.mark.parametrize(("senders", "speaks"), [(1, True), (2, True), (3, False)])
def test_a_senders_link_is_part_of_the_topology_where_all_of_them_fill_a_later_one(
    tmp_path: Path, senders: int, speaks: bool
) -> None:
    """40 Mbit/s each: two of them do not fill 100 Mbit/s, three do."""
    flows = "".join(f"  - {{name: f{i}, cca: reno, from: s{i}, to: d{i}}}\n" for i in range(1, senders + 1))
    findings = [f for f in prepare(lab.write(tmp_path, SLOW_CARDS + flows)).findings if f.rule == "sender-queue"]
    assert len(findings) == (senders if speaks else 0)


@pytest.mark.parametrize("file", ["tokuda2003/fig9", "tokuda2003/fig3", "yu2009/fig4.34-4.35-whole"])
def test_the_papers_topologies_with_slow_access_links_are_no_finding(file: str) -> None:
    findings = prepare(lab.ROOT / f"experiments/{file}.yml").findings
    assert "sender-queue" not in {finding.rule for finding in findings}


def test_check_prints_findings_and_gives_1_for_errors(tmp_path: Path) -> None:
    file = lab.write(tmp_path, lab.SMALL.replace("flows:", "captures: {snap: 60B}\nflows:"))
    assert "snap" in lab.inside("check", file, code=1)
    assert "snap" in lab.warpbed("execute", file, "--results", tmp_path / "r", code=2)
