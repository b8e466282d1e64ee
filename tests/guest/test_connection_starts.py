# SPDX-License-Identifier: Apache-2.0
"""Connections begin as the file says: the algorithm from the first packet on, first window, first ssthresh, largest window."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from hosts.virtual.launch import GuestKernel
from schema.names import IN_TREE_CCAS, project_ccas
from testbed.compile_starts import NEVER
from tests import kept_results, lab
from tests.segments import Segment, segments

# SPM first alone, then Reno from the same host; and two connections of LISS from another, by iperf3 with its control connections.
NEIGHBOURS = """\
warpbed: 1
name: neighbours
title: Several algorithms on one sending host
duration: 12s
topology:
  name: dumbbell
  params: {pairs: 2, rate: 20mbit, delay: 24ms, buffer: 60p, access_rate: 1gbit, access_delay: 500us}
hosts: {ack: every, overhead: none}
flows:
  - {name: spm, cca: spm, from: s1, to: d1}
  - {name: reno, cca: reno, from: s1, to: d2, start: 8s}
  - {name: liss, cca: liss, from: s2, to: d2, initial_ssthresh: 10, max_window: 30}
  - {name: second, cca: liss, from: s2, to: d2, start: 6s, initial_ssthresh: 10}
"""
RTT_S = 50e-3
LINUX_WINDOW = 10


def test_each_flow_has_its_algorithm_from_its_first_packet(kernel: GuestKernel, tmp_path: Path) -> None:
    (run,) = lab.runs(kept_results.results(tmp_path, NEIGHBOURS))
    plan = lab.plan(run)
    ports = {flow["name"]: (flow["client_port"], flow["port"]) for flow in plan["flows"]}
    (capture,) = (run["path"] / "raw").glob("s1-*.pcap")
    packets = [s for s in segments(capture) if s.payload_bytes]
    spm = [s for s in packets if (s.source_port, s.destination_port) == ports["spm"]]
    reno = [s for s in packets if (s.source_port, s.destination_port) == ports["reno"]]
    # behind iperf3's cookie, which does not fill the window: SPM has begun with two packets, Reno with Linux' ten
    assert (_together(spm[1:]), _together(reno[1:])) == (2, LINUX_WINDOW)
    # and the later packet of a pair goes first
    assert sum((b.seq - a.seq) % 2**32 > 2**31 for a, b in itertools.pairwise(spm)) >= 12
    # one steady connection with a window of 30 at most and one that begins (eq 2-3 with L = 1, S = 0): nobody else is in the group
    samples = lab.table(run["path"], "sockets")
    first, second = (_of(samples, name) for name in ("liss", "second"))
    window = first["cwnd_packets"][np.searchsorted(first["t_s"], second["t_s"][0] - RTT_S) - 1]
    assert second["ssthresh_packets"][0] == window // 2 > 10
    assert {row: applications["cca"] for row, applications in _flows(run).items()} == {
        "spm": "spm", "reno": "reno", "liss": "liss", "second": "liss",
    }  # fmt: skip


def _together(packets: list[Segment]) -> int:
    """Packets of the first half of a round trip."""
    return sum(packet.t_ns < packets[0].t_ns + RTT_S / 2 * 1e9 for packet in packets)


def _of(samples: dict[str, Any], name: str) -> dict[str, Any]:
    mine = samples["flow"] == name
    return {key: values[mine] for key, values in samples.items()}


def _flows(run: dict[str, Any]) -> dict[str, Any]:
    rows = lab.table(run["path"], "flows")
    return {str(name): {"cca": str(cca)} for name, cca in zip(rows["flow"], rows["cca"], strict=True)}


# One iperf3 with four connections, on hosts that take time.
PARALLEL = """\
warpbed: 1
name: parallel
title: Four connections of one program
duration: 2s
topology:
  name: dumbbell
  params: {rate: 20mbit, delay: 24ms, buffer: 60p, access_rate: 1gbit, access_delay: 500us}
flows:
  - {name: four, cca: reno, from: s1, to: d1, parallel: 4}
