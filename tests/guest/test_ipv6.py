# SPDX-License-Identifier: Apache-2.0
"""Runs with `ip: 6`: every kind of traffic and every topology, addresses, headers, algorithms, records and what captures hold."""

from __future__ import annotations

import json
import shutil
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

import topologies
from hosts.virtual.launch import GuestKernel
from tests import kept_results, lab, wire_tools
from tests.guest.test_calibration import PARAMETERS

IPV6 = lab.SMALL.replace("duration: 5s\n", "duration: 5s\nip: 6\n")
PREFIX = ip_network("fd57:4152:5042::/48")
TRAFFIC = """\
warpbed: 1
name: traffic6
title: Every kind of traffic
duration: 8s
ip: 6
topology: {name: dumbbell, params: {pairs: 9, rate: 20mbit, delay: 10ms, buffer: 60p, queue: codel ecn}}
hosts: {ack: second, bursts: none}
flows:
  - {name: file, cca: dctcp, from: s1, to: d1, app: file, size: 2MB}
  - {name: told, cca: westwood, from: s2, to: d2, initial_window: 3, initial_ssthresh: 20, max_window: 40}
traffic:
  - {name: cbr, kind: cbr, from: s3, to: d3, rate: 1mbit, packet: 200B}
  - {name: poisson, kind: poisson, from: s3, to: d4, rate: 500kbit}
  - {name: on_off, kind: on_off, from: s4, to: d4, cca: reno, on: 1s, off: 1s}
  - {name: transfers, kind: transfers, from: s5, to: d5, cca: bbr, gap: 500ms, size: 30KB}
  - {name: web, kind: web, from: s6, to: d6, cca: medley}
  - {name: video, kind: video, from: s7, to: d7, cca: hybla}
  - {name: ping, kind: ping, from: s8, to: d8, every: 100ms}
  - {name: pairs, kind: packet_pairs, from: s9, to: d9, every: 100ms, gaps: [1ms]}
"""


