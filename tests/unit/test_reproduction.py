# SPDX-License-Identifier: Apache-2.0
"""The theses' catalogues, what is bound to them, what it comes to, and the pages."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.errors import ResultsError
from analysis.metrics import lookup
from analysis.models import REGISTRY, afifi2014, ho2008, ho2008_rules, ho2008_shares, tokuda2003
from analysis.models.checks import Check
from analysis.reproduction import afifi2014 as afifi2014_runs
from analysis.reproduction import recorded
from analysis.reproduction.outcomes import Evidence, judged, of_checks
from analysis.reproduction.pages import write_pages
from analysis.reproduction.recorded import Recorded
from analysis.results import Run
from analysis.statistics import cells
from base.errors import SpecError, UsageError
from kernels.reference import medley, medley_rounds
from schema.catalogue import Catalogue, Entry, catalogues, load
from schema.claims import Claim
from schema.published import Published
from testbed import cli
from testbed.commands import reproduce
from testbed.reproduction.bindings import Bindings, chosen, read
from testbed.reproduction.costs import Cost
from testbed.reproduction.deciding import about
from testbed.reproduction.printed import is_printed, strange
from tests import lab
from tests.catalogues import catalogue


@pytest.fixture(scope="module")
def bindings() -> Bindings:
    return read()


@pytest.fixture
def read_once(bindings: Bindings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "read", lambda: bindings)


def entry(**changes: Any) -> Entry:
    data: dict[str, Any] = {
        "id": "ho2008-fig9.9",
        "title": "A figure",
        "where": {"section": "9", "page": "9"},
        "kind": "figure",
        "comparable": "yes",
        "published": {
            "numbers": {"queue": 5},
            "claims": ["A is above B", "between 3 and 12 packets, a ninth (1/9), 1.79 times"],
        },
        "cost": {"virtual_s": 0, "mbit_s": 0, "runs": 0, "gbit": 0},
    }
    return Entry.model_validate({**data, **changes})


def test_the_catalogues_hold_all_entries_of_five_theses(bindings: Bindings) -> None:
    counts = {name: len(thesis.entries) for name, thesis in bindings.theses.items()}
    assert counts == {"afifi2014": 54, "ho2008": 75, "kato2012": 36, "tokuda2003": 26, "yu2009": 74}
    kinds = [one.comparable for one in bindings.entries.values()]
    assert {kind: kinds.count(kind) for kind in ("yes", "partly", "no")} == {"yes": 74, "partly": 140, "no": 51}


def test_every_number_under_a_thesis_name_is_one_that_it_prints(bindings: Bindings) -> None:
    """`read` refuses any other; each claim and table that is bound has been looked at."""
    looked = 0
    for bound in bindings.experiments:
        for one in (*bound.experiment.claims, *bound.experiment.published):
            assert isinstance(one, Claim | Published)
            for name in one.decides:
                looked += 1
                assert list(strange(one, bindings.entries[name.partition("/")[0]])) == [], (bound.file, name)
    assert looked > 50


@pytest.mark.parametrize(
    ("relation", "right"),
    [
        ({"near": {"value": 5, "tolerance": "10%"}}, True),
        ({"near": {"value": 0.05, "tolerance": "10%"}}, True),  # percent
        ({"near": {"value": 6, "tolerance": "10%"}}, False),
        ({"bounds": {"min": 3, "max": 12}}, True),
        ({"bounds": {"min": 3, "max": 13}}, False),
        ({"bounds": {"max": 0.1111}}, True),
        ({"ratio": {"first": {"cca": "a"}, "second": {"cca": "b"}, "within": [1.6, 2.0]}}, True),
        ({"ratio": {"first": {"cca": "a"}, "second": {"cca": "b"}, "within": [6.0, 6.5]}}, False),
        ({"greater": {"first": {"cca": "a"}, "second": {"cca": "b"}, "by": "7%"}}, False),
    ],
)
def test_a_number_that_the_thesis_does_not_print_is_refused(relation: dict[str, Any], *, right: bool) -> None:
    claim = Claim.model_validate({"source": "x", "metric": "queue_mean_packets", **relation})
    assert (list(strange(claim, entry())) == []) is right


CATALOGUE = catalogue("{numbers: {queue: 5}, claims: [A is above B]}")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("comparable: 'yes'", "comparable: perhaps", "catalogue.yaml:9: entries.0.comparable: 'perhaps'"),
        ("kind: figure", "kin: figure", "there is no key 'kin' here; did you mean kind?"),
        ("t2000-fig1", "x-fig1", "begins with t2000-"),
        ("    cost:", "    left_out: {quueue: lost}\n    cost:", "left_out names 'quueue'; did you mean queue?"),
        ("entries:\n", "entries: []\nmore:\n", "there is no key 'more' here"),
    ],
)
def test_a_bad_catalogue_is_refused_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    file = tmp_path / "catalogue.yaml"
    file.write_text(CATALOGUE.replace(old, new))
    with pytest.raises(SpecError) as caught:
        load(file)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("decides", "words"),
    [
        ("t2000-fig2/1", "no catalogue has an entry 't2000-fig2'; did you mean t2000-fig1?"),
        ("t2000-fig1/2", "t2000-fig1 has no part '2'"),
        ("t2000-fig1/queue", "7 is not printed in t2000-fig1"),
    ],
)
def test_a_claim_that_names_what_is_not_there_is_refused(tmp_path: Path, decides: str, words: str) -> None:
    folder = tmp_path / "experiments" / "t2000"
    folder.mkdir(parents=True)
    (folder / "catalogue.yaml").write_text(CATALOGUE)
    claim = (
        f"claims:\n  - {{source: x, metric: goodput_mbps, near: {{value: 7, tolerance: 5%}}, decides: [{decides}]}}\n"
    )
    (folder / "a.yml").write_text(lab.SMALL + claim)
    with pytest.raises(SpecError) as caught:
        read(tmp_path)
    assert words in str(caught.value)


def seen(*held: tuple[str, str], explains: bool = False) -> Iterator[Evidence]:
    for kind, outcome in held:
        yield Evidence("1", kind, outcome, "a.yml", explains=explains)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("held", "outcome"),
    [
        ([("value", "holds"), ("order", "holds")], "agrees"),
        ([("order", "holds")], "agrees in order or shape"),
        ([("order", "holds"), ("value", "contradicted")], "agrees in order or shape"),
        ([("value", "contradicted")], "contradicts"),
        ([("value", "holds"), ("order", "contradicted")], "contradicts"),
        ([("order", "holds"), ("order", "undecided")], "undecided"),
        ([("order", "holds"), ("order", "not run yet")], "agrees in order or shape"),  # the same part, by a calculation
        ([("order", "not run yet")], "not run yet"),
        ([("order", "contradicted"), ("order", "not run yet")], "contradicts"),
        ([], "not bound yet"),
    ],
)
def test_an_outcome_follows_from_what_its_parts_came_to(held: list[tuple[str, str]], outcome: str) -> None:
    assert judged(entry(), list(seen(*held))).outcome == outcome


def test_an_entry_of_which_one_part_waits_for_runs_is_undecided() -> None:
    other = dataclasses.replace(next(seen(("order", "not run yet"))), part="2")
    assert judged(entry(), [*seen(("order", "holds")), other]).outcome == "undecided"


def test_an_entry_of_which_nothing_is_printed_cannot_be_compared() -> None:
    nothing = entry(published={"numbers": None, "claims": []})
    assert judged(nothing, []).outcome == "cannot be compared"
    assert judged(entry(published={"numbers": {"queue": 5}, "claims": []}), []).outcome == "not bound yet"


def test_an_entry_whose_claims_are_all_left_out_cannot_be_compared() -> None:
    lost = entry(left_out={"1": "lost", "2": "lost"})
    assert judged(lost, []).outcome == "cannot be compared"


def test_a_contradiction_counts_until_a_run_shows_why() -> None:
    wrong = list(seen(("order", "contradicted")))
    assert judged(entry(), wrong).failed
    assert judged(entry(), [*wrong, *seen(("order", "contradicted"), explains=True)]).failed
    assert not judged(entry(), [*wrong, *seen(("order", "holds"), explains=True)]).failed
    elsewhere = [dataclasses.replace(one, part="2") for one in seen(("order", "holds"), explains=True)]
    assert judged(entry(), [*wrong, *elsewhere]).failed


def test_claims_that_nothing_decides_are_listed() -> None:
    found = judged(entry(), list(seen(("order", "holds"))))
    assert found.open_claims == ("2",)
    assert judged(entry(left_out={"2": "the setting is lost"}), list(seen(("order", "holds")))).open_claims == ()


# --- models: numbers of the catalogue's `derived`, which another program computed


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


def test_medley_s_cycle_is_the_table_s() -> None:
    assert ho2008.cycle(6) == [0, -1, -2, 0, 4, 10, 18]  # W + a^2 - 3a with a = 6


@pytest.fixture(scope="module")
def calculated(bindings: Bindings) -> dict[str, list[Check]]:
    return {name: list(function(bindings.entries[name])) for name, function in REGISTRY.items()}


def test_every_calculation_names_parts_that_its_entry_has(
    bindings: Bindings, calculated: dict[str, list[Check]]
) -> None:
    for name, checks in calculated.items():
        one = bindings.entries[name]
        for check in checks:
            assert check.part in one.parts(), (name, check.part)
            assert check.says


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from numbers(part)


def test_what_a_check_calls_published_is_printed(bindings: Bindings, calculated: dict[str, list[Check]]) -> None:
    """Of calculations, and of those comparisons with runs that the record has; of a printed formula (W/2) the value for a W of ours."""

    def is_formula(name: str, part: str) -> bool:
        printed = bindings.entries[name].published.numbers
        return isinstance(printed, dict) and str(printed.get(part)).startswith("W/")

    found = dict(calculated)
    for thesis in bindings.theses:
        for kept in recorded.read(lab.ROOT / "docs/reproduction", thesis).values():
            for name, checks in kept.checks.items():
                found[name] = [*found.get(name, []), *checks]
    told = [
        (name, value)
        for name, checks in found.items()
        for check in checks
        if check.kind == "value" and not is_formula(name, check.part)
        for value in numbers(check.published)
    ]
    assert len(told) > 50
    assert [(name, value) for name, value in told if not is_printed(abs(value), bindings.entries[name])] == []


def test_only_these_calculations_contradict(calculated: dict[str, list[Check]]) -> None:
    wrong = {name: [check.explained for check in checks if not check.holds] for name, checks in calculated.items()}
    assert {name for name, found in wrong.items() if found} == {
        "ho2008-s4.3-example",
        "ho2008-s5.2.2-real-time",  # the thesis' rules against its figures
        "ho2008-fig5.16",
        *(f"ho2008-fig{figure}" for figure in ho2008_shares.MIXES.values()),
        "ho2008-s5.5-summary",
        "tokuda2003-fig6-order",
        "afifi2014-claim6.2",
        "kato2012-tab5.1",  # what our module costs, by the benchmark
        "kato2012-tab5.2",
        "kato2012-claim5.2.3",
        "kato2012-claim5.1.2",  # the listing, and our module, against eq 3.1
        "kato2012-fig5.8",
        "afifi2014-tab6",  # two losses in a window: a packet too many
        "afifi2014-tab7",  # Linux' westwood has another filter than the Westwood+ of the thesis
    }
    unexplained = {name for name, found in wrong.items() if not all(found)}
    gain = {
        "kato2012-claim5.1.2",
        "kato2012-fig5.8",
    }  # eq 3.1 as it stands gives it in the calculation, and not beside TCP
    assert unexplained == {"kato2012-tab5.1", "kato2012-tab5.2", "kato2012-claim5.2.3"} | gain


def test_a_model_that_computes_something_else_is_noticed(bindings: Bindings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(medley, "increment", lambda *_, **__: 1.0)
    checks = list(REGISTRY["ho2008-tab4.1"](bindings.entries["ho2008-tab4.1"]))
    found = judged(bindings.entries["ho2008-tab4.1"], list(of_checks(checks, "analysis/models/ho2008.py")))
    assert found.outcome == "contradicts"
    assert found.failed


# --- the command and its pages


def test_words_choose_theses_and_entries(bindings: Bindings) -> None:
    assert len(chosen(bindings, ["tokuda2003"])) == 26
    assert [one.id for one in chosen(bindings, ["ho2008-fig5.3", "tab5.3"])] == ["ho2008-fig5.3", "ho2008-tab5.3"]
    with pytest.raises(UsageError, match=r"ho2008-fig4\.2, kato2012-fig4\.2, yu2009-fig4\.2; write which"):
        chosen(bindings, ["fig4.2"])
    with pytest.raises(UsageError, match="did you mean ho2008"):
        chosen(bindings, ["ho208"])


@pytest.mark.usefixtures("read_once")
def test_the_list_runs_nothing_and_a_bad_word_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["reproduce", "ho2008-tab4.1", "--list", "--results", str(tmp_path)]) == 0
    assert "agrees" in capsys.readouterr().out
    assert cli.main(["reproduce", "nothing", "--list", "--results", str(tmp_path)]) == 2
    assert cli.main(["reproduce", "ho2008-tab4.1", "--within", "soon", "--results", str(tmp_path)]) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("read_once")
def test_an_unexplained_contradiction_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["reproduce", "ho2008-tab4.1", "--results", str(tmp_path), "--format", "json"]
    assert cli.main(command) == 0
    monkeypatch.setattr(medley, "increment", lambda *_, **__: 1.0)
    assert cli.main(command) == 1


def test_cost_is_told_for_what_is_missing_only() -> None:
    assert Cost().words(2) == "no run is missing"
    both = Cost(1, 10, 1, 100, 5e6, 2e6) + Cost(2, 10, 1, 100, 5e6, 3e6)
    assert both.words(2) == (
        "3 runs, 20 s of virtual time, 2 Gbit: about 2 min with 2 at a time, 10 MB of disk that stays, up to 6 MB more while they run"
    )


def test_pages_show_entries_parts_and_what_is_open(tmp_path: Path) -> None:
    one = entry(open=["The image is lost."])
    found = judged(
        one, [Evidence("queue", "value", "contradicted", "experiments/ho2008/a.yml", "says", "5", "7 ± 1", "far", 5)]
    )
    thesis = Catalogue(catalogue="ho2008", thesis="A | thesis", entries=[one])
    files = write_pages(tmp_path, {"ho2008": thesis}, [found], {})
    assert [file.name for file in files] == ["ho2008.md", "README.md"]
    page = (tmp_path / "ho2008.md").read_text()
    assert (
        "| queue | queue | 5 | 7 ± 1; 5 runs | does not hold (far) | [a.yml](../../experiments/ho2008/a.yml) |" in page
    )
    assert "| 1 | A is above B | | | not bound yet | |" in page
    assert "Open in the thesis: The image is lost." in page
    assert "unexplained" in (tmp_path / "README.md").read_text()
    before = page
    write_pages(tmp_path, {"ho2008": thesis}, [found], {})
    assert (tmp_path / "ho2008.md").read_text() == before


def small_run(name: str = "s1-0", **changes: Any) -> Run:
    return Run("small", name, Path("somewhere"), **{
        "seed": 1, "params": {"rate": "2mbit", "cca": "reno"}, "host": "virtual", "status": "complete",
        "verdict": "valid", "packets": "ab",
        "inputs": {"spec": "5f", "traces": {}},
        "metrics": {"utilization": 0.5, "queue_drops": 3, "smoothness_cv": {"1": 0.25},
            "flows": [{"flow": "b.2", "retransmissions": 7}]},
        **changes,
    })  # fmt: skip


NAMED: Any = SimpleNamespace(
    name="small", metrics=["utilization", "flows.b.2.retransmissions", "smoothness_cv.1"], claims=[], published=[]
)


def test_the_runs_behind_the_pages_lie_beside_them_and_come_back_as_they_were(tmp_path: Path) -> None:
    one = entry()
    thesis = Catalogue(catalogue="ho2008", thesis="A thesis", entries=[one])
    failed = small_run("s2-0", status="failed")
    check = Check("1", "windows", holds=False, published=[1, 2], computed=[1, 3], kind="order", reason="far")
    kept = Recorded((small_run(), failed), {one.id: (check,)})
    write_pages(tmp_path, {"ho2008": thesis}, [judged(one, [])], {"experiments/ho2008/a.yml": (NAMED, kept)})
    (back,) = recorded.read(tmp_path, "ho2008").values()
    (run,) = back.runs
    assert list(run.params.items()) == [("rate", "2mbit"), ("cca", "reno")]
    assert (run.run, run.seed, run.verdict, run.packets) == ("s1-0", 1, "valid", "ab")
    assert [lookup(dict(run.metrics), name) for name in NAMED.metrics] == [0.5, 7, 0.25]
    assert lookup(dict(run.metrics), "queue_drops") is None
    assert back.checks == {one.id: (check,)}
    before = (tmp_path / "ho2008.json").read_text()
    write_pages(tmp_path, {"ho2008": thesis}, [judged(one, [])], {"experiments/ho2008/a.yml": (NAMED, back)})
    assert (tmp_path / "ho2008.json").read_text() == before


def test_recorded_runs_that_differ_in_what_was_not_recorded_are_no_copies(tmp_path: Path) -> None:
    def there(second: Run) -> int:
        kept = Recorded((small_run(), second))
        (tmp_path / "ho2008.json").write_text(recorded.text({"experiments/ho2008/a.yml": (NAMED, kept)}))
        (cell,) = cells(recorded.read(tmp_path, "ho2008")["experiments/ho2008/a.yml"].runs)
        return cell.copies

    assert there(small_run("s2-0", seed=2)) == 2
    assert there(small_run("s2-0", seed=2, metrics={**small_run().metrics, "queue_drops": 4})) == 0


@pytest.mark.parametrize("text", ["[]", '{"a": {}}', '{"a": {"runs": [{}]}}', "nothing", '{"a": {"runs": 5}}'])
def test_a_record_that_is_none_is_told_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "ho2008.json").write_text(text)
    with pytest.raises(ResultsError, match=r"ho2008\.json: not a record"):
        recorded.read(tmp_path, "ho2008")


@pytest.mark.usefixtures("read_once")
def test_entries_are_decided_from_the_record_where_no_run_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The repository's own record decides entries in a fresh clone that without it are not run yet."""

    def waiting(*options: str) -> set[str]:
        command = ["reproduce", "ho2008", "--no-run", "--results", str(tmp_path), "--format", "json", *options]
        cli.main(command)
        return {one["entry"] for one in json.loads(capsys.readouterr().out) if one["outcome"] == "not run yet"}

    with_record, without = waiting(), waiting("--record", str(tmp_path))
    assert with_record < without and len(without - with_record) >= 5


def test_a_claim_waits_for_the_runs_that_it_speaks_of() -> None:
    both = {"source": "x", "metric": "utilization", "where": {"buffer": "50p"}}
    greater = Claim.model_validate({**both, "greater": {"first": {"cca": "a"}, "second": {"cca": "b"}}})
    near = Claim.model_validate({"source": "x", "metric": "utilization", "where": {"cca": "a"}, "bounds": {"max": 1}})
    assert about(greater, {"cca": "a", "buffer": "50p"})
    assert not about(greater, {"cca": "a", "buffer": "250p"})
    assert not about(greater, {"cca": "c", "buffer": "50p"})
    assert about(near, {"cca": "a", "buffer": "250p"})
    assert not about(near, {"cca": "b", "buffer": "250p"})
