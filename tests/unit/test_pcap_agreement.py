# SPDX-License-Identifier: Apache-2.0
"""collectors.pcap, tshark and tcptrace on the crafted captures; docs/pcap.md "Agreement" explains each difference."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from collectors.pcap import analyze
from tests.pcap_craft import write
from tests.pcap_scenarios import SCENARIOS

# What the comments of pcap_scenarios.py say, for the client's data direction (both_ways: the server's).
EXPECTED: dict[str, dict[str, Any]] = {
    "clean": {"rtt_samples": 6},
    "one_loss": {"fast_retransmissions": 1, "duplicate_acks": 4, "rtt_samples": 3, "sack_blocks": 4},
    "tail_loss": {"timeout_retransmissions": 1, "timeouts": 1, "rtt_samples": 4},
    "tail_probe": {"tail_probe_retransmissions": 1, "rtt_samples": 4},
    "spurious_timeout": {
        "timeout_retransmissions": 1,
        "timeouts": 1,
        "spurious_retransmissions": 1,
        "spurious_by_timestamps": 1,
        "dsack_blocks": 1,
        "rtt_samples": 2,
    },
    "spurious_by_dsack": {
        "timeout_retransmissions": 1,
        "timeouts": 1,
        "spurious_retransmissions": 1,
        "spurious_by_dsack": 1,
        "spurious_by_timestamps": 0,
        "dsack_blocks": 1,
        "timestamps": False,
        "rtt_samples": 2,
    },
    "window_limited": {"window_limited_s": 0.04, "rtt_samples": 4},
    "wrap": {"rtt_samples": 6},
    "reneging": {"timeout_retransmissions": 3, "timeouts": 1, "sack_reneged": 1, "duplicate_acks": 2, "rtt_samples": 3},
    "simultaneous_open": {"rtt_samples": 2},
    "keep_alive": {"keep_alives": 2, "rtt_samples": 3, "payload_bytes": 1001, "delivered_bytes": 1000},
    "reset": {"end_reason": "reset", "rtt_samples": 2},
    "reordering": {"out_of_order_packets": 1, "gaps": 1, "at_receiver": True, "rtt_samples": 2},
    "loss_upstream": {"fast_retransmissions": 1, "gaps": 1, "at_receiver": True, "rtt_samples": 2},
    "zero_window": {"zero_windows": 1, "zero_window_s": 0.1, "zero_window_probes": 1, "rtt_samples": 4},
    "both_ways": {"forward": False, "rtt_samples": 5},
}
NOTHING = (
    "fast_retransmissions", "timeout_retransmissions", "timeouts", "tail_probe_retransmissions",
    "other_retransmissions",
    "spurious_retransmissions", "out_of_order_packets", "gaps", "unseen_bytes", "sack_reneged", "keep_alives",
    "zero_windows", "zero_window_probes", "dsack_blocks", "out_of_window_packets",
)  # fmt: skip


def flow_of(path: Path, out: Path) -> dict[str, Any]:
    summary = analyze(path, out)
    assert (summary.flows, summary.bad_packets, summary.errors) == (1, 0, ())
    (row,) = pq.read_table(out / "flows.parquet").to_pylist()
    return dict(row)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_crafted_capture_gives_what_its_comment_says(name: str, tmp_path: Path) -> None:
    row = flow_of(write(tmp_path / "x.pcap", SCENARIOS[name]()), tmp_path)
    expected = dict.fromkeys(NOTHING, 0) | EXPECTED[name]
    assert {key: row[key] for key in expected} == pytest.approx(expected)
    causes = [key for key in row if key.endswith("_retransmissions") and key != "spurious_retransmissions"]
    assert row["retransmitted_packets"] == sum(row[key] for key in causes)


# Differences by design, with who is right, are in docs/pcap.md; values are tshark's count less ours.
TSHARK_RETRANSMISSIONS = {"simultaneous_open": 1}
TSHARK_DUPLICATE_ACKS = {"spurious_timeout": 1, "spurious_by_dsack": 1}
TSHARK_RTT_SAMPLES = {
    "one_loss": 1,
    "tail_loss": 1,
    "tail_probe": 1,
    "spurious_timeout": 1,
    "spurious_by_dsack": 1,
    "reneging": 3,
    "simultaneous_open": 1,
    "keep_alive": 1,
    "reordering": 1,
    "loss_upstream": 1,
}


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("name", SCENARIOS)
def test_tshark_agrees_but_for_known_differences(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.pcap", SCENARIOS[name]())
    row = flow_of(path, tmp_path)
    names = (
        "tcp.srcport", "tcp.len", "tcp.analysis.retransmission", "tcp.analysis.out_of_order",
        "tcp.analysis.duplicate_ack", "tcp.analysis.ack_rtt", "tcp.analysis.keep_alive",
    )  # fmt: skip
    fields = [argument for field in names for argument in ("-e", field)]
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "separator=|", *fields]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    packets = [line.split("|") for line in output.splitlines()]
    mine = [p for p in packets if p[0] == str(row["src_port"])]
    theirs = [p for p in packets if p[0] != str(row["src_port"])]
    assert len(mine) == row["packets"]
    assert sum(int(p[1]) for p in mine) == row["payload_bytes"]
    retransmissions = sum(bool(p[2]) for p in mine)
    assert retransmissions - row["retransmitted_packets"] == TSHARK_RETRANSMISSIONS.get(name, 0)
    assert sum(bool(p[3]) for p in mine) == row["out_of_order_packets"]
    duplicates = sum(bool(p[4]) for p in theirs)
    assert duplicates - row["duplicate_acks"] == TSHARK_DUPLICATE_ACKS.get(name, 0)
    samples = [float(p[5]) for p in theirs if p[5]]
    assert len(samples) - row["rtt_samples"] == TSHARK_RTT_SAMPLES.get(name, 0)
    if len(samples) == row["rtt_samples"]:
        assert sum(samples) / len(samples) * 1e3 == pytest.approx(row["rtt_mean_ms"])
    assert min(samples) * 1e3 == pytest.approx(row["rtt_min_ms"], abs=20 if name == "simultaneous_open" else 1e-6)


# The 1 is a SYN or a keep-alive's byte.
TCPTRACE_RETRANSMITTED_BYTES: dict[str, int] = {"keep_alive": 1, "loss_upstream": -1000, "simultaneous_open": 1}


@pytest.mark.skipif(shutil.which("tcptrace") is None, reason="tcptrace is not installed")
@pytest.mark.parametrize("name", SCENARIOS)
def test_tcptrace_agrees_on_packets_and_bytes(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.pcap", SCENARIOS[name]())
    # tcptrace's libpcap hands it microseconds; it reads no nanosecond files of its own.
    row = flow_of(path, tmp_path)
    output = subprocess.run(["tcptrace", "-n", "-l", str(path)], capture_output=True, text=True, timeout=60).stdout
    side = 0 if row["forward"] else 1

    def value(label: str) -> int:
        match = re.search(rf"^\s*{label}:\s+(\S+)\s+{label}:\s+(\S+)", output, re.MULTILINE)
        assert match, f"{label} not in {output}"
        return int(match.group(1 + side))

    assert value("total packets") == row["packets"]
    assert value("actual data bytes") == row["payload_bytes"]
    assert value("rexmt data bytes") - row["retransmitted_bytes"] == TCPTRACE_RETRANSMITTED_BYTES.get(name, 0)
