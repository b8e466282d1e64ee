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
PACKET_S = 1514 * 8 / 10e6
"""A full packet's time at the bottleneck."""
TOLD = """\
warpbed: 1
name: told
title: Connections of traffic, and a flow of a size
duration: 12s
topology:
  name: dumbbell
  params: {pairs: 2, rate: 10mbit, delay: 19ms, buffer: 30p, access_rate: 1gbit, access_delay: 500us}
hosts: {overhead: none, ecn: "on"}
flows:
  - {name: f1, cca: cubic, from: s1, to: d1, app: file, size: 2MB}
traffic:
  - {name: onoff, kind: on_off, cca: reno, from: s2, to: d2, connections: 2, on: 2s, off: 1s, start: 1s, initial_ssthresh: 10}
  - {name: ftp, kind: transfers, cca: cubic, from: [s1, s2], to: [d1, d2], count: 8, size: 300KB, stop: 9s}
  - {name: unseen, kind: transfers, cca: cubic, from: s1, to: d1, count: 2, size: 100KB, stop: 5s, background: true}
  - {name: pairs, kind: packet_pairs, from: s1, to: d1, gaps: [0s, 1ms, 4ms], every: 500ms}
samplers: {sockets: 100ms}
"""
STEADY = """\
warpbed: 1
name: steady
title: A flow with a steady window beside a wave, and pairs of packets
duration: 20s
topology:
  name: dumbbell
  params: {pairs: 2, rate: 10mbit, delay: 19ms, buffer: 60p, access_rate: 1gbit, access_delay: 500us}
hosts: {overhead: none}
flows:
  - {name: f1, cca: vegas, from: s1, to: d1}
traffic:
  - {name: wave, kind: cbr, from: s2, to: d2, rate: 5mbit, start: 8s, stop: 14s}
  - {name: pairs, kind: packet_pairs, from: s2, to: d2, gaps: [0s, 1ms, 100ms], every: 500ms, stop: 8s}
samplers: {sockets: 100ms}
"""
EXPERIMENTS = {"flows": EXPERIMENT, "traffic": TOLD, "steady": STEADY}
SENDERS, RECEIVERS = ("s1", "s2"), ("d1", "d2")
CLOSE: dict[str, float | None] = {
    # goodput of the bytes that ACKs know lags by an RTT, of 12 s; a program's own clock begins with its first byte
    "goodput_mbps": 0.02,
    "jain_index": 0.005,
    "algorithm_share": 0.005,
    "algorithm_fair_share": 0.005,
    "algorithm_goodput_mbps": 0.02,
    "jain_5s_mean": 0.005,
    "jain_5s_min": 0.005,
    "idle_bandwidth_used": 0.02,
    # Nagle-free senders of whole packets: what ACKs know of the first second is 50 ms later
    "initial_goodput_mbps": 0.06,
    "rtt_min_ms": 0.005,
    # a mean over ACKs beside a mean of smoothed values over ACKs or over time
    "rtt_mean_ms": 0.06,
    "rtt_p95_ms": 0.02,
    "retransmission_rate": 0.03,
    "delivered_packets": 0.01,
    "initial_packets": 0.06,
    # what was sent after the last ACK or sample is not in them: a window and 100 ms
    "highest_sequence_bytes": 0.03,
    # a sample every 100 ms may miss the peak by an RTT's growth
    "cwnd_max_packets": 0.1,
    # test_a_sampled_window_is_one_that_the_probe_saw
    "cwnd_packets": None,
    **dict.fromkeys(
        (
            *("sent_packets", "timeouts", "throughput_mbps", "completion_s"),
            *("slow_start_ssthresh_packets", "slow_start_ssthresh_mean_packets"),
            *("utilization", "loss_rate", "queue_drops", "queue_marks", "queue_mean_packets", "queue_max_packets"),
            *("queue_departed_packets", "queue_arrived_packets", "queue_backlog_packets"),
            *("ecn_flows", "accurate_ecn_flows"),
            *(
                "output_gap_ms",
                "gap_excess_ms",
                "gap_slope",
                "gap_bend_ms",
                "meeting_gap_ms",
                "transfer_throughput_mbps",
            ),
        ),
        0.0,
    ),
}
"""How far a value from another source may lie from the one with all records, as a share of it."""
APART = {
    # behind a loss ACKs bring the bytes of a whole round trip at once; a bin more or less of 10 s fits the flow's life
    "smoothness_cv": 0.1,
    "algorithm_smoothness_cv": 0.1,
    # when a band of 5 % is entered: two intervals of 100 ms are five round trips
    "convergence_baserrts": 5.0,
    "adaptation_rtts": 5.0,
    # a sample every 100 ms may miss a window that has grown again within two round trips
    "falls_to_one_packet": 1.0,
}
"""How far it may lie apart, of quantities that are near nothing or counted in steps."""
BY_SINGLE_PACKETS: dict[str, set[str]] = {
    # of transfers of 200 packets; where the first one is lost, their beginning is another one at each end, and a capture's estimate
    # of timeouts may be one more
    "traffic": {"initial_goodput_mbps", "initial_packets", "highest_sequence_bytes", "cwnd_max_packets", "rtt_mean_ms"}
    | {"smoothness_cv", "algorithm_smoothness_cv", "timeouts"},
}
"""What single packets decide, and is not compared."""
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
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs with all records."""
    folders: dict[str, Path] = {}
    for name, text in EXPERIMENTS.items():
        (run,) = lab.runs(kept_results.results(tmp_path_factory.mktemp("sources"), text))
        folders[name] = run["path"]
    return folders


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


def metrics_of(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((path / "run.json").read_text())["metrics"]
    return values


def test_every_metric_is_compared_and_has_a_value_in_one_of_the_runs(recorded: dict[str, Path]) -> None:
    assert {*CLOSE, *APART} == set(REGISTRY) - {"flows", "applications"}
    all_metrics = [metrics_of(path) for path in recorded.values()]
    nothing = {
        name for name in (*CLOSE, *APART) if all(set(numbers(run[name]).values()) <= {None} for run in all_metrics)
    }
    assert nothing == set()


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_next_record_says_the_same_or_nothing(
    recorded: dict[str, Path], tmp_path: Path, name: str, left: str
) -> None:
    full = json.loads((recorded[name] / "run.json").read_text())
    run, plan = collected_again(recorded[name], tmp_path / "run", **LEFT[left])
    assert run["verdict"]["value"] == "valid"
    assert set(run["sources"]) == set(full["sources"])
    here = sources_of(plan)
    for metric in (*CLOSE, *APART):
        share, most = CLOSE.get(metric), APART.get(metric)
        values, expected = numbers(run["metrics"][metric]), numbers(full["metrics"][metric])
        if lacking(REGISTRY[metric].needs, here):
            assert set(values.values()) <= {None}, f"{metric} has no source, and is {values}"
        elif metric in BY_SINGLE_PACKETS.get(name, ()):
            continue
        elif most is not None:
            both = {key: (number, expected.get(key)) for key, number in values.items()}
            assert all(b is None or a is None or abs(a - b) <= most for a, b in both.values()), (metric, both)
            assert set(values) == set(expected), metric
            assert sum((a is None) != (b is None) for a, b in both.values()) <= len(both) // 4, (metric, both)
        elif share is not None:
            assert values == {key: close(number, share) for key, number in expected.items()}, metric
            assert None not in values.values() or None in expected.values(), metric


def test_a_flow_begins_with_its_own_connection_not_with_its_program(recorded: dict[str, Path], tmp_path: Path) -> None:
    """iperf3's programs agree on the test over a connection of their own first: three round trips of 40 ms."""
    path = recorded["flows"]
    known = {row["flow"]: row["start_s"] for row in rows_of(path)}
    collected_again(path, tmp_path / "probe", **LEFT["tcp_probe"])
    begun = {row["flow"]: row["start_s"] for row in rows_of(tmp_path / "probe")}
    assert min(known.values()) > 0.12
    assert begun == {name: pytest.approx(start_s, abs=2 * PACKET_S) for name, start_s in known.items()}


