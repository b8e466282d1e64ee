# SPDX-License-Identifier: Apache-2.0
"""benchmarks.ns2: what is asked of ns-2, the table, and its place in docs/reproduction.md."""

from __future__ import annotations

import json
import shutil
import statistics
from pathlib import Path

import pytest

from analysis.models import REGISTRY, simulator, yu2009_graphs, yu2009_ns2, yu2009_spm
from base.cache import sha256_of
from benchmarks import ns2, ns2_graphs, reproduction_page
from benchmarks.recorder import Recorder, digest_of
from kernels.reference import spm
from schema.catalogue import catalogues
from tests import lab

TOTALS = {
    "fig2.11": ("2", "numbers"),
    "fig2.12": ("2", "numbers"),
    "fig2.14": ("2",),
    "fig2.15": ("2",),
    "fig2.16": ("2",),
    "claim2.7": ("4",),
}
"""Entries → the parts that say that MISS and JS deliver less in all than Reno on graphs."""
STAND_IN = """#!/bin/sh
echo "$@" >>"{asked}"
echo "$3"      # the seed
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in place of ns-2, and the file with what it was called with."""
    program, file = tmp_path / "ns", tmp_path / "asked"
    program.write_text(STAND_IN.format(asked=file))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return file


def test_a_row_has_the_thesis_window_and_ns2s_means(asked: Path) -> None:
    lines = list(ns2.windows(ns2.asked, 3, 1, (25, 50)))
    assert [line.split(" | ")[:3] for line in lines[2:]] == [
        ["| 25", "62.8", "2.0 (1.0 to 3.0)"],
        ["| 50", "218.9", "2.0 (1.0 to 3.0)"],
    ]
    calls = asked.read_text().splitlines()
    assert len(calls) == 3 * 2 * 2
    assert calls[0] == f"{ns2.PARKING_LOT} 25 1 32 0.0 500"


def test_a_row_has_what_a_start_up_to_a_threshold_sends_again(asked: Path) -> None:
    """The stand-in prints a window, and the seed."""
    program = asked.parent / "ns"
    program.write_text(program.read_text().replace('echo "$3" ', 'echo 584.1 "$3" '))
    lines = list(ns2.held(ns2.asked, 2, 1))[2:]
    assert lines[0] == "| 25 | Reno | 32.0 | 2 of 2 | 1 to 2 | 2 of 2 | 1 to 2 |"
    assert lines[-1].startswith("| 100 | BWE | 694.2 | ")
    assert asked.read_text().splitlines()[0] == f"{ns2.PARKING_LOT} 25 1 32 0.0 500 32.0 15"


def test_a_row_has_what_spm_estimates_by_each_reading(asked: Path) -> None:
    """Three starts at 0.45 s and y0 = 1 ms. In the first all gaps come out as they went in: 450 packets. In the second they come out as
    0.9 x + 1, of which none qualifies: 32, 45 (at 10 ms) or 112 (at 4 ms). In the third the twelfth pair is lost: 32. A mean window."""
    starts = [[*spm.INPUT_GAPS * 4][:14], [0.9 * x + 1 for x in spm.INPUT_GAPS * 4][:14], [1.0] * 11 + [-1000.0] * 3]
    printed = [number for gaps in starts for number in (0.45, 0.001, *(gap / 1000 for gap in gaps))]
    program = asked.parent / "ns"
    program.write_text(program.read_text().replace('echo "$3" ', f"echo {' '.join(map(str, printed))} 62.8 "))
    cells = " | ".join(["171 ± 241", "176 ± 238", "198 ± 222"] * 2)
    assert list(ns2.pairs(ns2.asked, 1, 1, (25,)))[2:] == [f"| 25 | 57.0 ± 55.0 | {cells} |"]
    assert asked.read_text().splitlines()[0] == f"{ns2.PAIRS} 25 1 32 0.0 500 10"


