# SPDX-License-Identifier: Apache-2.0
"""Every kind of traffic on the virtual host: what the programs tell is what the network did, and it is bit-exact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hosts.virtual.launch import GuestKernel
from tests import kept_results, lab

# Alone on a 20 Mbit/s path with an RTT of 20 ms; packets of 1014 bytes take 405.6 µs there, 8.112 µs at 1 Gbit/s.
ALONE = """\
warpbed: 1
name: alone
title: Traffic that nothing disturbs
duration: 6s
topology:
  name: dumbbell
  params: {pairs: 3, rate: 20mbit, delay: 9ms, buffer: 200p, access_rate: 1gbit, access_delay: 500us}
hosts: {overhead: none}
traffic:
  - {name: wave, kind: cbr, from: s2, to: d2, rate: 2mbit, start: 3s, on: 500ms, off: 500ms}
  - {name: pairs, kind: packet_pairs, from: s1, to: d1, gaps: [0s, 100us, 1ms], every: 100ms, stop: 3s}
  - {name: ping, kind: ping, from: s3, to: d3, every: 100ms, start: 50ms, stop: 3s}
samplers: {sockets: off}
"""

# All kinds at once, on a path that they fill.
SHARED = """\
warpbed: 1
name: shared
title: All kinds of traffic
duration: 8s
topology:
  name: dumbbell
  params: {pairs: 3, rate: 20mbit, delay: 9ms, buffer: 60p, access_rate: 1gbit, access_delay: 500us}
flows:
  - {name: f1, cca: cubic, from: s1, to: d1}
traffic:
  - {name: noise, kind: poisson, from: s2, to: d2, rate: 1mbit, on: "pareto(500ms, 1.5)", off: "pareto(500ms, 1.5)"}
  - {name: onoff, kind: on_off, cca: reno, from: s3, to: d3, on: 1s, off: 1s, connections: 2}
  - {name: ftp, kind: transfers, cca: medley, from: s3, to: [d1, d2], gap: exponential(200ms), size: "uniform(5KB, 100KB)"}
  - {name: lives, kind: transfers, cca: reno, from: s3, to: d3, count: 3, stop: 5s, life: 1s, background: true}
  - {name: web, kind: web, cca: cubic, from: s1, to: d1, think: exponential(500ms)}
  - {name: video, kind: video, cca: cubic, from: s2, to: d2, exactly: true, segment: 1s, buffer: 5s}
  - {name: ping, kind: ping, from: s1, to: d1}
starts:
  - {of: [onoff, ftp], within: 500ms}
expectations:
  - {metric: applications.video.rebuffer_s, max: 100}
