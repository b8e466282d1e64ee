# SPDX-License-Identifier: Apache-2.0
"""Arrivals, sizes and periods of every traffic model against their formulas; what is wrong in a file is told.

Goodness of fit by Kolmogorov-Smirnov and χ² at level 0.001, with fixed seeds: a sound model passes on every machine.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from agent.traffic.programs import datagrams, video
from base.errors import SpecError
from plan import draws
from plan.model import Plan, TrafficPlan, from_json
from plan.summary import quantile, spread
from schema import distributions
from testbed.experiments import prepare
from tests import lab

KS_0_001 = 1.9495  # sup|F_n - F| ≤ this / √n, asymptotically, for all but 0.1 % of samples
CHI2_0_001_DF_19 = 43.82

TEMPLATE = """\
warpbed: 1
name: model
title: A model of traffic
duration: DURATION
topology: {name: dumbbell, params: {pairs: 3}}
traffic:
  - {name: t, from: s1, to: d1, ENTRY}
"""


def plan_of(tmp_path: Path, entry: str, duration: str = "3000s", seed: int = 1, more: str = "") -> Plan:
    text = TEMPLATE.replace("ENTRY", entry).replace("DURATION", duration) + more
    return prepare(lab.write(tmp_path, text), seed).plans[0]


def client(plan: Plan) -> TrafficPlan:
    (only,) = [part for part in plan.traffic if part.side == "client"]
    return only


def ks(values: Sequence[float], cdf: Callable[[float], float]) -> float:
    """√n × the largest distance between the sample's distribution and the model's."""
    ordered = sorted(values)
    n = len(ordered)
    far = max(max((i + 1) / n - cdf(x), cdf(x) - i / n) for i, x in enumerate(ordered))
    return far * math.sqrt(n)


def exponential(mean: float) -> Callable[[float], float]:
    return lambda x: 1 - math.exp(-x / mean)


def pareto(mean: float, shape: float) -> Callable[[float], float]:
    smallest = mean * (shape - 1) / shape
    return lambda x: 0.0 if x < smallest else 1 - (smallest / x) ** shape


def gaps(times: Sequence[float]) -> list[float]:
    return [b - a for a, b in itertools.pairwise(times)]


def test_ftp_arrivals_are_exponential_and_lifetimes_pareto(tmp_path: Path) -> None:
    """Yu 2009 s2.3: mean 5 s between arrivals; lifetimes of mean 100 s and shape 1.35; 3000 s. Made 20 times."""
    sent: list[dict[str, float]] = []
    between: list[float] = []
    for seed in range(1, 21):
        plan = plan_of(
            tmp_path, 'kind: transfers, cca: reno, gap: exponential(5s), life: "pareto(100s, 1.35)"', seed=seed
        )
        transfers = client(plan).settings["transfers"]
        sent += transfers
        between += gaps([0.0, *(transfer["start_s"] for transfer in transfers)])
    assert len(between) == pytest.approx(20 * 600, rel=0.05)
    assert ks(between, exponential(5.0)) < KS_0_001
    assert ks([transfer["life_s"] for transfer in sent], pareto(100.0, 1.35)) < KS_0_001


def test_ftp_with_a_count_starts_uniformly_and_has_uniform_sizes(tmp_path: Path) -> None:
    """Yu 2009 s3.4: 500 transfers of 5 to 100 packets, started uniformly in 100 s."""
    entry = 'kind: transfers, cca: reno, count: 500, stop: 100s, size: "uniform(5KB, 100KB)"'
    transfers = client(plan_of(tmp_path, entry)).settings["transfers"]
    starts, sizes = [t["start_s"] for t in transfers], [t["size_bytes"] for t in transfers]
    assert len(transfers) == 500 and starts == sorted(starts)
    assert ks(starts, lambda x: x / 100) < KS_0_001
    assert ks(sizes, lambda x: (x - 5000) / 95_000) < KS_0_001


def test_transfers_choose_their_ends_evenly(tmp_path: Path) -> None:
    entry = "kind: transfers, cca: reno, count: 3000, size: 5KB"
    text = TEMPLATE.replace("ENTRY", entry).replace("DURATION", "100s").replace("to: d1", "to: [d1, d2, d3]")
    plan = prepare(lab.write(tmp_path, text)).plans[0]
    counts = [sum(t["to"] == node for t in client(plan).settings["transfers"]) for node in ("d1", "d2", "d3")]
    assert sum((count - 1000) ** 2 / 1000 for count in counts) < 13.82  # χ², 2 degrees of freedom, level 0.001
    assert {(flow.source, flow.destination) for flow in plan.flows} == {("s1", "d1"), ("s1", "d2"), ("s1", "d3")}


def test_poisson_packets_have_exponential_gaps_and_poisson_counts(tmp_path: Path) -> None:
    """1 Mbit/s of frames of 1014 bytes: 123.3 packets/s; counts in 100 ms against the Poisson distribution by χ²."""
    settings = client(plan_of(tmp_path, "kind: poisson, rate: 1mbit", "400s")).settings
    times = [ns / 1e9 for ns in datagrams.times_ns(settings)]
    rate = 1e6 / 8 / 1014
    assert ks(gaps([0.0, *times]), exponential(1 / rate)) < KS_0_001
    bins = [0] * 4000
    for when in times:
        bins[int(when * 10)] += 1
    mean = rate / 10
    expected = [4000 * math.exp(-mean) * mean**k / math.factorial(k) for k in range(60)]
    low, high = 4, 22  # classes: up to 4, each of 5 … 21, 22 and above
    seen = [sum(b <= low for b in bins), *(bins.count(k) for k in range(low + 1, high)), sum(b >= high for b in bins)]
    model = [sum(expected[: low + 1]), *expected[low + 1 : high], 4000 - sum(expected[:high])]
    assert min(model) > 5 and len(model) == 19
    assert sum((s - m) ** 2 / m for s, m in zip(seen, model, strict=True)) < CHI2_0_001_DF_19


def test_cbr_packets_are_exactly_spaced_on_the_wire(tmp_path: Path) -> None:
    """10 Mbit/s of frames of 1014 bytes: one per 811.2 µs, no drift."""
    settings = client(plan_of(tmp_path, "kind: cbr, rate: 10mbit", "10s")).settings
    times = list(datagrams.times_ns(settings))
    assert times == [round(k * 811_200) for k in range(len(times))]
    assert len(times) == math.ceil(10e9 / 811_200)


def test_a_square_wave_is_on_and_off(tmp_path: Path) -> None:
    """Kato 2012 s5.1.1 (SlowCC): at x seconds for x seconds, then nothing for x."""
    settings = client(
        plan_of(tmp_path, "kind: cbr, rate: 10mbit, start: 400ms, on: 400ms, off: 400ms", "200s")
    ).settings
    periods = settings["periods"]
    assert len(periods) == 250
    for k, (start, end) in enumerate(periods):
        assert start == pytest.approx(0.4 + 0.8 * k) and end == pytest.approx(min(200, 0.8 + 0.8 * k))


def test_pareto_periods(tmp_path: Path) -> None:
    """Yu 2009 ch. 4: busy and idle 500 ms on average; shape 1.5 as ns-2 has it."""
    entry = 'kind: cbr, rate: 500kbit, on: "pareto(500ms, 1.5)", off: "pareto(500ms, 1.5)"'
    busy, idle = [], []
    for seed in range(1, 6):
        periods = client(plan_of(tmp_path, entry, "1000s", seed)).settings["periods"]
        busy += [end - start for start, end in periods[:-1]]
        idle += [b[0] - a[1] for a, b in itertools.pairwise(periods)]
    assert len(busy) > 3000
    for values in (busy, idle):
        assert ks(values, pareto(0.5, 1.5)) < KS_0_001


def test_afifis_reverse_traffic_is_on_in_the_thesis_periods(tmp_path: Path) -> None:
    """Afifi 2014 s7.3: on in [250, 500] and [750, 1000] s."""
    entry = "kind: on_off, cca: reno, connections: 10, start: 250s, on: 250s, off: 250s"
    settings = client(plan_of(tmp_path, entry, "1000s")).settings
    assert settings["periods"] == [[250.0, 500.0], [750.0, 1000.0]] and settings["connections"] == 10


def test_web_pages_have_the_objects_sizes_and_pauses_of_the_file(tmp_path: Path) -> None:
    entry = 'kind: web, cca: cubic, objects: 7, object_size: "pareto(25KB, 1.3)", think: exponential(2s)'
    pages = client(plan_of(tmp_path, entry)).settings["pages"]
    assert {len(page["object_bytes"]) for page in pages} == {7}
    assert ks([page["think_s"] for page in pages], exponential(2.0)) < KS_0_001
    sizes = [size for page in pages for size in page["object_bytes"]]
    assert (
        ks(sizes, lambda x: pareto(25_000, 1.3)(x + 0.5)) < KS_0_001 + 0.1
    )  # whole bytes: half a step at the steep start


def test_probes_come_as_the_file_says(tmp_path: Path) -> None:
    settings = client(plan_of(tmp_path, "kind: packet_pairs, gaps: [0s, 4ms], every: exponential(1s)")).settings
    every = draws.from_plan(settings["every_s"])
    times = list(draws.arrivals(every, 0.0, 3000.0, draws.stream(settings["seed"])))
    assert ks(gaps([0.0, *times]), exponential(1.0)) < KS_0_001
    every = draws.from_plan(client(plan_of(tmp_path, "kind: ping, every: 250ms")).settings["every_s"])
    assert list(draws.arrivals(every, 1.0, 2.0, draws.stream(1))) == [1.0, 1.25, 1.5, 1.75]


def test_starts_are_staggered_or_random_and_ordered_or_shuffled(tmp_path: Path) -> None:
    flows = "".join(f"  - {{name: f{i}, cca: reno, from: s1, to: d1}}\n" for i in range(8))
    text = TEMPLATE.split("traffic:")[0].replace("DURATION", "100s") + "hosts: {overhead: none}\nflows:\n" + flows

    def starts(rule: str, seed: int = 1) -> list[float]:
        return [
            flow.start_s for flow in prepare(lab.write(tmp_path, text + f"starts: [{rule}]\n"), seed).plans[0].flows
        ]

    assert starts("{of: flows, first: 1s, every: 2s}") == [1.0 + 2 * k for k in range(8)]
    shuffled = starts("{of: flows, every: 2s, order: shuffled}")
    assert sorted(shuffled) == [2.0 * k for k in range(8)] != shuffled
    within = starts("{of: all, first: 10s, within: 50s}")
    assert within == sorted(within) and within[0] >= 10 and within[-1] < 60
    assert starts("{of: flows, within: 50s}", 2) != starts("{of: flows, within: 50s}", 3)
    assert starts("{of: [f1, f2], every: exponential(1s)}")[3:] == [0.0] * 5


def test_the_seed_decides_and_entries_do_not_depend_on_one_another(tmp_path: Path) -> None:
    entry = "kind: transfers, cca: reno, gap: exponential(5s), size: exponential(50KB)"
    one, again, other = (plan_of(tmp_path, entry, seed=seed) for seed in (1, 1, 2))
    assert one == again and one != other
    more = plan_of(tmp_path, entry, more="  - {name: u, kind: ping, from: s2, to: d2}\n")
    assert client(one) in more.traffic
    assert from_json(one.to_json()) == one


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("kind: cbrr, rate: 1mbit", "did you mean cbr?"),
        ("rate: 1mbit", "`kind` is required"),
        ("kind: cbr", "rate: is required and missing"),
        ("kind: cbr, rate: 1mbit, pakcet: 1000B", "did you mean packet?"),
        ("kind: cbr, rate: 1mbit, packet: 2000B", "46 to 1500 bytes"),
        ("kind: cbr, rate: 1mbit, on: 1s", "come together"),
        ("kind: cbr, rate: 1mbit, on: 1s, off: 0s", "must be above 0"),
        ("kind: cbr, rate: 1mbit, start: 9s, stop: 8s", "is not after start"),
        ("kind: cbr, rate: 1mbit, start: 20s", "is after the end"),
        ("kind: transfers, cca: reno, size: 5KB", "give `gap`"),
        ("kind: transfers, cca: reno, gap: 1s", "give `size` or `life`"),
        ("kind: transfers, cca: renno, gap: 1s, size: 5KB", "did you mean reno?"),
        ('kind: transfers, cca: reno, gap: 1s, size: "pareto(5KB, 0.9)"', "above 1"),
        ('kind: transfers, cca: reno, gap: 1s, size: "pareto(5KB)"', "is not a distribution"),
        ('kind: transfers, cca: reno, gap: 1s, size: "weibull(5KB, 2)"', "is not a distribution"),
        ('kind: transfers, cca: reno, gap: 1s, size: "uniform(5KB, 5KB)"', "is not above"),
        ("kind: transfers, cca: reno, gap: 1us, size: 5KB", "is the unit right?"),
        ("kind: video, cca: reno, ladder: [2mbit, 1mbit]", "must rise"),
        ("kind: video, cca: reno, buffer: 3s", "does not hold"),
        ("kind: packet_pairs, gaps: []", "at least 1"),
        ("kind: ping, every: 100", "a text is needed"),
        ("kind: ping, every: 0s", "must be above 0"),
        ("kind: ping, packet: 20B", "46 to 1500"),
        ('kind: ping, name: "../../etc/x"', "must be"),
    ],
)
def test_bad_traffic_is_refused_with_place_and_remedy(tmp_path: Path, entry: str, message: str) -> None:
    text = TEMPLATE.replace("ENTRY", entry).replace("DURATION", "10s")
    file = lab.write(tmp_path, text.replace("name: t, ", "") if "name:" in entry else text)
    with pytest.raises(SpecError) as caught:
        prepare(file)
    assert message in str(caught.value)
    assert "experiment.yml:7: traffic.0" in str(caught.value) or "after the end" in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("to: d1", "to: d9"), "no node 'd9'"),
        (("to: d1", "to: s1"), "its own node"),
        (("ENTRY", "kind: ping}\n  - {name: t, kind: ping, from: s1, to: d1"), "is there twice"),
        (("traffic:\n", "starts: [{of: [q], every: 1s}]\ntraffic:\n"), "no flow or traffic 'q'"),
        (("traffic:\n", "starts: [{of: all, first: 99s, every: 1s}]\ntraffic:\n"), "would start at 99 s"),
        (("traffic:\n", "starts: [{of: all, every: 1s}, {of: [t], every: 1s}]\ntraffic:\n"), "starts.0 already"),
        (("traffic:\n", "starts: [{of: all}]\ntraffic:\n"), "give `every`"),
    ],
)
def test_bad_places_are_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    text = TEMPLATE.replace(*change).replace("ENTRY", "kind: ping").replace("DURATION", "10s")
    with pytest.raises(SpecError, match=r"experiment\.yml:[0-9]+: ") as caught:
        prepare(lab.write(tmp_path, text))
    assert message in str(caught.value)


def test_web_servers_of_one_node_each_have_their_algorithm(tmp_path: Path) -> None:
    more = "  - {name: u, kind: video, cca: cubic, from: s1, to: d1}\n"
    plan = plan_of(tmp_path, "kind: web, cca: reno", "10s", more=more)
    assert {(start.own_ports, start.cca) for start in plan.hosts["s1"].starts} == {
        ((5201, 5201), "reno"),
        ((5202, 5202), "cubic"),
    }


def test_playback_stalls_when_the_buffer_runs_dry() -> None:
    """Segments of 2 s at 1, 2 and 9 s: playing from 2 s (two of them), dry at 6 s, three seconds of stall."""
    shown = video.Playback(0.0)
    for count, when in enumerate((1.0, 2.0, 9.0), 1):
        shown.advance(when)
        shown.add(2.0, count, start_after=2)
    shown.advance(10.0)
    assert (shown.startup_s, shown.stalls, shown.stalled_s, shown.played_s) == (2.0, 1, 3.0, 5.0)
    assert shown.buffered_s == 1.0


def test_rules_for_the_video_rate() -> None:
    ladder = [1_000_000, 2_000_000, 4_000_000]
    assert video.rate_rule(ladder, []) == 0
    assert video.rate_rule(ladder, [3e6]) == 1  # 85 % of it is 2.55 Mbit/s
    assert video.rate_rule(ladder, [1e9, 1e6]) == 0  # the harmonic mean is 2.0 Mbit/s, of which 1.7 is usable
    assert video.buffer_rule(ladder, 3.0, 30.0) == 0
    assert video.buffer_rule(ladder, 27.0, 30.0) == 2


def test_quantiles_of_few_values() -> None:
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert spread("rtt", "ms", [])["rtt_p95_ms"] is None
    assert spread("rtt", "ms", [2.0, 1.0])["rtt_mean_ms"] == 1.5


def test_distributions_have_the_means_that_they_say() -> None:
    assert distributions.times("uniform(1s, 3s)").mean == 2.0
    drawn = draws.stream(7)
    values = [distributions.sizes("pareto(10KB, 3)").draw(drawn) for _ in range(200_000)]
    assert sum(values) / len(values) == pytest.approx(10_000, rel=0.01)
