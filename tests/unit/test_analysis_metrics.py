# SPDX-License-Identifier: Apache-2.0
"""Metrics against values worked out by hand, and what must hold for any flows."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import metrics
from analysis.errors import ContextError, RecordsError, UnknownMetricError
from analysis.metrics import REGISTRY, RunRecords, evaluate, find, lookup, parse_context
from analysis.metrics.dynamics import convergence_baserrts, variation
from analysis.metrics.fairness import jain
from analysis.metrics.rates import binned_mbps, bytes_in, mean_mbps
from analysis.metrics.run import DrainedQueue, Window
from analysis.records import Columns
from benchmarks.make_results import Case, make_results

MEGABIT_BYTES = 125_000  # 1 Mbit
FOUR_SECONDS = Window(0.0, 4.0)
CONTRACT = {
    "utilization",
    "jain_index",
    "goodput_mbps",
    "queue_mean_packets",
    "queue_max_packets",
    "queue_drops",
    "flows",
}
FLOW_CONTRACT = {
    *("flow", "cca", "src", "dst"),
    "start_s",
    "throughput_mbps",
    "goodput_mbps",
    "retransmitted_bytes",
    "rtt_min_ms",
    "rtt_mean_ms",
    "rtt_p95_ms",
    "completion_s",
}


def intervals(rates_mbps: list[float], width_s: float = 1.0, start_s: float = 0.0) -> Columns:
    """Intervals at given goodputs; a tenth more is on the wire."""
    moved = np.array(rates_mbps, dtype=float) * MEGABIT_BYTES * width_s
    count = len(rates_mbps)
    return {
        "t_s": start_s + width_s * np.arange(count),
        "width_s": np.full(count, width_s),
        "wire_bytes": moved * 1.1,
        "payload_bytes": moved,
        "retransmitted_bytes": np.zeros(count),
        "delivered_bytes": moved,
    }


def queue(backlog: list[int], sent_bytes: list[int], drops: list[int], step_s: float = 1.0) -> Columns:
    return {
        "t_s": step_s * np.arange(len(backlog)),
        "backlog_packets": np.array(backlog, dtype=float),
        "sent_packets": np.array(sent_bytes, dtype=float) / 1000,
        "sent_bytes": np.array(sent_bytes, dtype=float),
        "drops": np.array(drops, dtype=float),
        "marks": np.zeros(len(drops)),
    }


def flow(name: str, **fields: Any) -> dict[str, Any]:
    return {"flow": name, "cca": "reno", "src": "s1", "dst": "d1", "start_s": 0.0, "end_s": 4.0, **fields}


def run(
    rates: dict[str, list[float]] | None = None,
    *,
    window: Window = FOUR_SECONDS,
    samples: Columns | None = None,
    flows: list[dict[str, Any]] | None = None,
    rate_bps: float | None = 8e6,
) -> RunRecords:
    rates = rates or {}
    return RunRecords(
        window=window,
        bottleneck=DrainedQueue("r1", "r1-eth1", rate_bps),
        flows=tuple([flow(name) for name in rates] if flows is None else flows),
        intervals={name: intervals(values) for name, values in rates.items()},
        queue=samples,
        rtt_sum_ms=250.0,
        rtt_samples=2,
    )


def test_every_metric_of_the_contract_is_registered_with_definition_and_source() -> None:
    assert set(REGISTRY) >= CONTRACT
    for metric in REGISTRY.values():
        assert len(metric.description) > 20, metric.name
        assert metric.source, metric.name
        assert metric.label, metric.name


def test_utilization_is_bytes_sent_over_rate_times_time() -> None:
    # 4 s at 8 Mbit/s carry 4 000 000 bytes; 3 000 000 left: 3/4.
    samples = queue([0] * 5, [0, 500_000, 1_000_000, 2_000_000, 3_000_000], [0] * 5)
    assert evaluate(run(samples=samples))["utilization"] == pytest.approx(0.75)


def test_utilization_leaves_out_the_warmup() -> None:
    # After 2 s: 3 000 000 − 1 000 000 bytes in 2 s at 8 Mbit/s: full.
    samples = queue([0] * 5, [0, 500_000, 1_000_000, 2_000_000, 3_000_000], [0] * 5)
    assert evaluate(run(samples=samples, window=Window(2.0, 4.0)))["utilization"] == pytest.approx(1.0)


def test_utilization_is_unknown_without_a_rate_but_the_queue_is_known() -> None:
    values = evaluate(run(samples=queue([1] * 5, [0] * 5, [0] * 5), rate_bps=None))
    assert values["utilization"] is None
    assert values["queue_mean_packets"] == 1.0


def test_queue_mean_weighs_by_time_and_max_is_the_largest_sample() -> None:
    samples = queue([0, 10, 0, 2], [0] * 4, [0] * 4)
    samples["t_s"] = np.array([0.0, 1.0, 1.5, 4.0])  # 10 packets for half a second, 2 at the end for none: 5/4
    values = evaluate(run(samples=samples))
    assert values["queue_mean_packets"] == pytest.approx(1.25)
    assert values["queue_max_packets"] == 10


def test_queue_metrics_do_not_depend_on_the_order_of_samples() -> None:
    samples = queue([0, 10, 0, 2, 4], [0, 1000, 2000, 3000, 4000], [0, 1, 1, 2, 2])
    shuffled = {name: values[[3, 0, 4, 2, 1]] for name, values in samples.items()}
    assert evaluate(run(samples=shuffled)) == evaluate(run(samples=samples))


def test_drops_and_loss_rate_are_counted_over_the_window() -> None:
    # 7 − 2 drops after the first second; 45 packets were sent in that time.
    samples = queue([0] * 5, [0, 5000, 20_000, 35_000, 50_000], [0, 2, 4, 6, 7])
    values = evaluate(run(samples=samples, window=Window(1.0, 4.0)))
    assert values["queue_drops"] == 5
    assert values["loss_rate"] == pytest.approx(5 / 50)


def test_samples_of_a_small_part_of_the_run_give_no_queue_metrics() -> None:
    samples = queue([5, 5], [0, 1_000_000], [0, 0])  # one second of four
    values = evaluate(run(samples=samples))
    assert [values[name] for name in ("utilization", "queue_mean_packets", "queue_max_packets", "queue_drops")] == [
        None
    ] * 4


def test_goodput_and_throughput_add_the_flows_up() -> None:
    values = evaluate(run({"a": [1, 2, 3, 4], "b": [0, 0, 2, 2]}))
    assert values["goodput_mbps"] == pytest.approx(2.5 + 1.0)
    assert values["throughput_mbps"] == pytest.approx(3.5 * 1.1)


def test_an_interval_across_the_windows_edge_counts_by_its_share() -> None:
    assert bytes_in(intervals([8, 8]), "delivered_bytes", Window(0.5, 1.25)) == pytest.approx(0.75 * 8 * MEGABIT_BYTES)


def test_jain_of_known_shares() -> None:
    assert jain([1, 1, 1, 1]) == pytest.approx(1.0)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain([3, 1]) == pytest.approx(16 / 20)
    assert jain([0, 0]) is None
    assert jain([]) is None


shares = st.lists(st.floats(0, 1e12, allow_nan=False), min_size=1, max_size=50).filter(lambda values: max(values) > 0)


@settings(deadline=None)
@given(shares)
def test_jain_lies_between_one_over_n_and_one(values: list[float]) -> None:
    index = jain(values)
    assert index is not None
    assert 1 / len(values) * (1 - 1e-9) <= index <= 1 + 1e-9


@settings(deadline=None)
@given(shares, st.randoms(use_true_random=False), st.floats(1e-6, 1e6))
def test_jain_does_not_depend_on_order_or_unit(values: list[float], random: Any, factor: float) -> None:
    scaled = [value * factor for value in values]
    random.shuffle(scaled)
    if max(scaled) > 0:
        index, other = jain(values), jain(scaled)
        assert index is not None
        assert other is not None
        assert math.isclose(index, other, rel_tol=1e-6)


def test_jain_counts_only_the_time_in_which_all_flows_are_there() -> None:
    # b starts at 2 s; from there on both have 2 Mbit/s.
    flows = [flow("a"), flow("b", start_s=2.0)]
    values = evaluate(run({"a": [8, 8, 2, 2], "b": [0, 0, 2, 2]}, flows=flows))
    assert values["jain_index"] == pytest.approx(1.0)


def test_a_flow_that_moved_nothing_is_unfair_not_absent() -> None:
    values = evaluate(run({"a": [2, 2, 2, 2]}, flows=[flow("a"), flow("b", start_s=None, end_s=None)]))
    assert values["jain_index"] == pytest.approx(0.5)


def test_traffic_without_congestion_control_is_no_part_of_fairness() -> None:
    values = evaluate(run({"a": [2] * 4, "b": [9] * 4}, flows=[flow("a"), flow("b", cca=None)]))
    assert values["jain_index"] == pytest.approx(1.0)


def test_jain_in_windows_of_five_seconds() -> None:
    rates = {"a": [1.0] * 5 + [3.0] * 5, "b": [1.0] * 10}
    flows = [flow("a", end_s=10.0), flow("b", end_s=10.0)]
    values = evaluate(run(rates, window=Window(0.0, 10.0), flows=flows))
    assert values["jain_5s_min"] == pytest.approx(0.8)
    assert values["jain_5s_mean"] == pytest.approx(0.9)


def test_rtt_statistics() -> None:
    flows = [flow("a", rtt_min_ms=100.0, rtt_p95_ms=140.0), flow("b", rtt_min_ms=90.0, rtt_p95_ms=120.0), flow("c")]
    values = evaluate(run(flows=flows))
    assert (values["rtt_min_ms"], values["rtt_mean_ms"], values["rtt_p95_ms"]) == (90.0, 125.0, 140.0)


def test_retransmission_rate_and_completion() -> None:
    flows = [
        flow("a", data_packets=90, retransmitted_packets=9, completion_s=3.0),
        flow("b", data_packets=10, retransmitted_packets=1, completion_s=2.0),
    ]
    values = evaluate(run(flows=flows))
    assert values["retransmission_rate"] == pytest.approx(0.1)
    assert values["completion_s"] == 3.0


def test_initial_goodput_counts_from_each_flows_own_start() -> None:
    flows = [flow("a"), flow("b", start_s=1.0)]
    values = evaluate(run({"a": [1, 2, 3, 4], "b": [0, 3, 4, 5]}, flows=flows, window=Window(0.0, 4.0)))
    initial = values["initial_goodput_mbps"]
    assert initial["1"] == pytest.approx((1 + 3) / 2)
    assert initial["2"] == pytest.approx((1.5 + 3.5) / 2)
    assert initial["4"] == pytest.approx(2.5)  # b has lived for three seconds only
    assert initial["5"] is None


def test_smoothness_of_a_steady_and_of_an_alternating_flow() -> None:
    assert evaluate(run({"a": [2, 2, 2, 2]}))["smoothness_cv"]["1"] == pytest.approx(0.0)
    values = evaluate(run({"a": [1, 3, 1, 3]}))["smoothness_cv"]
    assert values["1"] == pytest.approx(0.5)  # mean 2, deviation 1
    assert values["2"] == pytest.approx(0.0)  # pairs are equal
    assert values["0.2"] is None  # finer than the intervals
    assert variation(np.zeros(3)) is None


def test_convergence_of_a_rise_to_a_steady_rate() -> None:
    # 100 ms BaseRTT and intervals: rises for 20 of them, then steady.
    rates = [10 * min(1.0, step / 20) for step in range(200)]
    time = convergence_baserrts(intervals(rates, 0.1), Window(0.0, 20.0), 0.1)
    assert time is not None
    assert 18 <= time <= 22


def test_a_saw_tooth_is_reached_at_its_top() -> None:
    tooth = [5 + 5 * (step % 20) / 20 for step in range(400)]
    rates = [0.25 * step for step in range(20)] + tooth
    time = convergence_baserrts(intervals(rates, 0.1), Window(0.0, 42.0), 0.1)
    assert time is not None
    assert 36 <= time <= 41  # the climb of 20 to the teeth's foot, and the first tooth's of 20


def reno(path: int, buffer: int, ssthresh: int, rounds: int) -> list[float]:
    """Packets that Reno delivers in each BaseRTT, by hand: doubling, one more a round, half after what path and buffer cannot hold."""
    windows: list[float] = []
    window, owed = 2, 0.0  # owed: of a round that is longer than a BaseRTT what the next ones still carry
    while len(windows) < rounds:
        owed += window
        while owed >= min(window, path) and len(windows) < rounds:
            windows.append(min(window, path))
            owed -= min(window, path)
        window = min(2 * window, ssthresh) if window < ssthresh else window + 1
        if window > path + buffer:
            window //= 2
    return windows


@pytest.mark.parametrize(
    ("path", "buffer", "rounds_to_path"),
    [
        # 5 rounds from 2 to the 64 packets of ssthresh, then one packet a round up to the path's
        (123, 250, 5 + 59),  # 10 Mbit/s: the buffer holds a path's packets, so that the path stays full
        (370, 250, 5 + 306),  # 30 Mbit/s: cuts go down to 310, which the first climb passes 60 rounds earlier
        (370, 50, 5 + 306),  # cuts go down to 210
        (617, 50, 5 + 553),
    ],
)
def test_reno_has_converged_when_it_first_fills_the_path(path: int, buffer: int, rounds_to_path: int) -> None:
    """Ho 2008 s5.2.2: the time that a connection spends "to ramp up to the available bandwidth"."""
    rates = [packets * 0.08 for packets in reno(path, buffer, 64, 2400)]
    time = convergence_baserrts(intervals(rates, 0.1), Window(0.0, 240.0), 0.1)
    assert time == pytest.approx(rounds_to_path, abs=0.01 * path + 3)  # the top's 1 %, and the smoothing


def test_convergence_without_captures_begins_a_round_trip_before_the_first_acknowledged_data() -> None:
    # 1 s of a program's own handshake, then 20 BaseRTTs of 100 ms up to a steady rate; ACKs are a BaseRTT late
    rates = [0.0] * 11 + [10 * min(1.0, step / 20) for step in range(1, 190)]
    lived = flow("a", rtt_min_ms=100.0, end_s=20.0)
    records = replace(run({}, window=Window(0.0, 20.0), flows=[lived]), intervals={"a": intervals(rates, 0.1)})
    assert evaluate(records)["convergence_baserrts"] == pytest.approx(20, abs=2)
    from_program = replace(records, flows=(flow("a", rtt_min_ms=100.0, end_s=20.0, data_start_s=0.0),))
    assert evaluate(from_program)["convergence_baserrts"] == pytest.approx(31, abs=2)


def test_a_flow_still_rising_has_not_converged() -> None:
    assert convergence_baserrts(intervals([float(s) for s in range(200)], 0.1), Window(0.0, 20.0), 0.1) is None


def test_a_short_run_that_arrives_late_has_converged() -> None:
    rates = [10 * min(1.0, step / 120) for step in range(200)]
    time = convergence_baserrts(intervals(rates, 0.1), Window(0.0, 20.0), 0.1)
    assert time is not None
    assert 110 <= time <= 122


def test_a_start_that_overshoots_and_collapses_has_not_arrived_yet() -> None:
    rates = [10.0] * 20 + [1.0] * 20 + [min(10.0, 1 + 0.2 * step) for step in range(200)]
    time = convergence_baserrts(intervals(rates, 0.1), Window(0.0, 24.0), 0.1)
    assert time is not None
    assert 75 <= time <= 90


def test_a_fall_to_a_lower_state_ends_where_the_state_begins() -> None:
    rates = [10.0] * 30 + [5.0] * 170
    time = convergence_baserrts(intervals(rates, 0.1), Window(0.0, 20.0), 0.1)
    assert time is not None
    assert 28 <= time <= 34


def test_adaptation_counts_from_each_change_in_mean_rtts() -> None:
    # a window of 100, halved bandwidth at 20 s and within 1 s adjusted to, doubled at 40 s and climbed to in 4 s
    cwnd = [100.0] * 210 + [50.0] * 190 + [50 + 50 * min(1.0, i / 40) for i in range(200)]
    lived = flow("a", rtt_min_ms=100.0, rtt_mean_ms=200.0, end_s=60.0)
    windows = {"t_s": np.arange(600) * 0.1, "cwnd_packets": np.array(cwnd)}
    base = run({}, window=Window(0.0, 60.0), flows=[lived])
    values = evaluate(replace(base, windows={"a": windows}, changes_s=(20.0, 40.0)))["adaptation_rtts"]
    assert set(values) == {"1", "2"}
    assert values["1"] == pytest.approx(5, abs=2)  # 1 s is 5 RTTs of 200 ms
    assert values["2"] == pytest.approx(20, abs=2)
    assert evaluate(replace(base, changes_s=(20.0, 40.0)))["adaptation_rtts"] == {"1": None, "2": None}
    assert evaluate(run({"a": [1, 2, 3, 4]}))["adaptation_rtts"] == {}


def test_a_window_that_never_settles_counts_with_the_whole_time_to_the_next_change() -> None:
    """Otherwise the slowest of all would have no number, and no claim could be lost to it. Two that never settle are equal."""
    cwnd = [100.0 + 0.1 * i for i in range(600)]  # it climbs all the time
    lived = flow("a", rtt_min_ms=100.0, rtt_mean_ms=200.0, end_s=60.0)
    windows = {"t_s": np.arange(600) * 0.1, "cwnd_packets": np.array(cwnd)}
    base = run({}, window=Window(0.0, 60.0), flows=[lived])
    values = evaluate(replace(base, windows={"a": windows}, changes_s=(20.0, 58.8)))["adaptation_rtts"]
    assert values == {"1": pytest.approx(38.8 / 0.1, abs=1), "2": None}  # 12 BaseRTTs are too few to say anything


def test_shares_of_algorithms_and_what_is_fair() -> None:
    flows = [flow("a", cca="medley"), flow("b"), flow("c")]
    values = evaluate(run({"a": [2] * 4, "b": [1] * 4, "c": [1] * 4}, flows=flows))
    assert values["algorithm_share"] == {"medley": pytest.approx(0.5), "reno": pytest.approx(0.5)}
    assert values["algorithm_fair_share"] == {"medley": pytest.approx(1.5), "reno": pytest.approx(0.75)}
    nothing = evaluate(run({"a": [0] * 4}, flows=[flow("a")]))
    assert nothing["algorithm_share"] == {"reno": None}


def test_idle_bandwidth_is_what_others_leave() -> None:
    # 8 Mbit/s are 1 MB/s; others take 0.4 MB/s of it, the flow 2 Mbit/s (0.275 MB/s with headers); 0.325 MB/s are left
    samples = queue([0] * 5, [0, 675_000, 1_350_000, 2_025_000, 2_700_000], [0] * 5)
    values = evaluate(run({"a": [2] * 4}, samples=samples))
    assert values["idle_bandwidth_used"] == pytest.approx(0.275 / 0.6)
    assert evaluate(run({"a": [2] * 4}))["idle_bandwidth_used"] is None


def test_a_flow_that_moves_nothing_has_not_converged() -> None:
    assert convergence_baserrts(intervals([0.0] * 200, 0.1), Window(0.0, 20.0), 0.1) is None


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e4), min_size=4, max_size=40), st.floats(0.05, 2.0))
def test_bins_hold_all_the_bytes_of_their_window(rates: list[float], width_s: float) -> None:
    columns = intervals(rates, 0.5)
    window = Window(0.0, 0.5 * len(rates))
    bins = binned_mbps(columns, "delivered_bytes", window, width_s)
    covered = Window(0.0, width_s * bins.size)
    assert bins.sum() * width_s * MEGABIT_BYTES == pytest.approx(
        bytes_in(columns, "delivered_bytes", covered), rel=1e-6, abs=1e-3
    )


@settings(deadline=None)
@given(st.permutations(["a", "b", "c"]))
def test_metrics_do_not_depend_on_the_order_of_flows(order: list[str]) -> None:
    rates = {"a": [1.0, 2, 3, 4], "b": [4.0, 4, 4, 4], "c": [0.0, 1, 0, 1]}
    values = evaluate(run({name: rates[name] for name in order}))
    expected = evaluate(run(rates))
    for name in ("jain_index", "goodput_mbps", "throughput_mbps", "jain_5s_mean"):
        assert values[name] == pytest.approx(expected[name])


def test_no_records_at_all_give_no_numbers_and_no_error(tmp_path: Path) -> None:
    context = {"duration_s": 4, "bottleneck": {"node": "r1", "interface": "r1-eth1", "rate_bps": 8e6}}
    computed = metrics.compute(tmp_path, context)
    assert computed["flows"] == []
    assert {value for value in computed.values() if not isinstance(value, dict | list)} == {None}


def test_mean_rate_of_no_rows_is_unknown() -> None:
    assert mean_mbps(None, "delivered_bytes", Window(0.0, 1.0)) is None
    assert mean_mbps(intervals([]), "delivered_bytes", Window(0.0, 1.0)) is None


def test_metrics_of_a_run_on_disk_keep_to_the_contract(tmp_path: Path) -> None:
    folder = make_results(tmp_path, [Case("medley", 50, 1, flows=2)], duration_s=8.0)
    computed = metrics.compute(
        next(folder.iterdir()),
        {
            "duration_s": 8.0,
            "warmup_s": 4.0,
            "bottleneck": {"node": "r1", "interface": "r1-eth1", "rate_bps": 50e6},
        },
    )
    assert set(computed) == set(REGISTRY)
    assert computed["utilization"] == pytest.approx(1.0, abs=0.01)
    assert computed["goodput_mbps"] == pytest.approx(50 * 948 / 1014, rel=0.01)
    assert 0.5 <= computed["jain_index"] <= 1.0
    assert computed["queue_drops"] == 0
    assert [set(row) for row in computed["flows"]] == [FLOW_CONTRACT] * 2


def test_without_a_bottleneck_the_flows_are_still_measured(tmp_path: Path) -> None:
    folder = make_results(tmp_path, [Case("reno", 50, 1)], duration_s=3.0)
    computed = metrics.compute(next(folder.iterdir()), {"duration_s": 3.0, "bottleneck": None})
    assert computed["utilization"] is None
    assert computed["goodput_mbps"] > 0


def test_a_file_without_a_needed_column_is_named(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    pq.write_table(pa.table({"t_s": [0.0], "flow": ["f1"]}), tmp_path / "records" / "acks.parquet")
    with pytest.raises(RecordsError, match=r"acks\.parquet: no column rtt_us; the file has t_s, flow"):
        metrics.compute(tmp_path, {"duration_s": 1.0})


def test_records_of_another_schema_and_broken_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    file = tmp_path / "records" / "acks.parquet"
    pq.write_table(pa.table({"t_s": [0.0]}).replace_schema_metadata({"warpbed.schema": "9"}), file)
    with pytest.raises(RecordsError, match="schema '9'"):
        metrics.compute(tmp_path, {"duration_s": 1.0})
    file.write_bytes(b"PAR1 cut off")
    with pytest.raises(RecordsError, match="not a readable Parquet file"):
        metrics.compute(tmp_path, {"duration_s": 1.0})


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({}, "duration_s is None"),
        ({"duration_s": "60s"}, "duration_s is '60s'"),
        ({"duration_s": 60, "warmup_s": 60}, "warmup_s 60.0 has to lie between"),
        ({"duration_s": 60, "bottleneck": {"node": "r1"}}, "no 'interface'"),
        ({"duration_s": 60, "bottleneck": {"node": "r1", "interface": "e", "rate_bps": 0}}, "rate_bps is 0"),
    ],
)
def test_a_context_that_makes_no_sense_is_refused(context: dict[str, Any], message: str) -> None:
    with pytest.raises(ContextError, match=message):
        parse_context(context)


def test_names_of_metrics_and_their_parts() -> None:
    assert find("utilization").unit == "1"
    assert find("smoothness_cv.1").name == "smoothness_cv"
    with pytest.raises(UnknownMetricError, match="did you mean utilization"):
        find("utilisation")
    with pytest.raises(UnknownMetricError, match="single number"):
        find("utilization.1")
    with pytest.raises(UnknownMetricError, match=r"smoothness_cv\.<seconds>"):
        find("smoothness_cv")


def test_values_are_found_by_name() -> None:
    values = {
        "utilization": 0.5,
        "smoothness_cv": {"1": 0.2},
        "flows": [{"flow": "a.2", "goodput_mbps": 3.0}],
    }
    assert lookup(values, "utilization") == 0.5
    assert lookup(values, "smoothness_cv.1") == 0.2
    assert lookup(values, "flows.a.2.goodput_mbps") == 3.0
    assert lookup(values, "flows.b.goodput_mbps") is None
    assert lookup({}, "utilization") is None