"""


def applications(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["flow"]: row for row in run["metrics"]["applications"]}


def raw(run: dict[str, Any], name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run["path"] / "raw" / f"{name}.json").read_text())
    return content


def test_probes_and_datagrams_on_an_idle_path_measure_the_path(kernel: GuestKernel, tmp_path: Path) -> None:
    (run,) = lab.runs(kept_results.results(tmp_path, ALONE))
    rows = applications(run)
    assert run["verdict"] == {"value": "valid", "reasons": []}
    ping, pairs, wave = rows["ping"], rows["pairs"], rows["wave"]
    # 98-byte frames: 20 ms of delay, 39.2 µs at 20 Mbit/s and twice 0.784 µs at 1 Gbit/s, each way
    assert ping["sent"] == ping["answered"] == 30
    assert ping["rtt_min_ms"] == pytest.approx(20 + 2 * (0.0392 + 2 * 0.000784), abs=1e-3)
    assert ping["rtt_max_ms"] < 20 + 2 * 0.5  # one packet of a pair before it
    # back to back, the bottleneck sets the gap; at 1 ms nothing does
    assert [gap["pairs"] for gap in pairs["gaps"]] == [10, 10, 10]
    assert [gap["input_gap_s"] for gap in pairs["gaps"]] == pytest.approx([0, 100e-6, 1e-3], abs=1e-7)
    assert [gap["output_gap_p50_s"] for gap in pairs["gaps"]] == pytest.approx([405.6e-6, 405.6e-6, 1e-3], abs=1e-7)
    # on for three half seconds of three: 2 Mbit/s for half of the time
    assert wave["lost_share"] == 0 and wave["sent_packets"] == wave["received_packets"] == 3 * 124
    assert wave["mean_rate_mbps"] == pytest.approx(1.0, rel=0.01)
    assert wave["delay_min_ms"] == pytest.approx(10 + 0.4056 + 2 * 0.008112, abs=1e-3)
    assert wave["delay_max_ms"] - wave["delay_min_ms"] < 1e-4  # the sender wakes within 100 ns
    assert wave["jitter_ms"] < 1e-4


@pytest.fixture(scope="module")
def shared(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    (run,) = lab.runs(kept_results.results(tmp_path_factory.mktemp("shared"), SHARED))
    return run


def test_transfers_are_whole_and_have_records_of_their_own(shared: dict[str, Any]) -> None:
    sent, ftp = raw(shared, "ftp.client.s3")["transfers"], applications(shared)["ftp"]
    done = [transfer for transfer in sent if transfer["completion_s"] is not None]
    assert ftp["planned"] == ftp["started"] == len(sent) > 20
    assert ftp["completed"] == len(done) >= len(sent) - 5 and ftp["failed"] == 0
    assert all(transfer["sent_bytes"] == transfer["size_bytes"] for transfer in done)
    assert ftp["completion_p50_s"] == pytest.approx(np.median([t["completion_s"] for t in done]))
    flows = lab.table(shared["path"], "flows")
    mine = np.array([name.startswith("ftp.s3.d") for name in flows["flow"]])
    assert mine.sum() == len(sent) and set(flows["cca"][mine]) == {"medley"}
    ports = dict(zip(flows["src_port"][mine], flows["delivered_bytes"][mine], strict=True))
    assert all(ports[transfer["port"]] == transfer["size_bytes"] for transfer in done)
    intervals = lab.table(shared["path"], "intervals")
    one = intervals["flow"] == "ftp.s3.d1"
    assert 0 < one.sum() < 40  # of its own life, not of the whole run
    assert not any(str(name).startswith("lives") for name in flows["flow"])


def test_lives_end_when_they_should(shared: dict[str, Any]) -> None:
    for transfer in raw(shared, "lives.client.s3")["transfers"]:
        assert 1.0 <= transfer["completion_s"] < 2.5  # what waited or was under way when its second was over


def test_on_off_connections_send_in_their_periods_only(shared: dict[str, Any]) -> None:
    plan = json.loads((shared["path"] / "raw/plan.json").read_text())
    (client,) = [part for part in plan["traffic"] if part["name"] == "onoff" and part["side"] == "client"]
    intervals = lab.table(shared["path"], "intervals")
    mine = np.array([str(name).startswith("onoff") for name in intervals["flow"]])
    assert set(intervals["flow"][mine]) == {"onoff", "onoff.2"}
    silent = np.ones(len(intervals["t_s"]), dtype=bool)
    for start_s, end_s in client["settings"]["periods"]:  # what waits in the socket still leaves
        silent &= (intervals["t_s"] < start_s - 0.2) | (intervals["t_s"] > end_s + 0.7)
    assert (mine & silent).sum() >= 4
    assert intervals["payload_bytes"][mine & silent].sum() == 0
    assert intervals["payload_bytes"][mine].sum() > 500_000


def test_pages_load_and_video_plays(shared: dict[str, Any]) -> None:
    rows = applications(shared)
    web, video = rows["web"], rows["video"]
    assert web["pages_loaded"] >= 2 and web["pages_failed"] == 0 and web["page_load_p50_s"] > 0.1
    assert raw(shared, "web.server.s1")["sent_bytes"] >= sum(
        page["bytes"] for page in raw(shared, "web.client.d1")["pages"]
    )
    assert video["segments_loaded"] >= 3 and 0.05 < video["startup_delay_s"] < 8
    assert video["played_s"] + video["rebuffer_s"] + video["startup_delay_s"] == pytest.approx(8.0)
    segments = raw(shared, "video.client.d2")["segments"]
    assert {segment["rate_bps"] for segment in segments} <= {400_000, 800_000, 1_500_000, 3_000_000, 6_000_000}


def test_probes_see_the_queue(shared: dict[str, Any]) -> None:
    ping = applications(shared)["ping"]
    full_ms = 60 * 1514 * 8 / 20e6 * 1e3
    assert 20.0 < ping["rtt_min_ms"] <= ping["rtt_p50_ms"] <= ping["rtt_p95_ms"] < 20.2 + full_ms + 2
    assert ping["rtt_p95_ms"] > 35


def test_receivers_are_served_in_batches(shared: dict[str, Any]) -> None:
    """The module that reads for receivers knows the ports of TCP traffic whose receivers only read: a browser and a player (5206,
    5207) ask for their next object once they have read one, and would ask later."""
    assert shared["environment"]["kernel"]["module_params"]["warp_rxbatch"]["ports"] == "5201-5205,5208-5208"
    assert int(shared["facts"]["module_params_at_end"]["warp_rxbatch"]["batches"]) > 0


def test_the_same_seed_gives_the_same_traffic_another_seed_another(
    kernel: GuestKernel, shared: dict[str, Any], tmp_path: Path
) -> None:
    (again,) = lab.runs(lab.execute(tmp_path, SHARED))
    assert lab.digests(again["path"]) == lab.digests(shared["path"])
    for file in sorted((again["path"] / "raw").glob("*.client.*.json")):
        assert file.read_text() == (shared["path"] / "raw" / file.name).read_text(), file.name
    assert again["metrics"] == shared["metrics"]
