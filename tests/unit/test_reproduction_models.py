# SPDX-License-Identifier: Apache-2.0
"""What the theses' models calculate: the numbers of the catalogues' `derived`, which another program computed, and what is printed."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis import records
from analysis.models import (
    REGISTRY,
    afifi2014,
    ho2008,
    ho2008_rules,
    ho2008_shares,
    kato2012,
    kato2012_shares,
    tokuda2003,
)
from analysis.models.checks import Check
from analysis.reproduction import afifi2014_ns3 as afifi2014_runs
from analysis.reproduction import recorded
from analysis.reproduction import tokuda2003 as tokuda2003_runs
from analysis.reproduction.measured import MEASURED, compares
from analysis.reproduction.outcomes import judged, of_checks
from kernels.reference import medley, medley_rounds
from schema.catalogue import Entry, catalogues
from testbed.reproduction.printed import is_printed
from tests import lab
from tests.calculated import calculated as all_calculated


@functools.cache
def _entries() -> dict[str, Entry]:
    return {one.id: one for thesis in catalogues().values() for one in thesis.entries}


def derived(name: str) -> Any:
    return _entries()[name].derived


def test_tokuda_s_analysis_gives_the_derived_throughputs() -> None:
    for letter, access in zip("abc", tokuda2003.ACCESS_MBPS, strict=True):
        data = derived(f"tokuda2003-fig6{letter}")
        table = data[next(key for key in data if key.startswith("model of s4.2"))]
        for key, buffer in (("buffer = BDP of the link", None), ("buffer = 4167 packets", 4167.0)):
            for row, (delay_ms, reno, fast) in zip(table[key], tokuda2003.figure_6(access, buffer=buffer), strict=True):
                assert row[0] == delay_ms
                assert reno == pytest.approx(row[1], rel=0.01)
                assert fast == pytest.approx(row[2], rel=0.01)


def test_limited_slow_start_takes_the_round_trips_of_its_rule() -> None:
    """RFC 3742 by hand: 7 doublings to 128, above the threshold of 100, then at least 50 and less than 100 packets a round trip."""
    pipe = 10_000
    full, growth = tokuda2003.slow_start(pipe, 0, 100)
    assert 7 + (pipe - 128) / 100 < full <= 7 + (pipe - 128) / 50 + 1
    assert growth == pytest.approx(50, rel=0.01)  # W / floor(W / 50), and W is many times 50
    assert tokuda2003.slow_start(pipe, 0) == (14, 8192)  # 2^14 is the first power of two above 10 000


def test_equal_steps_raise_jain_s_index_as_its_definition_says() -> None:
    assert ho2008.jain([1, 3]) == pytest.approx(16 / 20)  # 4^2 / (2 x 10)
    assert ho2008.jain([2, 4]) == pytest.approx(36 / 40)


def test_ho_s_rounds_give_the_derived_decreases_and_bounds() -> None:
    wanted = derived("ho2008-s4.3-example")["by eqs 4.4, 4.6, 4.7"]
    assert ho2008.decreases(ho2008.MU_D, 8) == list(zip(wanted["t"], wanted["W"], strict=True))
    assert ho2008.decreases_by_rounds(ho2008.MU_D, 8) == list(zip(wanted["t"], wanted["W"], strict=True))
    bounds = derived("ho2008-eq4.11")["t1 = 20"]
    assert ho2008.bounds([(20, 382)]) == [(20, bounds["lower_packets"], bounds["upper_packets"])]
    times = derived("ho2008-fig4.4")["model, first t_j with W >= mu d"]
    for kbit, baserrts in zip(times["bdp_kbit"], times["baserrts"], strict=True):
        mu_d = kbit * 1000 / 8000
        assert next(t for t, W in ho2008.decreases(mu_d, 60) if mu_d <= W) == baserrts


def test_medley_s_mean_queue_is_that_of_little_s_law() -> None:
    """Arrivals times their mean wait: W packets a round, each as long as the round is longer than BaseRTT."""
    waits = length = 0.0
    for now in medley_rounds.rounds(62.5, 250):
        waits += now.W * (now.long_rtts - 1)
        length += now.long_rtts
        if length >= 1000:
            break
    assert ho2008_rules.mean_queue(62.5, 250, 1000) == pytest.approx(waits / length)
    assert ho2008_rules.mean_queue(1e6, 250, 20) < 0.01  # 400 packets on a path of a million


def test_windows_under_random_loss_are_the_derived_ones() -> None:
    """Within a fifth up to 3 %, where a window's least size does not decide."""
    table = derived("ho2008-fig5.16")["model: windows per round trip, no timeouts, no limit by the path"]
    for percent, sack, own, fast, *_ in table["rows"][:4]:
        for rule, window in (
            (ho2008_rules.reno_round, sack),
            (ho2008_rules.medley_round, own),
            (ho2008_rules.fast_round, fast),
        ):
            assert ho2008_rules.loss_limited(rule, percent / 100) == pytest.approx(window, rel=0.2)


