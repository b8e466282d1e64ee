# SPDX-License-Identifier: Apache-2.0
"""The theses' catalogues, what is bound to them, what it comes to, and the pages."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from analysis.errors import ResultsError
from analysis.metrics import lookup
from analysis.models.checks import Check
from analysis.reproduction import measured, recorded
from analysis.reproduction.outcomes import Evidence, is_value, judged
from analysis.reproduction.pages import write_pages
from analysis.reproduction.recorded import Recorded
from analysis.results import Run
from analysis.statistics import cells
from base.errors import SpecError, UsageError
from kernels.reference import medley
from plan.model import Plan
from schema.catalogue import Catalogue, Entry, load
from schema.claims import Claim
from schema.published import Published
from testbed import cli
from testbed.commands import reproduce
from testbed.reproduction import costs
from testbed.reproduction.bindings import Bindings, chosen, read
from testbed.reproduction.costs import Cost
from testbed.reproduction.deciding import Decider, Standing, about
from testbed.reproduction.printed import strange
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
    ("old", "new", "message"),
    [
        ("comparable: 'yes'", "comparable: perhaps", "catalogue.yaml:9: entries.0.comparable: 'perhaps'"),
        ("kind: figure", "kin: figure", "there is no key 'kin' here; did you mean kind?"),
        ("t2000-fig1", "x-fig1", "begins with t2000-"),
        ("    cost:", "    left_out: {quueue: lost}\n    cost:", "left_out names 'quueue'; did you mean queue?"),
        ("entries:\n", "entries: []\nmore:\n", "there is no key 'more' here"),
    ],
)
def test_a_bad_catalogue_is_refused_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "catalogue.yaml"
    file.write_text(CATALOGUE.replace(old, new))
    with pytest.raises(SpecError) as caught:
        load(file)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("decides", "message"),
    [
        ("t2000-fig2/1", "no catalogue has an entry 't2000-fig2'; did you mean t2000-fig1?"),
        ("t2000-fig1/2", "t2000-fig1 has no part '2'"),
        ("t2000-fig1/queue", "7 is not printed in t2000-fig1"),
    ],
)
def test_a_claim_that_names_what_is_not_there_is_refused(tmp_path: Path, decides: str, message: str) -> None:
    folder = tmp_path / "experiments" / "t2000"
    folder.mkdir(parents=True)
    (folder / "catalogue.yaml").write_text(CATALOGUE)
    claim = (
        f"claims:\n  - {{source: x, metric: goodput_mbps, near: {{value: 7, tolerance: 5%}}, decides: [{decides}]}}\n"
    )
    (folder / "a.yml").write_text(lab.SMALL + claim)
    with pytest.raises(SpecError) as caught:
        read(tmp_path)
    assert message in str(caught.value)


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
        ([("value", "contradicted"), ("value", "undecided")], "contradicts"),
        ([("order", "holds"), ("value", "contradicted"), ("value", "undecided")], "agrees in order or shape"),
        ([("order", "undecided"), ("value", "contradicted")], "undecided"),
        ([("order", "holds"), ("value", "holds"), ("value", "undecided")], "undecided"),
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
    halved = seen(("order", "holds"), ("order", "contradicted"), explains=True)
    assert judged(entry(), [*wrong, *halved]).failed, "one of two explanations of a part is wrong"
    elsewhere = [dataclasses.replace(one, part="2") for one in seen(("order", "holds"), explains=True)]
    assert judged(entry(), [*wrong, *elsewhere]).failed


def test_claims_that_nothing_decides_are_listed() -> None:
    judgement = judged(entry(), list(seen(("order", "holds"))))
    assert judgement.open_claims == ("2",)
    assert judged(entry(left_out={"2": "the setting is lost"}), list(seen(("order", "holds")))).open_claims == ()


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


def test_a_run_is_expected_to_take_as_long_as_others_of_its_kind() -> None:
    """By hand: a plan's Gbit in 30 s beside its start and in 90 s are two in 120 s."""
    plan = cast(Plan, SimpleNamespace(duration_s=1.0, network=SimpleNamespace(links=(), bottleneck=None)))
    gbit = costs.rate_bps(plan) / 1e9

    def runs(*beyond_start_s: float) -> list[tuple[Run, Plan]]:
        timings = [{"wall_s": costs.START_S + one} for one in beyond_start_s]
        return [(cast(Run, SimpleNamespace(timing=timing)), plan) for timing in timings]

    assert costs.speed(runs(30, 90)) == pytest.approx(2 * gbit / 120)
    assert costs.speed(runs(3, 3, 3, 3)) is None, "a start says nothing of the speed"
    assert costs.speed([]) is None


def test_what_one_run_took_tells_what_all_of_its_file_take(bindings: Bindings, tmp_path: Path) -> None:
    """By hand: fifteen runs of 120 s at 15 Mbit/s are 1.8 Gbit each; one took 3.6 s beside its start and left 7 MB."""
    (bound,) = (one for one in bindings.experiments if one.file == "experiments/kato2012/smoothness.yml")
    took = costs.Measured(virtual_s=120, gbit=1.8, wall_s=costs.START_S + 3.6, kept_bytes=7e6)
    told = Decider(bindings, tmp_path, {}, {bound.file: took}).cost([bound])
    assert told.runs == 15
    assert told.gbit == pytest.approx(27)
    assert told.cpu_s == pytest.approx(15 * (costs.START_S + 3.6))
    assert told.disk_bytes == pytest.approx(15 * 7e6)