@pytest.fixture(scope="module")
def two(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    """The same run with both versions."""
    folder = tmp_path_factory.mktemp("two")
    return {4: kept_results.run(folder, "four", lab.SMALL), 6: kept_results.run(folder, "six", IPV6)}


@pytest.fixture(scope="module")
def all_kinds(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return kept_results.run(tmp_path_factory.mktemp("kinds"), "all", TRAFFIC)


def test_the_longer_header_is_what_differs(two: dict[int, dict[str, Any]]) -> None:
    """A full frame has 1514 bytes: 1448 of payload with IPv4, 20 less with IPv6 (RFC 8200 s3: 40 bytes), as the MSS says."""
    for version, run in two.items():
        assert run["verdict"]["value"] == "valid", run["verdict"]
        flow = _row(run["path"], "flows")
        payload, mss = {4: (1448, 1460), 6: (1428, 1440)}[version]
        assert (flow["max_payload_bytes"], flow["mss_bytes"]) == (payload, mss)
        assert flow["wire_bytes"] - flow["payload_bytes"] == pytest.approx(flow["packets"] * (1514 - payload), rel=1e-3)
        assert (ip_address(flow["src_addr"]).version, ip_address(flow["dst_addr"]).version) == (version, version)
    assert all(ip_address(_row(two[6]["path"], "flows")[end]) in PREFIX for end in ("src_addr", "dst_addr"))
    goodput = {version: run["metrics"]["goodput_mbps"] for version, run in two.items()}
    assert goodput[6] / goodput[4] == pytest.approx(1428 / 1448, rel=0.02)


def test_the_probe_and_the_samples_follow_the_flow(two: dict[int, dict[str, Any]]) -> None:
    """As many events of tcp_probe as ACKs came, and a sample of the socket each tenth of a second, of the flow's own algorithm."""
    path = two[6]["path"]
    acks, probed, samples = (lab.table(path, kind) for kind in ("acks", "sockets", "tcp_info"))
    assert len(probed["time_ns"]) == pytest.approx(len(acks["time_ns"]), rel=0.01)
    assert set(samples["ca"]) == {"cubic"} and 45 <= len(samples["ca"]) <= 51
    assert probed["snd_una"].max() == acks["ack"].max()


def test_nothing_but_the_flow_is_on_the_wire(two: dict[int, dict[str, Any]]) -> None:
    """No router or neighbour discovery, no multicast: every frame is TCP over IPv6."""
    count = 0
    for capture in sorted((two[6]["path"] / "raw").glob("*.pcap")):
        for frame in _frames(capture):
            assert frame[12:14] == b"\x86\xdd" and frame[20] == 6, frame[:40].hex()
            count += 1
    assert count > 1000


def test_every_kind_of_traffic_runs(all_kinds: dict[str, Any]) -> None:
    assert all_kinds["verdict"]["value"] == "valid", all_kinds["verdict"]
    by_flow = {row["flow"]: row for row in _applications(all_kinds["path"])}
    assert by_flow["cbr"]["wire_bytes"] == by_flow["cbr"]["received_packets"] * 214
    assert by_flow["cbr"]["mean_rate_mbps"] == pytest.approx(1.0, rel=0.05)
    assert by_flow["ping"]["answered"] > 0.9 * by_flow["ping"]["sent"] > 70
    assert by_flow["ping"]["rtt_min_ms"] == pytest.approx(24, abs=2)
    assert by_flow["pairs"]["received_pairs"] > 70 and by_flow["poisson"]["received_packets"] > 400
    assert by_flow["transfers"]["completed"] == 16 and by_flow["web"]["pages_loaded"] > 0
    assert by_flow["on_off"]["received_bytes"] > 1e6 and by_flow["video"]["segments_loaded"] > 5
    assert all_kinds["metrics"]["ecn_flows"] > 2


def test_connections_begin_as_their_routes_say(all_kinds: dict[str, Any]) -> None:
    """Algorithm, first window, threshold and largest window (the module warp_start) come from routes; web and video send with those of
    their servers."""
    path = all_kinds["path"]
    samples = lab.table(path, "tcp_info")
    algorithms = {flow: set(samples["ca"][samples["flow"] == flow]) for flow in set(samples["flow"])}
    assert algorithms["told"] == {"westwood"} and algorithms["file"] == {"dctcp"}
    assert {"reno"} == algorithms["on_off"] and {"bbr"} == algorithms["transfers"]
    probed = lab.table(path, "sockets")
    mine = probed["flow"] == "told"
    assert probed["cwnd_packets"][mine][0] == 3 and probed["cwnd_packets"][mine].max() <= 40
    assert float(probed["ssthresh_packets"][mine][0]) == 20


def test_the_collector_tshark_and_tcptrace_agree(all_kinds: dict[str, Any], two: dict[int, dict[str, Any]]) -> None:
    if shutil.which("tshark") is None or shutil.which("tcptrace") is None:
        pytest.skip("tshark or tcptrace is not installed")
    wire_tools.agree(all_kinds["path"].parent)
    wire_tools.agree(two[6]["path"].parent)


@pytest.mark.parametrize("name", topologies.names())
def test_every_topology_carries_a_flow(kernel: GuestKernel, name: str, tmp_path: Path) -> None:
    """From the first host (of a graph of routers: node) to the last: the RTT of an ICMPv6 echo is what the path's links add up to (a rule
    of the verdict), and a flow arrives."""
    network = topologies.build(name, PARAMETERS.get(name, {}))
    hosts = [node.name for node in network.nodes if node.kind == "host"] or [node.name for node in network.nodes]
    params = "".join(f"    {key}: {value!r}\n" for key, value in PARAMETERS.get(name, {}).items())
    text = f"""\
warpbed: 1
name: six
title: A flow over {name}
duration: 3s
ip: 6
seeds: [2]
topology:
  name: {name}
  params:
{params or "    {}"}
hosts: {{overhead: none}}
flows:
  - {{cca: reno, from: {hosts[0]}, to: {hosts[-1]}}}
"""
    (run,) = lab.runs(kept_results.results(tmp_path, text))
    # three seconds are the beginning, in which the receiver's window is still growing
    assert {reason["rule"] for reason in run["verdict"]["reasons"]} <= {"window-limited"}, run["verdict"]
    assert _row(run["path"], "flows")["delivered_bytes"] > 10_000


def _row(run: Path, kind: str) -> dict[str, Any]:
    return {name: values[0] for name, values in lab.table(run, kind).items()}


def _applications(run: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((run / "records/applications.json").read_text())
    return rows


def _frames(capture: Path) -> list[bytes]:
    data, at, frames = capture.read_bytes(), 24, []
    while at < len(data):
        kept = int.from_bytes(data[at + 8 : at + 12], "little")
        frames.append(data[at + 16 : at + 16 + kept])
        at += 16 + kept
    return frames
