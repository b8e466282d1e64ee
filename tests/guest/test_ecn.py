# SPDX-License-Identifier: Apache-2.0
"""ECN and Accurate ECN as words of a file, DCTCP, DualPI2 and a policer: what was asked is what the run's records say."""

from __future__ import annotations

from typing import Any

import pytest

from hosts.virtual.launch import GuestKernel
from tests import kept_results, lab

WORDS = """\
hosts: {ecn: passive, only: {d1: {ecn: passive}}}
sweep:
  parameters:
    ecn: hosts.ecn
    receiver: hosts.only.d1.ecn
    queue: topology.params.queue
    buffer: topology.params.buffer
    cca: flows.*.cca
  list:
    - {ecn: "off", receiver: "on", queue: codel ecn, buffer: 200p, cca: cubic}
    - {ecn: "on", receiver: "off", queue: codel ecn, buffer: 200p, cca: cubic}
    - {ecn: "on", receiver: passive, queue: codel ecn, buffer: 200p, cca: cubic}
    - {ecn: accurate, receiver: accurate, queue: codel ecn, buffer: 200p, cca: cubic}
    - {ecn: accurate, receiver: "on", queue: codel ecn, buffer: 200p, cca: cubic}
    - {ecn: "on", receiver: "on", queue: dualpi2 ecn, buffer: 200p, cca: cubic}
    - {ecn: "on", receiver: "on", queue: dualpi2 any step=5ms ecn, buffer: 200p, cca: dctcp}
    - {ecn: passive, receiver: passive, queue: policer, buffer: 100KB, cca: cubic}
    - {ecn: passive, receiver: passive, queue: droptail, buffer: 200p, cca: cubic}
"""


@pytest.fixture(scope="module")
def runs(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Any]:
    text = lab.SMALL.replace("to: d1}", "to: d1, stop: 4500ms}") + WORDS
    folder = kept_results.results(tmp_path_factory.mktemp("ecn"), text)
    return {tuple(run["params"][key] for key in ("cca", "queue", "ecn", "receiver")): run for run in lab.runs(folder)}


@pytest.mark.parametrize(
    ("sender", "receiver", "agreed"),
    [
        ("off", "on", (0, 0)),
        ("on", "off", (0, 0)),
        ("on", "passive", (1, 0)),
        ("accurate", "accurate", (1, 1)),
        ("accurate", "on", (1, 0)),
    ],
)
def test_what_both_ends_agreed_on_is_read_back(
    runs: dict[Any, Any], sender: str, receiver: str, agreed: tuple[int, int]
) -> None:
    run = runs["cubic", "codel ecn", sender, receiver]
    assert run["verdict"]["value"] == "valid", run["verdict"]
    assert (run["metrics"]["ecn_flows"], run["metrics"]["accurate_ecn_flows"]) == agreed
    marks = run["metrics"]["queue_marks"]
    assert (marks > 0) == bool(agreed[0])
    assert lab.table(run["path"], "flows")["ce_packets"][0] == marks


def test_dualpi2_keeps_the_queue_short_and_marks(runs: dict[Any, Any]) -> None:
    """Its target for classic flows is 15 ms: 25 packets at 20 Mbit/s."""
    run = runs["cubic", "dualpi2 ecn", "on", "on"]
    assert run["verdict"]["value"] == "valid", run["verdict"]
    assert run["metrics"]["queue_marks"] > 0
    assert run["metrics"]["queue_mean_packets"] < 50
    assert runs["cubic", "droptail", "passive", "passive"]["metrics"]["queue_mean_packets"] > 80


def test_dctcp_stands_at_the_step_and_uses_the_link(runs: dict[Any, Any]) -> None:
    """Marked from 5 ms on, 8 packets: RFC 8257's sender stays near the step, with a share of the packets marked. Its first estimate
    of that share is 1, so that the first marks halve the window in slow start: the 4.5 s are not the steady state."""
    run = runs["dctcp", "dualpi2 any step=5ms ecn", "on", "on"]
    assert run["verdict"]["value"] == "valid", run["verdict"]
    assert run["metrics"]["queue_mean_packets"] < 15
    assert run["metrics"]["goodput_mbps"] > 0.65 * 20 * 0.9
    assert run["metrics"]["queue_marks"] > 50
    assert run["metrics"]["rtt_p95_ms"] < 20 + 2 * 5


def test_a_policer_holds_nothing_and_lets_the_rate_pass(runs: dict[Any, Any]) -> None:
    run = runs["cubic", "policer", "passive", "passive"]
    assert run["verdict"]["value"] == "valid", run["verdict"]
    queue = lab.table(run["path"], "queues")
    assert max(queue["backlog_packets"]) == 0
    assert run["metrics"]["queue_drops"] > 0
    assert run["metrics"]["rtt_mean_ms"] < 22
    sent_bytes = run["metrics"]["utilization"] * 20e6 * 5 / 8
    assert sent_bytes <= 20e6 * 5 / 8 + 100_000
    assert run["metrics"]["goodput_mbps"] > 0.5 * 20