def test_a_row_has_what_transfers_deliver(asked: Path) -> None:
    """The stand-in prints the third of its arguments, the seed; ns-2 prints connections first."""
    program = asked.parent / "ns"
    program.write_text(program.read_text().replace('echo "$3" ', 'echo 600 "$3" "$4" '))
    assert list(ns2.transfers(ns2.asked, 2, 1, (5, 40)))[2:] == [
        "| 5 ms | 2 | 5 | 2 | 5 |",
        "| 40 ms | 2 | 40 | 2 | 40 |",
    ]


def test_a_row_has_what_starts_deliver_over_reno(asked: Path) -> None:
    """The stand-in delivers a number of packets by the start: 100 for Reno, 98 for JS, 104 and 103 for the others."""
    program = asked.parent / "ns"
    known = 'case "$8" in reno) echo 1 1 100;; js) echo 1 1 98;; liss) echo 1 1 104;; miss) echo 1 1 102;; *) echo 1 1 103;; esac'
    program.write_text(program.read_text().replace('echo "$3" ', known))
    row = " | ".join(["1.040 to 1.040", "1.030 to 1.030", "1.020 to 1.020", "0.980 to 0.980"] * 2)
    assert list(ns2.starts(ns2.asked, 2, 1, (5,)))[2:] == [f"| 1.35 | 5 ms | {row} |", f"| 1.05 | 5 ms | {row} |"]
    calls = asked.read_text().splitlines()
    assert len(calls) == 2 * 2 * 5 * 2
    assert calls[0] == f"{ns2.STAR} 20 1 5 0.0 3000 1.35 reno"


def test_a_row_has_what_starts_deliver_on_graphs_over_reno(asked: Path) -> None:
    """The stand-in delivers in all 100 packets times the graph with Reno, 97 with MISS, 101 with JS; early ones twice as many with JS."""
    program = asked.parent / "ns"
    known = 'case "$9" in reno) echo 1 5 $(($3 * 100)) 0;; miss) echo 1 5 $(($3 * 97)) 0;; *) echo 1 10 $(($3 * 101)) 0;; esac'
    program.write_text(program.read_text().replace('echo "$3" ', known))
    lines = list(ns2.graphs(ns2.asked, 2, 1))
    cells = ["1.000 (1.000 to 1.000)", "0.970 (0.970 to 0.970)", "2.000 (2.000 to 2.000)", "1.010 (1.010 to 1.010)"]
    assert lines[0] == "| nodes | length | MISS, first 5 s | MISS, in all | JS, first 5 s | JS, in all |"
    assert lines[2:] == [
        f"| {nodes} | {length} | {' | '.join(cells)} |" for nodes, length in ((200, "1000 s"), (600, "300 s"))
    ]
    calls = asked.read_text().splitlines()
    assert len(calls) == 2 * 3 * 2
    assert calls[0] == f"{ns2.GRAPH} 200 1 10 1 0.0 1000 1.0 reno"


def test_ns2_reads_the_graphs_and_the_ends_of_the_traffic_from_the_experiments() -> None:
    """200 nodes and a tree at least; the cross traffic of 200 nodes starts in 33 s, that of 600 in 30."""
    for nodes, cross in ((200, "cross 33 1"), (600, "cross 100 0.3")):
        words = [line.split() for line in ns2_graphs.lines(nodes, 1).splitlines()]
        links = [word for word in words if word[0] == "link"]
        names = {name for _, a, b, _ in links for name in (a, b)}
        assert len(names) == nodes and len(links) >= nodes - 1
        assert all(1e-3 <= float(delay) <= 0.05 for *_, delay in links)
        ends = {word[0]: word[1:] for word in words if word[0] != "link"}
        assert [*ends] == ["server", "clients", "cross", "from", "to"] and f"cross {' '.join(ends['cross'])}" == cross
        assert {*ends["server"], *ends["clients"], *ends["from"], *ends["to"]} <= names
    assert ns2_graphs.lines(200, 1) != ns2_graphs.lines(200, 2)