repeats: 2
"""


def test_a_flows_connections_open_one_round_trip_after_the_other_and_seeds_differ(
    kernel: GuestKernel, tmp_path: Path
) -> None:
    runs = lab.runs(kept_results.results(tmp_path, PARALLEL))
    assert len(runs) == 2
    for run in runs:
        rows = lab.table(run["path"], "flows")
        assert list(rows["flow"]) == ["four", "four.2", "four.3", "four.4"]
        gaps = np.diff(rows["start_s"])
        assert (gaps >= RTT_S).all() and (gaps < 1.1 * RTT_S).all(), gaps
    assert runs[0]["packets"] != runs[1]["packets"]


WINDOW, SSTHRESH, MOST = 3, 12, 20
GAP_S = 1
PATH_RTT_S = 40e-3
# whose windows leave slow start before or behind the threshold for reasons of their own
ESTIMATORS = frozenset({"hoe", "past"})


def _algorithms() -> list[str]:
    own = sorted(name for name, source in project_ccas().items() if source.stem == f"tcp_{name}")
    return [*IN_TREE_CCAS, *own]


def _may(cca: str, key: str) -> bool:
    return (cca, key) not in NEVER


def test_every_algorithm_begins_with_the_values_of_its_flow(kernel: GuestKernel, tmp_path: Path) -> None:
    names = _algorithms()
    lines = []
    for i, name in enumerate(names):
        keys = {"initial_window": WINDOW, "initial_ssthresh": SSTHRESH}
        said = "".join(f", {key}: {value}" for key, value in keys.items() if _may(name, key))
        lines.append(
            f"  - {{name: {name}, cca: {name}, from: s1, to: d1, app: file, size: 100KB, start: {i * GAP_S}s"
            f", max_window: {MOST}{said}}}"
        )
    text = (
        f"warpbed: 1\nname: every\ntitle: Every algorithm\nduration: {len(names) * GAP_S + 2}s\n"
        "topology:\n  name: dumbbell\n"
        "  params: {rate: 50mbit, delay: 19ms, buffer: 500p, access_rate: 1gbit, access_delay: 500us}\n"
        "hosts: {ack: every, overhead: none}\nsamplers: {sockets: off}\nflows:\n" + "\n".join(lines) + "\n"
    )
    (run,) = lab.runs(kept_results.results(tmp_path, text))
    (capture,) = (run["path"] / "raw").glob("s1-*.pcap")
    everything = list(segments(capture))
    samples = lab.table(run["path"], "sockets")
    for flow in lab.plan(run)["flows"]:
        name = flow["name"]
        sent = [s for s in everything if s.source_port == flow["client_port"] and s.payload_bytes]
        back = [s for s in everything if s.destination_port == flow["client_port"]]
        assert _most_in_flight(sent, back) <= MOST, name
        if _may(name, "initial_window"):
            assert sum(s.t_ns < sent[0].t_ns + PATH_RTT_S / 2 * 1e9 for s in sent) == WINDOW, name
        if _may(name, "initial_ssthresh"):
            mine = _of(samples, name)
            assert mine["ssthresh_packets"][0] == SSTHRESH, name
            if name not in ESTIMATORS | {"hybla"}:
                # 3, 6, 12, and then no longer twice as much
                rounds = [mine["t_s"] < mine["t_s"][0] + k * PATH_RTT_S + PATH_RTT_S / 2 for k in range(4)]
                cwnd = [int(mine["cwnd_packets"][inside][-1]) for inside in rounds]
                assert cwnd[1] <= SSTHRESH and cwnd[2] <= SSTHRESH + 2, (name, cwnd)


SHORT = """\
warpbed: 1
name: short
title: Transfers that fit the send buffer, which is closed before anything is acknowledged
duration: 6s
topology:
  name: dumbbell
  params: {rate: 50mbit, delay: 49ms, buffer: 500p, access_rate: 1gbit, access_delay: 500us}
hosts: {ack: every, overhead: none, mss: 960}
flows:
  - {name: file, cca: reno, from: s1, to: d1, app: file, size: 40KB, initial_window: 1, initial_ssthresh: 4}
traffic:
  - {name: some, kind: transfers, cca: reno, from: s1, to: d1, start: 1s, stop: 2s, count: 2, size: 40KB, initial_window: 1,
     initial_ssthresh: 4}
"""


def test_a_transfer_that_is_closed_before_its_first_ack_begins_with_its_values_too(
    kernel: GuestKernel, tmp_path: Path
) -> None:
    """By hand: 1, 2, 4 packets in the first round trips, and then one more in each, not twice as many (RFC 5681)."""
    (run,) = lab.runs(kept_results.results(tmp_path, SHORT))
    (capture,) = (run["path"] / "raw").glob("s1-*.pcap")
    sent: dict[int, list[int]] = {}
    for packet in segments(capture):
        if packet.payload_bytes > 500:
            sent.setdefault(packet.source_port, []).append(packet.t_ns)
    assert len(sent) == 3
    for times in sent.values():
        rounds = [0] * 12
        for at in times:
            rounds[int((at - times[0] + 20e6) / 100.2e6)] += 1
        assert len(times) == 42  # of 948 bytes, and a smaller one
        assert rounds[:3] == [1, 2, 4]
        assert all(count <= 5 + i for i, count in enumerate(rounds[3:])), rounds


def _most_in_flight(sent: list[Segment], back: list[Segment]) -> int:
    first, acked, most, at = sent[0].seq, 0, 0, 0
    for packet in sent:
        while at < len(back) and back[at].t_ns <= packet.t_ns:
            acked = max(acked, (back[at].ack - first) % 2**32 if not back[at].flags & 2 else 0)
            at += 1
        end = (packet.seq - first) % 2**32 + packet.payload_bytes
        most = max(most, -(-(end - acked) // 1448))
    return most
