# SPDX-License-Identifier: Apache-2.0
"""Runs beside a model that no formula of an experiment file can say: of each entry the experiment, the parts, and what is compared."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence

from analysis import records
from analysis.models import ho2008
from analysis.models.checks import Check
from analysis.results import Run, quantity
from kernels.reference.medley_queue import shared
from schema.catalogue import Entry

Comparison = Callable[[Entry, Sequence[Run]], Iterator[Check]]
Table = dict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...], Comparison]]
MEASURED: Table = {}
"""(entry, first experiment) → (names of the experiments, parts, function of the entry and the experiments' runs)"""
EXPLAINED: Table = {}
"""The same for experiments in which one thing is changed: what holds there explains a part that another experiment contradicts."""
BY_METRICS: set[Comparison] = set()
"""Functions that read nothing but metrics that the experiment names: runs of the record will do."""

FRAME_BITS = 1000 * 8
"""A packet of the thesis on a link; the experiments whose runs are read here count Ethernet's header within it."""
ACK_FRAME_BITS = 54 * 8
CLOSE = 0.10
"""How far "close" and "very little" may be: ours."""
LEAST_RTTS = 2
"""A tenth of a short climb is less than the round trips in which a connection begins: so many are let pass (ours)."""


def compares(
    entry: str, experiments: str | tuple[str, ...], *parts: str, by_metrics: bool = False
) -> Callable[[Comparison], Comparison]:
    """experiments: more than one where a figure speaks of runs that no single file can have, and by_metrics only"""
    return _registered(MEASURED, entry, experiments, parts, by_metrics)


def explains(
    entry: str, experiments: str | tuple[str, ...], *parts: str, by_metrics: bool = False
) -> Callable[[Comparison], Comparison]:
    """experiments: first the one in which something is changed, then those that its runs are held against"""
    return _registered(EXPLAINED, entry, experiments, parts, by_metrics)


def _registered(
    table: Table,
    entry: str,
    experiments: str | tuple[str, ...],
    parts: tuple[str, ...],
    by_metrics: bool,
) -> Callable[[Comparison], Comparison]:
    names = (experiments,) if isinstance(experiments, str) else experiments
    if len(names) > 1 and not by_metrics:
        raise ValueError(f"{entry}: runs of several experiments are compared by their metrics only")

    if (entry, names[0]) in table:
        raise ValueError(f"{entry}: {names[0]} is compared twice")

    def register(function: Comparison) -> Comparison:
        table[entry, names[0]] = (names, parts, function)
        if by_metrics:
            BY_METRICS.add(function)
        return function

    return register


Compared = tuple[tuple[str, ...], tuple[str, ...], Comparison, bool]
"""(experiments, parts, function, whether it explains)"""


def compared(entry: str, experiment: str) -> Iterator[Compared]:
    """What holds the experiment's runs against the entry; of several experiments, the first speaks for all."""
    for table in (MEASURED, EXPLAINED):
        if (entry, experiment) in table:
            yield *table[entry, experiment], table is EXPLAINED


def windows(run: Run) -> list[tuple[float, float]]:
    """(s since the first ACK of data, packets) of the first flow, one pair for each new value of its window (tcp_probe)."""
    parts = records.collect(run.path / "records" / "sockets.parquet", ["flow"], ["t_s", "cwnd_packets"])
    if not parts:
        return []
    columns = next(iter(parts.values()))
    samples: list[tuple[float, float]] = []
    for t_s, cwnd in zip(columns["t_s"], columns["cwnd_packets"], strict=True):
        if not samples or cwnd != samples[-1][1]:
            samples.append((float(t_s), float(cwnd)))
    return [(t_s - samples[0][0], cwnd) for t_s, cwnd in samples]


def peaks(values: Sequence[float]) -> list[float]:
    """Those after which a falling begins."""
    return [b for a, b, c in zip(values, values[1:], values[2:], strict=False) if a < b > c]


def base_rtt_s(rate_bps: float) -> float:
    """d as s4.3 has it: 100 ms, and the time in which the bottleneck sends a packet and an ACK (here with Ethernet's 14 bytes)."""
    return 0.1 + (FRAME_BITS + ACK_FRAME_BITS) / rate_bps


@compares("ho2008-fig4.2", "ho2008-fig4", "1")
def _figure_4_2(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    """The windows at which Medley decreases, in the run on 50 Mbit/s and in the model with the thesis' mu d."""
    for run in runs:
        if run.counted and run.params.get("rate") == "50mbit" and run.seed == 1:
            model = [W for _, W in ho2008.decreases(ho2008.MU_D, 12)]
            here = peaks([cwnd for _, cwnd in windows(run)])[: len(model)]
            apart = [abs(a / b - 1) for a, b in zip(here, model, strict=False)]
            words = "windows at the first twelve decreases at 50 Mbit/s; beside them the model's"
            close = len(here) == len(model) and max(apart) <= CLOSE / 2
            yield Check("1", words, close, model, here, "order", "within 5 % (ours)")


@explains("ho2008-fig4.2", "ho2008-fig4-real", "1")
def _figure_4_2_in_real_numbers(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    """The same with Delta and Gamma as real numbers, as chapter 4's equations have them."""
    for check in _figure_4_2(entry, runs):
        yield dataclasses.replace(check, says=f"Delta and Gamma as real numbers: {check.says}", explains=True)


@compares("ho2008-fig4.4", "ho2008-fig4", "1")
def _figure_4_4(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    """BaseRTTs until the window is the path's, in each run and by the rounds of the model."""
    seen = [one for run in runs if run.counted and run.seed == 1 and (one := climb(run)) is not None]
    known_late = all(_close(here, late) for _, here, _, late in seen)
    reason = "within a tenth or two BaseRTTs (ours)"
    for mu_d, here, model, late in seen:
        words = f"{mu_d * 8:.0f} kbit: BaseRTTs until the window is {mu_d:.0f} packets"
        why = (
            f"{words}: {late:.1f} by the rules where Delta and Gamma are whole packets, and a round is judged by the RTTs that the sender "
            f"has seen by its end, those of the round before; eq 4.2 takes the round's own. So all {len(seen)} paths are {reason}"
        )
        holds = _close(here, model)
        yield Check("1", words, holds, round(model, 1), round(here, 1), "order", reason, why if known_late else "")


def _close(here: float, model: float) -> bool:
    return abs(here - model) <= max(CLOSE * model, LEAST_RTTS)


def climb(run: Run) -> tuple[float, float, float, float] | None:
    """(mu d, BaseRTTs until the window is as large in the run, in chapter 4's rounds, and in these in whole packets with late RTTs)."""
    rate = quantity(run.params.get("rate"))
    if rate is None:
        return None
    d = base_rtt_s(rate)
    mu_d = rate / FRAME_BITS * d
    full = next((t_s for t_s, cwnd in windows(run) if cwnd >= mu_d), None)
    model, late = ho2008.convergence_baserrts(mu_d), ho2008.convergence_baserrts(mu_d, late=True, whole_packets=True)
    return None if full is None or model is None or late is None else (mu_d, full / d, model, late)


LEVEL_PACKETS = 3
"""A tenth of the buffer: how far the largest backlog may be above the mean of a queue that is held level (ours)."""


@compares("ho2008-s1.2-delay-vs-loss", "ho2008-s1_2-delay", "1", "3")
def _delay_against_loss(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    """How much two flows of a kind let the queue swing, and what the RTTs do to Reno's shares."""
    for run in runs:
        kinds = {run.params.get("near"), run.params.get("far")}
        most, mean = run.metrics.get("queue_max_packets"), run.metrics.get("queue_mean_packets")
        if not run.counted or len(kinds) != 1 or most is None or not mean:
            continue
        loss_based = kinds == {"reno"}
        words = f"{run.params['near']}, seed {run.seed}: largest queue less its mean, packets"
        reason = f"{'above' if loss_based else 'at most'} {LEVEL_PACKETS} (ours)"
        yield Check(
            "1", words, (most - mean > LEVEL_PACKETS) is loss_based, None, round(most - mean, 1), "order", reason
        )
        flows = {flow["flow"]: flow for flow in run.metrics.get("flows", ())}
        near, far = flows.get("near"), flows.get("far")
        if loss_based and near and far and near["rtt_mean_ms"] and far["goodput_mbps"]:
            goodputs, rtts = near["goodput_mbps"] / far["goodput_mbps"], far["rtt_mean_ms"] / near["rtt_mean_ms"]
            words = f"seed {run.seed}: goodput of the nearer flow over that of the farther; asked: the ratio of their mean RTTs"
            reason = "within a factor of two (ours)"
            yield Check(
                "3", words, rtts / 2 <= goodputs <= rtts * 2, round(rtts, 2), round(goodputs, 2), "order", reason
            )


@functools.cache
def _three_flows_by_the_rules(length_s: float) -> tuple[float, float]:
    """Mean queue, packets, of thm2.yml's path: with Delta and Gamma as real numbers, and in whole packets."""
    real, whole = (shared([0.1] * 3, 1e7 / FRAME_BITS, 1000, length_s, whole_packets=one) for one in (False, True))
    return real.queue_mean, whole.queue_mean


@explains("ho2008-thm2", "ho2008-thm2", "1")
def _three_flows(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    """The queue of three flows in a buffer that is not full by the end, beside the rules alone, packet by packet."""
    for run in (run for run in runs if run.counted and run.params.get("buffer") == "1000p"):
        real, rounded = _three_flows_by_the_rules(run.timing["virtual_s"])
        here = run.metrics["queue_mean_packets"]
        words = (
            f"seed {run.seed}: mean queue of three flows, packets; beside it that of the rules of s3.2.3 alone. Where Delta and Gamma are "
            f"real numbers, so that the proof's cycle of -1, -1 and +2 does not come about, it is {real:.0f}"
        )
        holds = max(here, rounded) < real / 5
        yield Check(
            "1",
            words,
            holds,
            round(rounded, 1),
            round(here, 1),
            "order",
            "both below a fifth of it (ours)",
            explains=True,
        )


LARGER_BUFFER = "ho2008-fig5_12-buffer-short"


def _baserrts(run: Run) -> float | None:
    """BaseRTTs of a run's adaptation to the doubled bandwidth, as figures 5.5 and 5.8 count; the metric counts mean RTTs."""
    time, flows = (run.metrics.get("adaptation_rtts") or {}).get("2"), run.metrics.get("flows") or ()
    rtts = next(((flow.get("rtt_mean_ms"), flow.get("rtt_min_ms")) for flow in flows if flow.get("flow") == "f1"), None)
    return None if time is None or rtts is None or not all(rtts) else float(time * rtts[0] / rtts[1])


@explains("ho2008-fig5.12", (LARGER_BUFFER, "ho2008-fig5_11-short"), "1", "3", by_metrics=True)
def _in_a_larger_buffer(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    """How soon Medley fits a doubled bandwidth where the buffer holds all, beside the other three."""
    counted = [run for run in runs if run.counted]
    for run in counted:
        if run.experiment != LARGER_BUFFER:
            continue
        here = _baserrts(run)
        alike = [
            one for one in counted if one.experiment != LARGER_BUFFER and one.params.get("rate") == run.params["rate"]
        ]
        times = {str(one.params["cca"]): _baserrts(one) for one in alike if one.params["cca"] != "medley"}
        others = {name: time for name, time in times.items() if time is not None}
        if here is None or not others:
            continue
        said = ", ".join(f"{name} {time:.1f}" for name, time in sorted(others.items()))
        words = f"{run.params['rate']}: BaseRTTs until Medley's window fits, buffer of 1000 packets; the others: {said}"
        for part in ("1", "3"):
            yield Check(
                part, words, here < min(others.values()), None, round(here, 1), "order", "before all", explains=True
            )