def test_slow_experiments_say_little_of_those_without_a_run() -> None:
    assert costs.usual([1.0, None, 2.0, 3.0, 0.001, 0.001]) == 1.0
    assert costs.usual([0.001, None, 0.001, 0.001, 0.001]) == costs.GBIT_PER_S, "four are too few"
    assert costs.usual([]) == costs.GBIT_PER_S


def test_cost_is_told_for_what_is_missing_only() -> None:
    assert Cost().words(2) == "no run is missing"
    both = Cost(1, 10, 1, 100, 5e6, 2e6) + Cost(2, 10, 1, 100, 5e6, 3e6)
    assert both.words(2) == (
        "3 runs, 20 s of virtual time, 2 Gbit: about 2 min with 2 at a time, 10 MB of disk that stays, up to 6 MB more while they run"
    )


def test_pages_show_entries_parts_and_what_is_open(tmp_path: Path) -> None:
    one = entry(open=["The image is lost."])
    judgement = judged(
        one, [Evidence("queue", "value", "contradicted", "experiments/ho2008/a.yml", "says", "5", "7 ± 1", "far", 5)]
    )
    thesis = Catalogue(catalogue="ho2008", thesis="A | thesis", entries=[one])
    files = write_pages(tmp_path, {"ho2008": thesis}, [judgement], {})
    assert [file.name for file in files] == ["ho2008.md", "README.md"]
    page = (tmp_path / "ho2008.md").read_text()
    assert (
        "| queue | queue | 5 | 7 ± 1; 5 runs | does not hold (far) | [a.yml](../../experiments/ho2008/a.yml) |" in page
    )
    assert "| 1 | A is above B | | | not bound yet | |" in page
    assert "Open in the thesis: The image is lost." in page
    assert "unexplained" in (tmp_path / "README.md").read_text()
    before = page
    write_pages(tmp_path, {"ho2008": thesis}, [judgement], {})
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


def test_a_recorded_comparison_stays_until_every_recorded_run_has_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a comparison that reads runs' records: made again from those of a few new seeds, it had found nothing."""

    def compare(_: Any, runs: Sequence[Run]) -> Iterator[Check]:
        yield Check("1", "made again", holds=True, published=None, computed=len(runs), kind="order")

    one = entry()
    noted = Check("1", "noted", holds=True, published=None, computed=9, kind="order")
    monkeypatch.setitem(measured.MEASURED, (one.id, "small"), (("small",), ("1",), compare))
    here, recorded_only = small_run(), small_run("s2-0", seed=2)
    there = dataclasses.replace(recorded_only, path=recorded.NOWHERE)
    decider = Decider(SimpleNamespace(), Path("results"))  # type: ignore[arg-type]

    def checks(*runs: Run, done: int) -> list[object]:
        prepared: Any = SimpleNamespace(experiment=SimpleNamespace(name="small"))
        pairs: Any = tuple((run, None) for run in runs[:done])
        standing = Standing(SimpleNamespace(), prepared, runs, (), (), pairs, {one.id: (noted,)})  # type: ignore[arg-type]
        return [check.computed for check in decider.checks(one, standing)]

    assert checks(there, done=0) == [9]
    assert checks(here, there, done=1) == [9]
    assert checks(here, recorded_only, done=2) == [2]


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


@pytest.mark.parametrize(
    ("relation", "part", "value"),
    [
        ({"bounds": {"min": 1}}, "1", False),  # "loses packets"
        ({"bounds": {"max": 0}}, "1", False),  # "loses none"
        ({"bounds": {"min": 1}}, "numbers", True),
        ({"bounds": {"min": 0.9}}, "1", True),
        ({"bounds": {"min": 0, "max": 0.9}}, "1", True),
        ({"near": {"value": 1, "tolerance": "5%"}}, "1", True),
        ({"greater": {"first": {"cca": "a"}, "second": {"cca": "b"}}}, "1", False),
    ],
)
def test_whether_there_is_any_is_no_number_of_a_thesis(relation: dict[str, Any], part: str, value: bool) -> None:
    assert is_value(Claim.model_validate({"source": "x", "metric": "loss_rate", **relation}), part) is value


def test_a_claim_waits_for_the_runs_that_it_speaks_of() -> None:
    both = {"source": "x", "metric": "utilization", "where": {"buffer": "50p"}}
    greater = Claim.model_validate({**both, "greater": {"first": {"cca": "a"}, "second": {"cca": "b"}}})
    near = Claim.model_validate({"source": "x", "metric": "utilization", "where": {"cca": "a"}, "bounds": {"max": 1}})
    assert about(greater, {"cca": "a", "buffer": "50p"})
    assert not about(greater, {"cca": "a", "buffer": "250p"})
    assert not about(greater, {"cca": "c", "buffer": "50p"})
    assert about(near, {"cca": "a", "buffer": "250p"})
    assert not about(near, {"cca": "b", "buffer": "250p"})