def test_shares_of_a_buffer_follow_from_the_equations() -> None:
    """A full link, FAST's fixed point W (1 - BaseRTT / RTT) = alpha, and SACK's mean window of three quarters of its largest."""
    for m in ho2008_shares.MIXES:
        for buffer in ho2008_shares.BUFFERS:
            found = ho2008_shares.shares(m, buffer)
            carried = m * found.fast + (ho2008_shares.FLOWS - m) * found.sack
            assert 0.85 * ho2008_shares.BDP < carried < 1.000001 * ho2008_shares.BDP
    deep = ho2008_shares.shares(10, 3000)
    longer = deep.queue / ho2008_shares.BDP  # RTT - 1, so that W / RTT is alpha over it
    assert deep.fast == pytest.approx(ho2008_shares.ALPHA / longer, rel=0.05)
    assert ho2008_shares.fast(200.0, 2.0, False) == 200.0  # 200 (1 - 1/2) = 100
    windows = [20.0]
    while windows[-1] < 40:
        windows.append(ho2008_shares.sack(windows[-1], 1.0, False))
    assert sum(windows) / len(windows) == 30
    assert ho2008_shares.sack(windows[-1], 1.0, True) == 20


def test_ftat_s_theorem_gives_the_derived_examples() -> None:
    rows = next(part for part in derived("afifi2014-eq6.1") if "rows" in part)["rows"]
    for B, rtt_s, p, T in rows:
        assert afifi2014.throughput(B, p, rtt_s) == pytest.approx(T, abs=0.06)


def test_westwood_s_count_by_hand() -> None:
    """Ten packets, the first and the fifth lost: eight duplicates, then ACKs for four and for six. Table 6 counts 8 + 1 + (6 - 4) = 11."""
    steps = afifi2014.acks_of_window(10, [0, 4])
    assert steps == [0] * 8 + [4, 6]
    assert afifi2014.counted(steps) == 11
    assert afifi2014.counted(steps, own=1) == 10
    assert afifi2014.counted(afifi2014.acks_of_window(10, [2])) == 10


def test_a_window_is_judged_once_its_start_is_over() -> None:
    """Slow start reaches 96 packets, and its first recoveries are still above the bound; a path without a loss says nothing."""
    windows = [1, 8, 40, 96, 48, 52, 26, 13, 17, 9, 12]
    assert afifi2014_runs.settled_top([(float(t), float(w)) for t, w in enumerate(windows)], 18.7) == 17
    assert afifi2014_runs.settled_top([(float(t), float(w)) for t, w in enumerate([*windows, 30])], 18.7) == 30
    assert afifi2014_runs.settled_top([(0.0, 1.0), (1.0, 40.0)], 18.7) is None


def test_a_share_of_the_link_is_an_eleventh() -> None:
    """Eleven flows share 100 Mbit/s: 100 / 11 = 9.09 Mbit/s each. Of the flows of a run only the one under test counts."""

    def outcome(*rates: float) -> str:
        runs: list[Any] = [
            SimpleNamespace(
                counted=True,
                params={"cca": cca},
                metrics={"flows": [{"flow": "f1", "goodput_mbps": rate}, {"flow": "same", "goodput_mbps": 9.0}]},
            )
            for cca, rates_of in (("reno", rates), ("ftat", (50.0, 50.1)))
            for rate in rates_of
        ]
        compare = MEASURED["afifi2014-fig21", "afifi2014-fig18-short"][2]
        (evidence,) = of_checks(list(compare(_entries()["afifi2014-fig21"], runs)), "")
        return evidence.held

    assert outcome(8.9, 9.0, 8.95) == "holds"
    assert outcome(9.2, 9.3, 9.25) == "contradicted"
    assert outcome(8.0, 10.0, 9.0) == "undecided"