@pytest.mark.parametrize(("less", "holds"), [(0.0, True), (0.04, False)])
def test_a_total_on_graphs_in_ns2_explains_a_contradiction_or_does_not(
    monkeypatch: pytest.MonkeyPatch, less: float, holds: bool
) -> None:
    def numbers(_script: str, _nodes: int, graph: int, *others: float | str) -> list[float]:
        return [600, 1, 1000 * graph * (1 if others[-1] == "reno" else 1.002 - less + graph / 1000), 5]

    monkeypatch.setattr(simulator, "numbers", numbers)
    yu2009_graphs.over_reno.cache_clear()
    checks = {name: list(REGISTRY[f"yu2009-{name}"](catalogues(lab.ROOT)["yu2009"].entries[0])) for name in TOTALS}
    yu2009_graphs.over_reno.cache_clear()
    for name, part in TOTALS.items():
        assert {(one.part, one.holds, one.explains) for one in checks[name]} == {(one, holds, True) for one in part}


def test_what_is_recorded_is_not_asked_again_unless_the_script_has_changed(asked: Path, tmp_path: Path) -> None:
    record = tmp_path / "ns2.json"
    for _ in range(2):
        assert Recorder(record, ns2.SCRIPTS, ns2.asked)(ns2.STAR, 20, 7, 5) == [7]
    assert asked.read_text() == f"{ns2.STAR} 20 7 5\n"
    assert simulator.read(record)[ns2.STAR.name] == {"20 7 5": [7]}
    assert digest_of(ns2.PAIRS, ns2.SCRIPTS[ns2.PAIRS]) != sha256_of(ns2.PAIRS), "what a script reads counts as well"
    record.write_text(record.read_text().replace(sha256_of(ns2.STAR), sha256_of(ns2.PARKING_LOT)))
    assert simulator.read(record)[ns2.STAR.name]
    Recorder(record, ns2.SCRIPTS, ns2.asked)(ns2.PARKING_LOT, 25, 1)
    assert simulator.read(record)[ns2.STAR.name] == {}


def test_the_held_thresholds_are_those_of_table_4_1() -> None:
    numbers = {one.id: one for one in catalogues(lab.ROOT)["yu2009"].entries}["yu2009-tab4.1"].published.numbers
    assert isinstance(numbers, list)
    for rate, thresholds in yu2009_ns2.HELD.items():
        (values,) = (row for row in numbers[0]["rows"] if row[0] == rate)
        row = dict(zip(numbers[0]["columns"], values, strict=True))
        printed = {"Reno": 32, **{name: row[f"{name}_avg"] for name in ("PaSt", "SPM", "BWE", "Hoe")}}
        printed["BWE less a deviation"] = pytest.approx(row["BWE_avg"] - row["BWE_dev"])
        assert thresholds == {name: printed[name] for name in thresholds}
        assert row["ERE_avg"] < 32


def test_the_record_is_that_of_the_scripts_as_they_are() -> None:
    record = json.loads(simulator.NS2.read_text())
    for script, read in ns2.SCRIPTS.items():
        assert record[script.name]["digest"] == digest_of(script, read)
    for nodes in yu2009_graphs.UNTIL_S:
        assert len(yu2009_graphs.over_reno(nodes, "js", yu2009_graphs.WHOLE)) >= 5
    assert len(yu2009_ns2.over("miss", "reno", 1.35)) == len(yu2009_ns2.over("js", "reno", 1.05)) >= 8
    assert len(yu2009_ns2.over("js", "iss", 1.35, yu2009_ns2.DROPPED)) >= 8
    for rate, thresholds in yu2009_ns2.HELD.items():
        assert all(len(yu2009_ns2.sent_again(rate, packets)) >= 6 for packets in thresholds.values())


@pytest.mark.parametrize("hosts_s", yu2009_ns2.HELD_HOSTS_S)
@pytest.mark.parametrize("rate", ns2.PAIRS_MBPS)
def test_the_reading_of_spm_is_the_one_whose_mean_is_nearest_to_table_4_1(rate: int, hosts_s: float) -> None:
    printed = {row["Bandwidth_mbps"]: row["SPM_avg"] for row in ns2.printed_rows(ns2.TABLE)}[rate]
    found = {reading: yu2009_spm.recorded(rate, hosts_s, reading) for reading in yu2009_spm.READINGS}
    assert all(len(estimates) >= 45 for estimates in found.values())
    apart = {reading: abs(statistics.fmean(estimates) - printed) for reading, estimates in found.items()}
    assert min(apart, key=lambda reading: apart[reading]) == spm.NO_ESTIMATE
    crowded = [(x, 0.9 * x + 1) for x in spm.INPUT_GAPS]
    assert spm.gamma(crowded) is spm.gamma(crowded, unqualified=spm.NO_ESTIMATE) is None, "the default"


