# SPDX-License-Identifier: Apache-2.0
"""Connections of traffic without a capture: what their programs told of them, and what samples and counts make of it."""

from __future__ import annotations

import json
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collectors import connections, uncaptured
from collectors.errors import CollectError
from network.model import address_plan
from plan.model import Plan
from testbed.experiments import prepare
from testbed.recorded import sources_of
from tests import lab

FILE = """\
warpbed: 1
name: told
title: Traffic alone
duration: 6s
topology: {name: dumbbell, params: {pairs: 2, rate: 20mbit, delay: 9ms, buffer: 40p}}
hosts: {overhead: none}
captures: {at: none}
traffic:
  - {name: ftp, kind: transfers, cca: reno, from: s1, to: [d1, d2], count: 4, size: 9KB}
  - {name: loud, kind: on_off, cca: cubic, from: s2, to: d2, connections: 2, start: 1s, on: 1s, off: 1s}
  - {name: apart, kind: on_off, cca: cubic, from: s2, to: d1, background: true}
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return prepare(lab.write(tmp_path, FILE)).plans[0]


def sent(port: int, start_s: float, **more: Any) -> dict[str, Any]:
    return {"port": port, "start_s": start_s, "error": None if port else "Connection refused", **more}


def read(address: str, port: int, start_s: float, end_s: float | None, size: int) -> dict[str, Any]:
    return {"address": address, "port": port, "start_s": start_s, "end_s": end_s, "bytes": size}


@pytest.fixture
def raw(tmp_path: Path, plan: Plan) -> Path:
    """What the programs of a run write: three transfers and one that never came about, two connections that stay."""
    s1, s2 = (address_plan(plan.network)[name].address for name in ("s1", "s2"))
    files: dict[str, dict[str, Any]] = {
        "ftp.client.s1": {
            "transfers": [
                sent(40000, 0.5, to="d2"), sent(40002, 1.0, to="d1"), sent(0, 1.5, to="d1"), sent(40004, 2.0, to="d2"),
            ]
        },
        "ftp.server.d1": {"connections": [read(s1, 40002, 1.02, 1.1, 9000), read(s2, 40002, 0.1, 0.2, 7)]},
        "ftp.server.d2": {"connections": [read(s1, 40000, 0.52, 0.6, 9000), read(s1, 40004, 2.02, None, 4000)]},
        "loud.client.s2": {"connections": [sent(41000, 1.0), sent(41002, 1.0)]},
        "loud.server.d2": {"connections": [read(s2, 41002, 1.02, 5.5, 3_000_000),
            read(s2, 41000, 1.02, 5.5, 2_000_000)]},
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


def test_they_are_named_in_the_order_in_which_they_were_opened(raw: Path, plan: Plan) -> None:
    uncaptured = connections.uncaptured(raw, plan, set())
    addresses = address_plan(plan.network)
    assert [(one.name, one.src_port, one.start_s, one.flow.cca) for one in uncaptured] == [
        ("ftp.s1.d1", 40002, 1.0, "reno"),
        ("ftp.s1.d2", 40000, 0.5, "reno"),
        ("ftp.s1.d2.2", 40004, 2.0, "reno"),
        ("loud", 41000, 1.0, "cubic"),
        ("loud.2", 41002, 1.0, "cubic"),
    ]
    counted = {one.name: one.counted for one in uncaptured}
    assert counted["ftp.s1.d1"] == connections.Counted(1.02, 1.1, 9000)  # not the other sender's of that port
    assert counted["ftp.s1.d2.2"] == connections.Counted(2.02, 6.0, 4000)  # open when the run ended
    assert counted["loud"] == connections.Counted(1.02, 5.5, 2_000_000)
    loud = uncaptured[3]
    assert loud.endpoints == (int(ip_address(addresses["s2"].address)), 41000, loud.flow.port)
    assert [one.name for one in connections.uncaptured(raw, plan, {"loud", "ftp.s1.d1"})] == [
        "ftp.s1.d2",
        "ftp.s1.d2.2",
    ]


def test_a_run_without_captures_has_the_other_sources_of_its_traffic(plan: Plan) -> None:
    assert sources_of(plan) >= {"tcp_probe", "tcp_info", "application"}
    assert not [source for source in sources_of(plan) if "capture" in source]


def rows(plan: Plan, listed: list[connections.Connection], **columns: Any) -> dict[str, dict[str, Any]]:
    flows, intervals, sources = uncaptured.read(listed, columns.get("probe"), columns.get("samples"), plan, 10**18)
    flow_rows = [dict(zip(flows, values, strict=True)) for values in zip(*flows.values(), strict=True)]
    for row in flow_rows:
        mine = np.asarray(intervals["flow"], dtype=object) == row["flow"]
        row["sum"] = int(np.asarray(intervals["delivered_bytes"])[mine].sum())
        row["first_s"], row["last_s"] = (float(np.asarray(intervals["t_s"])[mine][i]) for i in (0, -1))
        row["source"] = sources[row["flow"]].get("delivered")
        row["told"] = sources[row["flow"]]
    return {row["flow"]: row for row in flow_rows}


def test_without_samples_the_receiver_s_count_is_all_there_is(raw: Path, plan: Plan) -> None:
    table_rows = rows(plan, connections.uncaptured(raw, plan, set()))
    assert {row["source"] for row in table_rows.values()} == {"application"}
    ftp = table_rows["ftp.s1.d1"]
    assert (ftp["delivered_bytes"], ftp["sum"]) == (9000, 9000)
    assert ftp["goodput_mbps"] == pytest.approx(9000 * 8e-6 / 0.1)
    assert ftp["rtt_mean_ms"] is None and set(ftp["told"]) == {"delivered"}


def test_what_came_after_the_last_ack_is_in_the_series(raw: Path, plan: Plan) -> None:
    """Two ACKs of `loud` were seen, at 1.5 and 2 s; of the transfers none at all, which says that none came back."""
    probe = {
        "flow": np.array(["loud", "loud"], dtype=object), "t_s": np.array([1.5, 2.0]),
        "snd_una": np.array([500_000, 1_500_000]),
        "srtt_us": np.array([40_000, 50_000]),
    }  # fmt: skip
    table_rows = rows(plan, connections.uncaptured(raw, plan, set()), probe=probe)
    loud, silent = table_rows["loud"], table_rows["ftp.s1.d1"]
    assert (loud["source"], loud["delivered_bytes"], loud["sum"]) == ("tcp_probe", 2_000_000, 2_000_000)
    assert (loud["first_s"], loud["end_s"]) == (1.0, 5.5)
    assert loud["rtt_mean_ms"] == pytest.approx(45)
    assert (silent["source"], silent["delivered_bytes"]) == ("tcp_probe", 9000)
    assert set(silent["told"]) == {"delivered", "rtt", "highest", "window"}
    assert (silent["first_s"], silent["last_s"]) == (1.0, 1.0)  # its own life, not the run's


def test_a_port_that_came_twice_has_no_samples_of_either(raw: Path, plan: Plan) -> None:
    for name in ("ftp.client.s1.json", "ftp.server.d2.json"):
        (raw / name).write_text((raw / name).read_text().replace("40004", "40000"))
    by_name = {one.name: one for one in connections.uncaptured(raw, plan, set())}
    assert [name for name, one in by_name.items() if not one.is_alone] == ["ftp.s1.d2", "ftp.s1.d2.2"]
    (flow,) = (one for one in plan.flows if one.name == "ftp.s1.d2")
    assert connections.names_by_port(raw, plan, flow) == {}
    flow_rows = rows(
        plan, list(by_name.values()), probe={key: np.array([]) for key in ("flow", "t_s", "snd_una", "srtt_us")}
    )
    assert flow_rows["ftp.s1.d2"]["source"] == "application" and flow_rows["ftp.s1.d2.2"]["delivered_bytes"] == 4000
    assert flow_rows["loud"]["source"] == "tcp_probe"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"connections": 3}', '{"connections": [3]}', '{"connections": [{"port": 4}]}',
     '{"connections": [{"port": "x", "start_s": 1}]}', '{"connections": [{"port": 4, "start_s": NaN}]}'],
)  # fmt: skip
def test_a_file_that_no_program_writes_is_refused_with_its_name(raw: Path, plan: Plan, text: str) -> None:
    (raw / "loud.client.s2.json").write_text(text)
    with pytest.raises(CollectError, match=r"loud\.client\.s2\.json"):
        connections.uncaptured(raw, plan, set())


def test_times_and_counts_out_of_all_bounds_ask_for_no_memory(raw: Path, plan: Plan) -> None:
    file = raw / "loud.client.s2.json"
    file.write_text(json.dumps({"connections": [sent(41000, -1e300), sent(41002, 1e300)]}))
    by_name = {one.name: one for one in connections.uncaptured(raw, plan, set())}
    assert (by_name["loud"].start_s, by_name["loud.2"].start_s) == (0.0, 6.0)
    assert rows(plan, [by_name["loud"]])["loud"]["sum"] == 2_000_000