def test_the_reno_hosts_total_leaves_out_the_fast_host_and_the_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two slow flows with 1 and 3 MB in each of the seconds 10 to 20: 4 MB/s are 32 Mbit/s. What came before counts nowhere."""
    t_s = [float(t) for t in range(21)]
    per_second = {"fast": 9e6, "r1": 1e6, "r2": 3e6}
    columns = {
        (flow,): {"t_s": t_s, "delivered_bytes": [9e9 if t <= 10 else amount for t in t_s]}
        for flow, amount in per_second.items()
    }
    monkeypatch.setattr(records, "collect", lambda *_: columns)
    run: Any = SimpleNamespace(path=tmp_path, counted=True, seed=1, params={"cca": "reno"}, spec={"warmup": "10s"})
    assert tokuda2003_runs.slow_mbps(run) == pytest.approx(32)


def test_medley_s_cycle_is_the_table_s() -> None:
    assert ho2008.cycle(6) == [0, -1, -2, 0, 4, 10, 18]  # W + a^2 - 3a with a = 6


@pytest.fixture(scope="module")
def calculated() -> dict[str, list[Check]]:
    return all_calculated(_entries())


def test_every_calculation_names_parts_that_its_entry_has(
    calculated: dict[str, list[Check]],
) -> None:
    for name, checks in calculated.items():
        one = _entries()[name]
        for check in checks:
            assert check.part in one.parts(), (name, check.part)
            assert check.says


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from numbers(part)


def test_what_a_check_calls_published_is_printed(calculated: dict[str, list[Check]]) -> None:
    """Of calculations, and of those comparisons with runs that the record has; of a printed formula (W/2) the value for a W of ours."""

    def is_formula(name: str, part: str) -> bool:
        printed = _entries()[name].published.numbers
        return isinstance(printed, dict) and str(printed.get(part)).startswith("W/")

    found = dict(calculated)
    for thesis in catalogues():
        for kept in recorded.read(lab.ROOT / "docs/reproduction", thesis).values():
            for name, checks in kept.checks.items():
                found[name] = [*found.get(name, []), *checks]
    published = [
        (name, value)
        for name, checks in found.items()
        for check in checks
        if check.kind == "value" and not is_formula(name, check.part)
        for value in numbers(check.published)
    ]
    assert len(published) > 50
    assert [(name, value) for name, value in published if not is_printed(abs(value), _entries()[name])] == []


def test_only_these_calculations_contradict(calculated: dict[str, list[Check]]) -> None:
    wrong = {name: [check.explained for check in checks if not check.holds] for name, checks in calculated.items()}
    assert {name for name, found in wrong.items() if found} == {
        "ho2008-s4.3-example",
        "ho2008-s5.2.2-real-time",  # the thesis' rules against its figures
        "ho2008-fig5.16",
        *(f"ho2008-fig{figure}" for figure in ho2008_shares.MIXES.values()),
        "ho2008-s5.5-summary",
        "tokuda2003-fig6-order",
        "tokuda2003-abstract-30-percent",  # the timeouts that Linux does not have
        "afifi2014-claim6.2",
        "afifi2014-tab3",  # Linux lets the window fall in the course of a recovery
        "kato2012-tab5.1",  # what our module costs, by the benchmark
        "kato2012-tab5.2",
        "kato2012-claim5.2.3",
        "kato2012-claim5.1.2",  # the listing, and our module, against eq 3.1
        "kato2012-fig5.8",
        "kato2012-fig5.13",  # the thesis' rules on its longest path
        "kato2012-fig5.14",
        "kato2012-fig5.15",
        "afifi2014-fig15",  # ns-3 of today has another Westwood+ than the thesis', and larger windows
        "afifi2014-fig27",
        "afifi2014-fig29",
        "afifi2014-tab6",  # two losses in a window: a packet too many
        "afifi2014-tab7",  # Linux' westwood has another filter than the Westwood+ of the thesis
    }
    unexplained = {name for name, found in wrong.items() if not all(found)}
    gain = {
        "kato2012-claim5.1.2",
        "kato2012-fig5.8",
    }  # eq 3.1 as it stands gives it in the calculation, and not beside TCP
    simulator = {"afifi2014-fig15", "afifi2014-fig27", "afifi2014-fig29"}
    assert unexplained == {"kato2012-tab5.1", "kato2012-tab5.2", "kato2012-claim5.2.3"} | gain | simulator


def test_a_model_that_computes_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(medley, "increment", lambda *_, **__: 1.0)
    checks = list(REGISTRY["ho2008-tab4.1"](_entries()["ho2008-tab4.1"]))
    judgement = judged(_entries()["ho2008-tab4.1"], list(of_checks(checks, "analysis/models/ho2008.py")))
    assert judgement.outcome == "contradicts"
    assert judgement.failed


def test_reno_and_ttfwc_on_a_path_that_nobody_fills() -> None:
    """Reno from 100 packets on: 625 rounds have 100 + 312 on average, 257 500 packets.

    TFWC stays flat until the open interval raises the mean: after one loss that is inverse(100) = 6685 packets (100^2 / 1.5, and what the
    timeouts add), 67 rounds of 100. Then the mean rises by one per 6 packets, and with it eq 2.1's sqrt(1.5 ALI): after k rounds ALI is
    6685 + 100 k / 6, so that 558 rounds later the window is about sqrt(1.5 (6685 + 15 000)) = 180 with windows that grow on the way. So
    the mean lies between 100 and 180 packets, and the ratio to Reno's 412 between 0.24 and 0.44.
    """
    assert 0.24 < kato2012.beside_reno(0.0, 100) < 0.44
    assert kato2012.beside_reno(0.0, 100) == kato2012.beside_reno(
        0.4, 100
    )  # a first loss is none after which anything is added
    assert kato2012.beside_reno(0.9, 100) > kato2012.beside_reno(0.0, 100)  # 3 packets instead of 6


def test_runs_of_several_experiments_are_compared_by_their_metrics_only() -> None:
    with pytest.raises(ValueError, match=r"kato2012-fig5\.6: runs of several experiments"):
        compares("kato2012-fig5.6", ("a", "b"), "1")


def test_what_a_full_link_adds_to_highspeed_is_what_timeouts_cost_it() -> None:
    """Catalogue's `derived` of Fig 6(c), another program's: at 5 ms Reno has 1.43 and HighSpeed 747 of 1000 Mbit/s."""
    assert tokuda2003.left_to_gain(timeouts=True) == pytest.approx(998.57 / 747 - 1, abs=0.001)
    assert tokuda2003.left_to_gain(timeouts=False) < 0.15


def test_who_loses_in_a_full_queue_decides_what_ttfwc_gets_beside_reno() -> None:
    """Kato 2012 s5.2.2: about as much. With losses drawn among all packets flows lose in proportion to what they send, as eq 2.1 has it."""
    drawn = [kato2012_shares.share_of_reno(0.0, 0.016, seed, added_only=False) for seed in (1, 2)]
    added = [kato2012_shares.share_of_reno(0.0, 0.016, seed, added_only=True) for seed in (1, 2)]
    assert all(0.8 <= ratio <= 1.25 for ratio in drawn)
    assert all(ratio > 3 for ratio in added)


def test_an_explaining_check_decides_nothing() -> None:
    entry = _entries()["kato2012-fig5.16"]
    run = Check("1", "runs", holds=False, kind="order")
    why = Check("1", "why", holds=True, kind="order", explains=True)
    assert [judged(entry, list(of_checks(checks, ""))).word for checks in ([run], [run, why], [why])] == [
        "contradicts, unexplained",
        "contradicts, explained",
        "not bound yet",
    ]


def test_one_explanation_is_enough_by_all_that_it_says_of_the_part() -> None:
    entry = _entries()["kato2012-fig5.16"]
    run = of_checks([Check("1", "runs", holds=False, kind="order")], "runs.yml")
    shows, fails = (Check("1", "why", holds=holds, kind="order", explains=True) for holds in (True, False))
    wrong = list(run)
    words = [
        judged(entry, [*wrong, *of_checks(first, "a.yml"), *of_checks(second, "b.yml")]).word
        for first, second in (([shows], [fails]), ([shows, fails], []), ([fails], [shows, shows]), ([fails], [fails]))
    ]
    assert words == ["contradicts, explained", "contradicts, unexplained"] * 2
