# SPDX-License-Identifier: Apache-2.0
"""Metrics of windows, packets, gaps, transfers and named queues, against values worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analysis.metrics import RunRecords, evaluate, find
from analysis.metrics.gaps import meeting_point
from analysis.metrics.run import DrainedQueue, Window
from analysis.records import Columns
from collectors.applications.kinds.streams import transfers

INFINITE = float("nan")


def flow(name: str, **fields: Any) -> dict[str, Any]:
    return {"flow": name, "cca": "reno", "src": "s1", "dst": "d1", "start_s": 0.0, "end_s": 20.0, **fields}


def run(*flows: dict[str, Any], until_s: float = 20.0, **parts: Any) -> RunRecords:
    whole = RunRecords(Window(0.0, until_s), DrainedQueue("r1", "r1-eth1", 8e6), flows, {}, None, 0.0, 0)
    return replace(whole, **parts)


def windows(*rows: tuple[float, float, float, float]) -> Columns:
    """Rows of time, cwnd, ssthresh and acknowledged bytes."""
    names = ("t_s", "cwnd_packets", "ssthresh_packets", "snd_una")
    return dict(zip(names, np.array(rows, dtype=float).T, strict=True))


def ssthresh(*rows: tuple[float, float, float, float]) -> float | None:
    value: float | None = evaluate(run(flow("f1"), windows={"f1": windows(*rows)}))["slow_start_ssthresh_packets"]["f1"]
    return value


def test_the_threshold_that_ends_slow_start_is_the_one_that_cwnd_reaches() -> None:
    # 32 at first; the algorithm estimates 57 at the fifth ACK, cwnd reaches it at 0.5 s; the loss at 0.6 s comes later
    assert (
        ssthresh(
            (0.1, 10, 32, 0),
            (0.2, 14, 32, 4000),
            (0.3, 20, 57, 10_000),
            (0.4, 40, 57, 30_000),
            (0.5, 57, 57, 47_000),
            (0.6, 29, 29, 47_000),
        )
        == 57
    )


def test_a_window_that_waits_at_the_threshold_for_an_estimate_has_not_left_slow_start() -> None:
    # as SPM: 32 packets are reached at 0.3 s, its last pairs' ACKs come 100 ms later and say 250
    rows = (0.1, 20, 32, 0), (0.3, 32, 32, 4000), (0.35, 32, 32, 6000), (0.4, 33, 250, 30_000)
    assert ssthresh(*rows, (0.5, 120, 250, 40_000), (0.7, 250, 250, 90_000), (0.8, 251, 250, 95_000)) == 250
    # one that is raised once cwnd has grown on its own comes too late
    assert ssthresh(*rows[:3], (0.4, 33, 32, 30_000), (0.5, 33, 250, 40_000), (0.6, 250, 250, 90_000)) == 32
    # one that says less ends it, and is the estimate
    assert ssthresh(*rows[:3], (0.4, 32, 20, 30_000)) == 20
    # one that grows past its threshold without an estimate keeps it, whatever comes later
    assert ssthresh(*rows[:3], (0.4, 33, 32, 30_000), (0.5, 30, 20, 40_000)) == 32


def test_a_window_that_counts_down_with_its_last_train_has_not_left_slow_start() -> None:
    # as PaSt: a train of 32 packets fills the window of 32; it is what is left of the train until the last ACK, which says 1300
    rows = (
        (0.1, 16, 32, 0),
        (0.5, 32, 32, 30_000),
        (0.9, 31, 32, 31_000),
        (0.91, 1, 32, 61_000),
        (0.92, 32, 1300, 62_000),
    )
    assert ssthresh(*rows, (1.4, 64, 1300, 92_000), (5.0, 1300, 1300, 2_000_000), (5.4, 1301, 1300, 2_001_000)) == 1300
    # a loss on the way keeps what was in force
    assert ssthresh(*rows, (1.4, 64, 1300, 92_000), (1.5, 32, 32, 92_000)) == 1300
    # and one within the train, which Reno's threshold then follows
    assert ssthresh(*rows[:3], (0.92, 16, 16, 31_000)) == 32


def test_an_estimate_below_the_window_ends_slow_start_at_once() -> None:
    assert ssthresh((0.1, 10, 32, 0), (0.2, 20, 15, 10_000)) == 15


def test_a_loss_ends_slow_start_with_the_threshold_from_before_it() -> None:
    # the third ACK acknowledges nothing new, and halves
    rows = (0.1, 10, 600, 0), (0.2, 20, 600, 10_000), (0.3, 21, 600, 10_000), (0.4, 10, 10, 10_000)
    assert ssthresh(*rows) == 600
    # cwnd of a timeout is below the new threshold
    assert ssthresh(*rows[:3], (0.9, 1, 10, 10_000), (1.5, 10, 10, 20_000)) == 600
    assert ssthresh(*((t, c, INFINITE if s == 600 else s, u) for t, c, s, u in rows)) is None


def test_a_slow_start_that_goes_on_has_no_threshold_at_its_end() -> None:
    assert ssthresh((0.1, 10, INFINITE, 0), (0.2, 20, INFINITE, 10_000)) is None
    assert ssthresh((0.1, 10, 100, 0), (0.2, 20, 100, 10_000)) is None
    assert evaluate(run(flow("f1")))["slow_start_ssthresh_packets"] == {"f1": None}


def test_a_window_at_a_time_is_that_of_the_last_ack_until_then() -> None:
    columns = windows((0.5, 4, 9, 0), (1.0, 8, 9, 0), (1.2, 6, 9, 0), (11.0, 3, 9, 0))
    values = evaluate(run(flow("f1"), windows={"f1": columns}))
    at = {
        name: value
        for name, value in values["cwnd_packets"].items()
        if name in ("f1.1", "f1.2", "f1.9", "f1.10", "f1.20")
    }
    assert at == {"f1.1": 8, "f1.2": 6, "f1.9": 6, "f1.10": 6, "f1.20": None}
    assert "f1.30" not in values["cwnd_packets"]
    assert values["cwnd_max_packets"] == {"f1": 8}
    later = evaluate(run(flow("f1"), windows={"f1": columns}, window=Window(1.1, 20.0)))
    assert later["cwnd_max_packets"] == {"f1": 6}


def test_sampled_windows_have_a_largest_and_no_threshold() -> None:
    columns = {"t_s": np.array([0.1, 0.2]), "cwnd_packets": np.array([10.0, 12.0])}
    values = evaluate(run(flow("f1"), windows={"f1": columns}))
    assert values["cwnd_max_packets"] == {"f1": 12}
    assert values["slow_start_ssthresh_packets"] == {"f1": None}


def test_a_fall_to_one_packet_counts_once_however_long_the_timer_backs_off() -> None:
    # one packet at first is no fall; two falls, the second with a timer that backs off; then one to two packets
    cwnd = (1, 2, 4, 1, 1, 2, 8, 1, 1, 1, 3, 9, 2)
    values = evaluate(run(flow("f1"), windows={"f1": windows(*((0.1 * i, w, 9, 0) for i, w in enumerate(cwnd)))}))
    assert values["falls_to_one_packet"] == {"f1": 2}
    assert evaluate(run(flow("f1")))["falls_to_one_packet"] == {"f1": None}


def test_packets_in_the_first_seconds_are_summed_over_the_connections() -> None:
    # 1000-byte packets: a has 10 a second from 0 s, b 20 a second from 2.5 s of a run of 4 s
    step = np.arange(40) * 0.1
    width = np.full(40, 0.1)
    rate_a, rate_b = np.full(40, 1000.0), np.where(step >= 2.45, 2000.0, 0.0)
    series = {
        name: {
            "t_s": step,
            "width_s": width,
            **dict.fromkeys(("wire_bytes", "payload_bytes", "retransmitted_bytes", "delivered_bytes"), rate),
        }
        for name, rate in (("a", rate_a), ("b", rate_b))
    }
    flows = flow("a", max_payload_bytes=1000), flow("b", max_payload_bytes=1000, start_s=2.4, data_start_s=2.5)
    initial = evaluate(run(*flows, until_s=4.0, intervals=series))["initial_packets"]
    assert initial["1"] == pytest.approx(10 + 20)
    assert initial["2"] == pytest.approx(20 + 30)  # b has a second and a half
    assert initial["10"] == pytest.approx(40 + 30)


def test_packets_and_sequence_numbers_are_those_until_the_runs_end() -> None:
    # 4 s at 30 000 bytes a second, of which 5000 are sent again and 20 000 arrive; warm-up of a second
    step = np.arange(40) * 0.1
    names = ("wire_bytes", "payload_bytes", "retransmitted_bytes", "delivered_bytes")
    values = (3300.0, 3000.0, 500.0, 2000.0)
    series = {
        "t_s": step,
        "width_s": np.full(40, 0.1),
        **{n: np.full(40, v) for n, v in zip(names, values, strict=True)},
    }
    flows = (
        flow("a", max_payload_bytes=1000, timeouts=2),
        flow("b", timeouts=0),
        flow("udp", cca=None, max_payload_bytes=1),
    )
    probed = windows((1.0, 4, 9, 0), (3.0, 4, 9, 0), (5.0, 4, 9, 0)) | {"snd_nxt": np.array([1000.0, 7000.0, 9000.0])}
    found = evaluate(
        run(*flows, intervals={"a": series, "udp": series}, windows={"b": probed}, window=Window(1.0, 4.0))
    )
    assert found["sent_packets"] == pytest.approx(90)
    assert found["delivered_packets"] == pytest.approx(60)
    assert found["highest_sequence_bytes"] == {"a": pytest.approx(100_000), "b": 7000}
    assert found["timeouts"] == {"a": 2, "b": 0}
    unknown = evaluate(run(flow("a")))
    assert (
        unknown["sent_packets"] is None and unknown["delivered_packets"] is None and unknown["timeouts"] == {"a": None}
    )


def test_gaps_and_where_they_meet() -> None:
    # a straight line from (4, 8) to (12, 12): half of what is above y = x goes per 4 ms
    assert meeting_point([(4, 8), (8, 10), (12, 12), (16, 16.1)]) == 12
    # 2 above at 8 ms, 2 below at 12 ms: in the middle
    assert meeting_point([(4, 8), (8, 10), (12, 10)]) == pytest.approx(10)
    assert meeting_point([(4, 8), (8, 9)]) is None
    assert meeting_point([(4, 4.01), (8, 8)]) == 4
    assert meeting_point([]) is None
    gaps = [
        {"asked_gap_s": 0.004, "input_gap_s": 0.004, "output_gap_s": 0.008},
        {"asked_gap_s": 0.012, "input_gap_s": 0.012, "output_gap_s": 0.012},
        {"asked_gap_s": 0.02, "input_gap_s": None, "output_gap_s": None},
    ]
    values = evaluate(run(applications=({"flow": "pairs", "gaps": gaps}, {"flow": "web"})))
    assert values["output_gap_ms"] == {"pairs.4": 8, "pairs.12": 12, "pairs.20": None}
    assert values["meeting_gap_ms"] == {"pairs": 12}


def test_lines_of_gaps_have_an_excess_a_slope_and_a_bend() -> None:
    # 10, 13, 12 and 20 ms leave for 8, 12, 16 and 24: 2, 1, -4 and -4 above y = x; the line from 8 to 24 has a slope of 10/16 and passes
    # 12.5 and 15
    gaps: list[dict[str, float | None]] = [
        {"asked_gap_s": asked / 1e3, "input_gap_s": asked / 1e3, "output_gap_s": left / 1e3}
        for asked, left in ((24, 20), (8, 10), (12, 13), (16, 12))
    ]
    gaps.append({"asked_gap_s": 0.03, "input_gap_s": None, "output_gap_s": None})
    values = evaluate(run(applications=({"flow": "pairs", "gaps": gaps}, {"flow": "web"})))
    assert values["gap_excess_ms"] == {
        name: pytest.approx(value)
        for name, value in {
            "pairs.8": 2,
            "pairs.12": 1,
            "pairs.16": -4,
            "pairs.24": -4,
            "pairs.mean": -1.25,
            "pairs.least": -4,
            "pairs.most": 2,
        }.items()
    }
    assert values["gap_slope"]["pairs.8.24"] == pytest.approx(0.625)
    assert values["gap_slope"]["pairs.12.16"] == pytest.approx(-0.25)
    assert values["gap_bend_ms"] == {
        "pairs.8.24": pytest.approx(3),
        "pairs.8.16": pytest.approx(2),
        "pairs.12.24": pytest.approx(10 / 3),
    }


def test_throughput_per_transfer_is_the_mean_of_the_transfers_own() -> None:
    # 1 Mbit in 1 s, 1 Mbit in 4 s: 1 and 0.25 Mbit/s; the third is not done
    transferred = [
        {"delivered_bytes": 125_000, "completion_s": 1.0, "error": None},
        {"delivered_bytes": 125_000, "completion_s": 4.0, "error": None},
        {"delivered_bytes": 99, "completion_s": None, "error": None},
    ]
    row = transfers({"client": [{"transfers": transferred}], "server": [{"bytes": 250_099}]}, [])
    assert row["throughput_mean_mbps"] == pytest.approx(0.625)
    values = evaluate(run(applications=({"flow": "ftp", **row},)))
    assert values["transfer_throughput_mbps"] == {"ftp": pytest.approx(0.625)}


def test_any_queue_has_arrivals_departures_and_a_mean() -> None:
    # at 20 s 100 packets had left, 5 been dropped, 3 wait; one waited at first
    samples = {
        "t_s": np.array([0.0, 10.0, 20.0]),
        "backlog_packets": np.array([1.0, 5.0, 3.0]),
        "sent_packets": np.array([0.0, 60.0, 100.0]),
        "sent_bytes": np.zeros(3),
        "drops": np.array([0.0, 2.0, 5.0]),
        "marks": np.zeros(3),
    }
    idle = samples | {"sent_packets": np.zeros(3)}
    values = evaluate(run(queues={"r2-eth0": samples, "r3-eth0": idle}))
    assert values["queue_departed_packets"] == {"r2-eth0": 100}
    assert values["queue_arrived_packets"] == {"r2-eth0": 100 + 5 + 2}
    assert values["queue_backlog_packets"] == {"r2-eth0": pytest.approx(3.0)}
    later = evaluate(run(queues={"r2-eth0": samples}, window=Window(10.0, 20.0)))
    assert later["queue_departed_packets"] == {"r2-eth0": 40}
    assert later["queue_arrived_packets"] == {"r2-eth0": 40 + 3 - 2}


def test_parts_are_asked_for_by_name() -> None:
    assert find("cwnd_packets.f1.500").unit == "packets"
    assert find("queue_arrived_packets.r1-eth1").keyed == "interface"
