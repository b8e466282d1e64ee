# SPDX-License-Identifier: Apache-2.0
"""Fidelity lint: each rule is silent on a sound experiment and speaks on one that breaks it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from testbed import lint as rules
from testbed.experiments import prepare
from testbed.lint import lint
from tests import lab
from topologies import tc


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


def test_check_prints_findings_and_gives_1_for_errors(tmp_path: Path) -> None:
    file = lab.write(tmp_path, lab.SMALL.replace("flows:", "captures: {snap: 60B}\nflows:"))
    assert "snap" in lab.warpbed("check", file, code=1)
    assert "snap" in lab.warpbed("execute", file, "--results", tmp_path / "r", code=2)
