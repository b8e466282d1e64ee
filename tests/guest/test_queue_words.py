# SPDX-License-Identifier: Apache-2.0
"""What queues have sent and dropped is recorded in the words of tc, although it is not asked for each node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hosts.virtual.launch import GuestKernel
from tests.links_lab import Traffic, send

WORDS = (
    {"rate": "3mbit", "delay": "5ms", "buffer": "20p"},
    {"rate": "3mbit", "delay": "5ms", "buffer": "20p"},
    {"rate": "1234567bit", "delay": "1ms", "buffer": "9KB"},
    {"rate": "10mbit", "delay": "1ms", "buffer": "500p", "queue": "fq_codel ecn"},
    {"rate": "10mbit", "delay": "2ms", "buffer": "500p", "queue": "fq_codel"},
    {"rate": "10mbit", "delay": "2ms", "buffer": "500p", "queue": "codel"},
    {"rate": "10mbit", "delay": "2ms", "buffer": "100p", "queue": "red_packets min=5p max=15p p=10%"},
    {"rate": "steps 0s=1mbit 1s=2mbit", "delay": "2ms", "buffer": "20p"},
    {"rate": "10mbit", "delay": "8ms jitter=1ms", "loss": "1%", "buffer": "20p"},
    {"delay": "2ms", "duplicate": "1%"},
)
UNSEEN = ("noqueue", "ingress")
PLAIN = (
    {"rate": "3mbit", "delay": "5ms", "buffer": "20p"},
    {"rate": "1234567bit", "delay": "1ms", "buffer": "9KB"},
    {"rate": "24gbit", "delay": "1ms", "buffer": "7p"},
    {"rate": "40mbit", "delay": "1ms"},
)
MANAGED = {"rate": "10mbit", "delay": "1ms", "buffer": "500p", "queue": "codel"}


@pytest.mark.parametrize("how", ["events", "chain"])
def test_queues_are_told_in_the_words_of_tc(kernel: GuestKernel, tmp_path: Path, how: str) -> None:
    """Among them some with the same options, for which tc was asked before, and kinds that this tc does not know."""
    jobs = {f"job {number}": Traffic(words, 200, 500_000, (1000,)) for number, words in enumerate(WORDS)}
    send(kernel, tmp_path / how, jobs, how=how)
    namespaces = json.loads((tmp_path / how / "queues.json").read_text())
    assert len(namespaces) == len(jobs) + 2
    kinds = set()
    for name, told in namespaces.items():
        shown = [entry for entry in json.loads(told["shown"]) if entry["kind"] not in UNSEEN]
        assert told["told"] == [{key: entry.get(key) for key in told["told"][0]} for entry in shown], name
        kinds |= {(entry["kind"], entry["drops"] > 0, entry["packets"] > 0) for entry in shown}
    assert {kind for kind, *_ in kinds} >= {"fq_codel", "codel", "warp_red", "netem", "warp_rate"}
    assert any(dropped for _, dropped, _ in kinds) and any(sent for *_, sent in kinds)


def test_buckets_and_fifos_made_without_tc_are_those_of_tc(kernel: GuestKernel, tmp_path: Path) -> None:
    """A link whose queue is managed makes tc configure all of a network's nodes."""
    plain = {f"job {number}": Traffic(words, 400, 200_000, (1000, 1514, 60)) for number, words in enumerate(PLAIN)}
    shown, arrivals = {}, {}
    for how, jobs in (("netlink", plain), ("tc", {**plain, "managed": Traffic(MANAGED, 1, 1000)})):
        arrivals[how] = send(kernel, tmp_path / how, jobs, how="chain")
        told = json.loads(json.loads((tmp_path / how / "queues.json").read_text())["s"]["shown"])
        shown[how] = [
            entry for entry in told if entry["kind"] in ("tbf", "pfifo", "bfifo") and entry["dev"] != "s-eth4"
        ]
    assert shown["netlink"] == shown["tc"]
    assert [entry["kind"] for entry in shown["tc"]].count("tbf") == len(PLAIN)
    assert {entry["options"].get("limit") for entry in shown["tc"]} >= {20, 9000, 7}
    for name in plain:
        for column in ("number", "arrived", "length"):
            assert (arrivals["netlink"][name][column] == arrivals["tc"][name][column]).all(), name
    assert 0 < len(arrivals["tc"]["job 1"]) < 400 == len(arrivals["tc"]["job 3"])