def test_connections_of_traffic_are_known_without_a_capture(recorded: dict[str, Path], tmp_path: Path) -> None:
    """Address, ports, algorithm and start as the captures of both ends have them; what was delivered, to the byte where all was."""
    path = recorded["traffic"]
    names = ["f1", "onoff", "onoff.2"]
    known = {row["flow"]: row for row in rows_of(path)}
    names += sorted(name for name in known if name.startswith("ftp."))
    assert list(known) == names and len(names) == 3 + 8, "and none of the background's"
    for left in ("tcp_probe and tcp_info", "tcp_probe", "tcp_info", "programs"):
        collected_again(path, tmp_path / left, **LEFT[left])
        by_name = {row["flow"]: row for row in rows_of(tmp_path / left)}
        assert list(by_name) == names
        for name, row in by_name.items():
            for key in ("cca", "src", "dst", "src_addr", "src_port", "dst_addr", "dst_port"):
                assert row[key] == known[name][key], (left, name, key)
            # iperf3 opens a control connection first, and without tcp_probe nothing says when the other came; with it two of the
            # data's round trips are counted back, and each may be a packet's time at the bottleneck longer than the handshake's
            if name != "f1" or "tcp_probe" in left:
                error_s = 2 * PACKET_S if name == "f1" else 1e-3
                assert row["start_s"] == pytest.approx(known[name]["start_s"], abs=error_s), (left, name)
            if name.startswith("ftp."):
                assert row["delivered_bytes"] == known[name]["delivered_bytes"] == 300_000, (left, name)
            assert row["delivered_bytes"] == pytest.approx(known[name]["delivered_bytes"], rel=0.02), (left, name)
    # the first threshold is that of the file
    samples = lab.table(path, "sockets")
    for name in ("onoff", "onoff.2"):
        assert samples["ssthresh_packets"][samples["flow"] == name][0] == 10


