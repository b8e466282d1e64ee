# SPDX-License-Identifier: Apache-2.0
"""Every metric comes from the best record that there is: each is taken away in turn, and the next must say the same."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from analysis.metrics import REGISTRY
from analysis.metrics.needs import QUEUE, TRAFFIC, lacking
from plan.model import Plan, from_json
from testbed.finish import finish
from testbed.recorded import sources_of
from tests import kept_results, lab

EXPERIMENT = """\
warpbed: 1
name: sources
title: Three connections of two flows over a path that loses
duration: 12s
topology:
  name: dumbbell
  params: {pairs: 2, rate: 10mbit, delay: 19ms, buffer: 30p, access_rate: 1gbit, access_delay: 500us}
hosts: {overhead: none}
flows:
  - {name: f1, cca: cubic, from: s1, to: d1}
  - {name: f2, cca: reno, from: s2, to: d2, parallel: 2}
samplers: {sockets: 100ms}
"""
SENDERS, RECEIVERS = ("s1", "s2"), ("d1", "d2")
CLOSE = {
    # goodput of the bytes that ACKs know lags by an RTT, of 12 s; a program's own clock begins with its first byte
    "goodput_mbps": 0.02,
    "jain_index": 0.005,
    "algorithm_share": 0.005,
    "algorithm_fair_share": 0.005,
    "algorithm_goodput_mbps": 0.02,
    "jain_5s_mean": 0.005,
    # Nagle-free senders of whole packets: what ACKs know of the first second is 50 ms later
    "initial_goodput_mbps": 0.06,
    "rtt_min_ms": 0.005,
    # a mean over ACKs beside a mean of smoothed values over ACKs or over time
    "rtt_mean_ms": 0.06,
    "rtt_p95_ms": 0.02,
    "retransmission_rate": 0.03,
    "delivered_packets": 0.005,
    "initial_packets": 0.06,
    "sent_packets": 0.0,
    # what was sent after the last ACK or sample is not in them: a window and 100 ms
    "highest_sequence_bytes": 0.03,
    "timeouts": 0.0,
    # a sample every 100 ms may miss the peak by an RTT's growth
    "cwnd_max_packets": 0.1,
    "slow_start_ssthresh_packets": 0.0,
    "throughput_mbps": 0.0,
    "utilization": 0.0,
    "queue_drops": 0.0,
    "queue_departed_packets": 0.0,
    "queue_arrived_packets": 0.0,
    "queue_backlog_packets": 0.0,
}
"""How far a value from another source may lie from the one with all records; what is not here depends on single packets."""
LEFT: dict[str, dict[str, Any]] = {
    "all but tcp_probe and tcp_info": {"at": (*SENDERS, *RECEIVERS)},
    "captures at the senders": {"at": SENDERS},
    "captures at the receivers": {"at": RECEIVERS},
    "captures at the receivers and tcp_info": {"at": RECEIVERS, "sockets": True},
    "captures of one flow, tcp_info": {"at": ("s1", "d1"), "sockets": True},
    "tcp_probe and tcp_info": {"tcp_probe": True, "sockets": True},
    "tcp_probe": {"tcp_probe": True},
    "tcp_info": {"sockets": True},
    "programs": {},
    "programs, no queues": {"queues": False},
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with all records."""
    (run,) = lab.runs(kept_results.results(tmp_path_factory.mktemp("sources"), EXPERIMENT))
    path: Path = run["path"]
    return path


def collected_again(
    recorded: Path,
    folder: Path,
    at: tuple[str, ...] = (),
    tcp_probe: bool = False,
    sockets: bool = False,
    queues: bool = True,
) -> tuple[dict[str, Any], Plan]:
    """run.json of the same run as if only some of its records had been made, and its plan."""
    shutil.copytree(recorded, folder)
    shutil.rmtree(folder / "records")
    plan = from_json((folder / "raw/plan.json").read_text())
    plan = dataclasses.replace(
        plan,
        captures=tuple(capture for capture in plan.captures if capture.node in at),
        tcp_probe=tcp_probe,
        sockets_interval_s=plan.sockets_interval_s if sockets else None,
        queues_interval_s=plan.queues_interval_s if queues else None,
    )
    (folder / "raw/plan.json").write_text(plan.to_json())
    gone = {"tcp_probe.bin": not tcp_probe, "sockets.bin": not sockets, "queues.bin": not queues}
    for file in (folder / "raw").iterdir():
        if gone.get(file.name) or (file.suffix == ".pcap" and file.name.split("-")[0] not in at):
            file.unlink()
    document = json.loads((folder / "run.json").read_text())
    del document["digests"]
    (folder / "run.json").write_text(json.dumps(document))
    finish(folder)
    return json.loads((folder / "run.json").read_text()), plan


def numbers(value: Any, place: str = "") -> dict[str, float | None]:
    """A metric's values by their keys."""
    if isinstance(value, dict):
        return {key: number for name, part in value.items() for key, number in numbers(part, name).items()}
    return {place: value}


def close(number: float | None, share: float) -> Any:
    return None if number is None else pytest.approx(number, rel=share)


@pytest.mark.parametrize("left", LEFT)
def test_the_next_record_says_the_same_or_nothing(recorded: Path, tmp_path: Path, left: str) -> None:
    full = json.loads((recorded / "run.json").read_text())["metrics"]
    run, plan = collected_again(recorded, tmp_path / "run", **LEFT[left])
    assert run["verdict"]["value"] == "valid"
    here = sources_of(plan)
    for name, metric in REGISTRY.items():
        if name in ("flows", "applications"):
            continue
        values, expected = numbers(run["metrics"][name]), numbers(full[name])
        if lacking(metric.needs, here):
            assert set(values.values()) <= {None}, f"{name} has no source, and is {values}"
        elif name in CLOSE:
            assert values == {key: close(number, CLOSE[name]) for key, number in expected.items()}, name
            assert None not in values.values() or None in expected.values(), name
    assert set(run["sources"]) == {"f1", "f2", "f2.2"}


def test_every_metric_says_what_it_needs() -> None:
    """So that the test above and `check` have something to go by."""
    without = {name for name, metric in REGISTRY.items() if not metric.needs}
    assert without <= {"flows"}
    assert {need.name for metric in REGISTRY.values() for need in metric.needs} >= {QUEUE.name, TRAFFIC.name}


def test_what_no_record_can_give_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    silent = EXPERIMENT + "captures: {at: none}\nmetrics: [goodput_mbps, throughput_mbps, rtt_mean_ms]\n"
    words = lab.warpbed("check", lab.write(tmp_path, silent), code=2)
    assert "throughput_mbps needs bytes sent (capture at the sender)" in words and "captures: {at: ends}" in words
    assert "rtt_mean_ms" not in words, "tcp_probe knows it"
    claimed = silent.replace("throughput_mbps, ", "") + "guards:\n  - {metric: completion_s, max: 3}\n"
    assert "completion of a size" in lab.warpbed("check", lab.write(tmp_path, claimed), code=2)
    deaf = silent.replace("throughput_mbps, ", "").replace("sockets: 100ms", "sockets: off, tcp_probe: false")
    assert "rtt_mean_ms needs round-trip times" in lab.warpbed("check", lab.write(tmp_path, deaf), code=2)
    lab.warpbed("check", lab.write(tmp_path, deaf.replace(", rtt_mean_ms", "")))
