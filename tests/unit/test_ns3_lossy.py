# SPDX-License-Identifier: Apache-2.0
"""benchmarks.ns3_lossy: what is asked of ns-3, the table, the record, and what it explains."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from analysis.models import REGISTRY, afifi2014_ns3, simulator
from analysis.models.checks import Check
from base.cache import sha256_of
from benchmarks import ns3, ns3_lossy, reproduction_page
from schema.catalogue import catalogues
from tests import lab

RENO, PLUS = "newreno", "westwood"


def checks(entry: str) -> list[Check]:
    (found,) = (one for one in catalogues(lab.ROOT)["afifi2014"].entries if one.id == entry)
    return list(REGISTRY[entry](found))


def given(monkeypatch: pytest.MonkeyPatch, reno: Sequence[float], plus: Sequence[float]) -> None:
    """Highest sequence number and largest window of both in place of the record; seeds differ a little."""

    def numbers(_program: str, algorithm: str, *others: float) -> list[float]:
        number = reno if algorithm == RENO else plus
        return [number[0] * (1 + others[-2] % 2 / 1000), number[1]]

    monkeypatch.setattr(simulator, "numbers", numbers)


def test_a_row_has_the_thesis_numbers_and_ns3s_means() -> None:
    asked: list[str] = []

    def ask(source: Path, *arguments: float | str) -> list[float]:
        asked.append(f"{source.name} {simulator.key(*arguments)}")
        return [1000 * float(arguments[-2]), 10, 250]

    lines = list(ns3_lossy.lines(ask, 3, 1))
    assert asked[0] == "ns3_lossy.cc newreno 11 122 0.02 0 100 0 1 1000"
    assert asked[-1] == "ns3_lossy.cc westwood 10 270 0.01 0.01 100 1 3 1000"
    assert lines[2:] == [
        "| one | NewReno | 12638881 | 2000 (1000 to 3000) | 12000 | 10 (10 to 10) |",
        "| one | Westwood+ | 28204321 | 2000 (1000 to 3000) | 20000 | 10 (10 to 10) |",
        "| four | NewReno | 6995873 | 2000 (1000 to 3000) | 10000 | 10 (10 to 10) |",
        "| four | Westwood+ | 22329761 | 2000 (1000 to 3000) | 35000 | 10 (10 to 10) |",
    ]


@pytest.mark.parametrize(("plus", "holds"), [(9e6, True), (7.1e6, False)])
def test_the_order_of_the_totals_is_shown_or_not(monkeypatch: pytest.MonkeyPatch, plus: float, holds: bool) -> None:
    given(monkeypatch, [7.5e6, 9000], [plus, 9000])
    (check,) = checks("afifi2014-fig30")
    assert (check.part, check.holds, check.explains) == ("2", holds, True)


def test_totals_are_held_against_the_printed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, [7e6, 9000], [45e6, 9000])
    assert [check.holds for check in checks("afifi2014-fig29")] == [True, False, True]
    given(monkeypatch, [7e6 * 1.4, 9000], [22e6, 9000])
    assert [check.holds for check in checks("afifi2014-fig29")] == [False, True, True]


@pytest.mark.parametrize(("largest", "holds"), [(9900, True), (10100, False)])
def test_the_largest_window_is_held_against_the_printed_bound(
    monkeypatch: pytest.MonkeyPatch, largest: float, holds: bool
) -> None:
    given(monkeypatch, [7e6, largest], [45e6, 9000])
    (check,) = checks("afifi2014-fig27")
    assert (check.part, check.holds, check.explains) == ("1", holds, True)


def test_without_a_record_nothing_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator, "numbers", lambda *_: None)
    assert [checks(f"afifi2014-fig{number}") for number in (15, 27, 29, 30)] == [[], [], [], []]


def test_seeds_of_which_one_algorithm_is_not_recorded_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def numbers(_program: str, algorithm: str, *others: float) -> list[float] | None:
        seed = others[-2]
        return None if algorithm == PLUS and seed == 2 else [1e6 * seed * (3 if algorithm == PLUS else 1), 9000]

    monkeypatch.setattr(simulator, "numbers", numbers)
    (check,) = checks("afifi2014-fig30")
    assert check.holds and str(check.computed).startswith("3.000") and "over 4 seeds" in check.says


def test_the_record_is_that_of_the_program_as_it_is() -> None:
    record = json.loads(simulator.NS3.read_text())
    assert record[ns3_lossy.SOURCE.name]["digest"] == sha256_of(ns3_lossy.SOURCE)
    for topology in afifi2014_ns3.SETTINGS:
        for algorithm in (RENO, PLUS):
            assert len(afifi2014_ns3.seen(topology, algorithm, afifi2014_ns3.SEQUENCE)) >= 5


def test_the_page_has_a_place_for_the_table() -> None:
    assert len(reproduction_page.mark(ns3_lossy.TABLE).findall(reproduction_page.PAGE.read_text())) == 1


@pytest.mark.skipif(not ns3.is_there(), reason="ns-3 is not installed")
def test_newreno_in_ns3_gets_what_the_square_root_formula_says(tmp_path: Path) -> None:
    """sqrt(3 / (2 b p)) packets of 536 bytes in a round trip, b = 2 packets an ACK. It knows no timers: half of it to all of it."""
    found = ns3.Program(ns3_lossy.SOURCE, tmp_path)(ns3_lossy.SOURCE, RENO, 11, 122, 0.005, 0, 100, 0, 1, 400)
    sequence, rtt_ms = found[0], found[2]
    formula = (3 / (2 * 2 * 0.005)) ** 0.5 * 536 / (rtt_ms / 1e3) * 400
    assert 0.5 < sequence / formula < 1.1