def rows_of(path: Path) -> list[dict[str, Any]]:
    columns = lab.table(path, "flows")
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def test_a_sampled_window_is_one_that_the_probe_saw(recorded: dict[str, Path], tmp_path: Path) -> None:
    """tcp_info's latest sample is at most 100 ms old: one of the windows since then, or the one before."""
    path = recorded["flows"]
    run, _ = collected_again(path, tmp_path / "run", **LEFT["tcp_info"])
    probe, compared = lab.table(path, "sockets"), 0
    for part, window in numbers(run["metrics"]["cwnd_packets"]).items():
        flow, _, second = part.rpartition(".")
        mine = probe["flow"] == flow
        times, windows = probe["t_s"][mine], probe["cwnd_packets"][mine]
        recent = windows[(times <= int(second)) & (times > int(second) - 0.1)]
        before = windows[times <= int(second) - 0.1][-1:]
        assert window in {*recent, *before}, (part, window)
        compared += 1
    assert compared >= 30


def test_every_metric_says_what_it_needs() -> None:
    """So that the test above and `check` have something to go by."""
    without = {name for name, metric in REGISTRY.items() if not metric.needs}
    assert without <= {"flows"}
    assert {need.name for metric in REGISTRY.values() for need in metric.needs} >= {QUEUE.name, TRAFFIC.name}


def test_what_no_record_can_give_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    silent = EXPERIMENT + "captures: {at: none}\nmetrics: [goodput_mbps, throughput_mbps, rtt_mean_ms]\n"
    output = lab.warpbed("check", lab.write(tmp_path, silent), code=2)
    assert "throughput_mbps needs bytes sent (capture at the sender)" in output and "captures: {at: ends}" in output
    assert "rtt_mean_ms" not in output, "tcp_probe knows it"
    claimed = silent.replace("throughput_mbps, ", "") + "guards:\n  - {metric: completion_s, max: 3}\n"
    assert "completion of a size" in lab.warpbed("check", lab.write(tmp_path, claimed), code=2)
    gaps = silent.replace("throughput_mbps, ", "output_gap_ms.pairs.0, ")
    assert "output_gap_ms.pairs.0 needs results of traffic" in lab.warpbed("check", lab.write(tmp_path, gaps), code=2)
    deaf = silent.replace("throughput_mbps, ", "").replace("sockets: 100ms", "sockets: off, tcp_probe: false")
    assert "rtt_mean_ms needs round-trip times" in lab.warpbed("check", lab.write(tmp_path, deaf), code=2)
    lab.warpbed("check", lab.write(tmp_path, deaf.replace(", rtt_mean_ms", "")))