@pytest.mark.parametrize(("more", "holds"), [(1.02, True), (0.97, False)])
def test_a_total_over_reno_s_in_ns2_explains_a_contradiction_or_does_not(
    monkeypatch: pytest.MonkeyPatch, more: float, holds: bool
) -> None:
    def numbers(_script: str, _rate: int, seed: int, *others: float | str) -> list[float]:
        return [600, 1, 1000 * seed * (1 if others[-1] == "reno" else more + seed / 1000)]

    monkeypatch.setattr(simulator, "numbers", numbers)
    checks = list(REGISTRY["yu2009-fig2.5"](catalogues(lab.ROOT)["yu2009"].entries[0]))
    assert [(one.part, one.holds, one.explains) for one in checks] == [("2", holds, True)] * 2


def test_the_page_has_a_place_for_each_table() -> None:
    page = reproduction_page.PAGE.read_text()
    for name in ns2.TABLES:
        assert len(reproduction_page.mark(f"ns-2 {name}").findall(page)) == 1
        assert reproduction_page.put(page, f"ns-2 {name}", ["| a |", "|---|"]).count("| a |\n|---|\n<!-- end -->") == 1


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed")
def test_windows_in_ns2_grow_by_a_packet_in_two_round_trips() -> None:
    """From 32 packets on, 0.44 s each, as long as nothing waits or is lost: 22.7 packets in 20 s."""
    grown = ns2.window(400, 1, 0.0, 60) - ns2.window(400, 1, 0.0, 40)
    assert grown == pytest.approx(20 / 0.88, rel=0.02)


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed")
def test_a_graph_in_ns2_has_the_same_arrivals_with_each_start() -> None:
    reno, js = (ns2.asked(ns2.GRAPH, 200, 1, 10, 1, 0.0, 20, 1.0, kind) for kind in ("reno", "js"))
    assert reno[0] == js[0] == pytest.approx(20, abs=12)
    assert reno[yu2009_graphs.EARLY] < reno[yu2009_graphs.WHOLE] and js[yu2009_graphs.EARLY] > reno[yu2009_graphs.EARLY]


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed")
def test_pairs_in_ns2_find_an_idle_path_as_wide_as_its_access_link() -> None:
    """Before others start: 1040 bytes at 50 Mbit/s are 166.4 us; out and back 0.44 s and the times of both packets on six links."""
    numbers = ns2.asked(ns2.PAIRS, 400, 1, 32, 0.0, 0.0, 1)
    rtt_s = 0.44 + 1040 * 8 * (2 / 50e6 + 4 / 400e6) + 320 * (2 / 50e6 + 4 / 400e6)
    assert numbers[:2] == pytest.approx([rtt_s, 166.4e-6], abs=1e-7)
    times = [1.0, *spm.INPUT_GAPS * 4][1:15]
    assert numbers[2:16] == pytest.approx([166.4e-6 * x for x in times], rel=0.3)
    assert list(yu2009_spm.estimates(numbers, spm.NO_ESTIMATE)) == [pytest.approx(rtt_s / 166.4e-6, rel=0.01)]


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed")
@pytest.mark.parametrize(("mbps", "threshold", "lost"), [(400, 32, False), (10, 2000, True)])
def test_a_start_in_ns2_loses_where_its_threshold_is_more_than_the_path_and_its_buffers_hold(
    mbps: int, threshold: int, lost: bool
) -> None:
    """A buffer holds 500 packets, the path 529 at 10 Mbit/s."""
    window, again = ns2.asked(ns2.PARKING_LOT, mbps, 1, 32, 0.0, 20, threshold, 15)
    assert window > 0
    assert (again > 0) == lost
