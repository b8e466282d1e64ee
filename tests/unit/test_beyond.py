# SPDX-License-Identifier: Apache-2.0
"""Claims beyond the published points, what was learned, and the pages that show both."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from analysis.reproduction import learned
from analysis.reproduction.beyond import Beyond, Place, look
from analysis.reproduction.beyond_pages import choices_of, off_points, summary
from analysis.reproduction.outcomes import Evidence, Judged, judged
from analysis.reproduction.pages import write_pages
from analysis.results import Run
from base.errors import SpecError
from schema.catalogue import Catalogue, Entry
from schema.claims import Claim
from testbed.experiments import prepare
from testbed.reproduction.bindings import read
from tests import lab
from tests.unit.test_reproduction import CATALOGUE, entry

CLAIM = Claim.model_validate({
    "source": "x", "says": "A gets more than B.", "metric": "utilization",
    "greater": {"first": {"cca": "a"}, "second": {"cca": "b"}}, "off_point": ["ho2008-fig9.9/1"],
})  # fmt: skip
CHOICE = CLAIM.model_copy(update={"off_point": [], "choice": ["ho2008-fig9.9/1"]})


def run(cca: str, rate: str, utilization: float, seed: int = 1) -> Run:
    return Run(
        "small",
        f"{cca}-{rate}-s{seed}",
        Path("somewhere"),
        seed=seed,
        params={"cca": cca, "rate": rate},
        host="virtual",
        status="complete",
        verdict="valid",
        metrics={"utilization": utilization},
    )


def looked(values: dict[str, tuple[float, float]], claim: Claim = CLAIM, **more: Any) -> Beyond:
    runs = [run(cca, rate, value) for rate, pair in values.items() for cca, value in zip("ab", pair, strict=True)]
    asked = [one.params for one in runs] + more.pop("asked", [])
    return look(claim, "off_point" if claim.off_point else "choice", "experiments/drawn/a.yml", runs, asked, **more)


def test_each_path_is_judged_by_its_means_and_the_claim_by_its_paths() -> None:
    """Eight heads of ten: 56 of 1024 ways have eight or more (45 + 10 + 1)."""
    paths = {f"{i}mbit": (0.9, 0.5) if i <= 8 else (0.5, 0.9) for i in range(1, 11)}
    seen = looked(paths)
    assert [place.label for place in seen.places][:2] == ["rate=1mbit", "rate=2mbit"]
    assert (seen.count("holds"), seen.count("contradicted")) == (8, 2)
    assert seen.chance == pytest.approx(56 / 1024)


def test_equal_means_are_not_more() -> None:
    assert looked({"1mbit": (0.5, 0.5)}).places[0].held == "contradicted"


def test_a_path_without_its_runs_is_not_run_yet() -> None:
    other = {"cca": "a", "rate": "9mbit"}
    seen = looked({"1mbit": (0.9, 0.5)}, asked=[other], missing=[other])
    assert [place.held for place in seen.places] == ["holds", "not run yet"]


def test_a_path_whose_runs_have_no_value_is_undecided_with_the_reason() -> None:
    """As one whose runs end before ten seconds of a flow have gone by: it was run, and says nothing."""
    runs = [dataclasses.replace(run(cca, "1mbit", 0.9), metrics={"utilization": None}) for cca in "ab"]
    seen = look(CLAIM, "off_point", "a.yml", runs, [one.params for one in runs])
    (place,) = seen.places
    assert place.held == "undecided" and "utilization is unknown" in place.measured
    page = "".join(off_points([seen], at_point("holds")))
    assert "holds on **0 of 1** (undecided: 1)" in page and "| undecided |" in page and "not run yet" not in page


def test_a_choice_matters_where_the_outcome_depends_on_it() -> None:
    """Two seeds that agree exactly decide without an interval."""
    runs = [
        run(cca, rate, value, seed)
        for seed in (1, 2)
        for rate, pair in {"1mbit": (0.9, 0.5), "2mbit": (0.4, 0.5)}.items()
        for cca, value in zip("ab", pair, strict=True)
    ]
    seen = look(CHOICE, "choice", "a.yml", runs, [one.params for one in runs])
    assert [place.held for place in seen.places] == ["holds", "contradicted"]
    assert seen.matters is True
    only = [one for one in runs if one.params["rate"] == "1mbit"]
    assert look(CHOICE, "choice", "a.yml", only, [one.params for one in only]).matters is False
    one_seed = [one for one in runs if one.seed == 1]
    assert look(CHOICE, "choice", "a.yml", one_seed, [one.params for one in one_seed]).matters is None


def at_point(held: str) -> dict[str, Judged]:
    one = entry(open=["The buffer is lost."])
    return {one.id: judged(one, [Evidence("1", "order", held, "a.yml", "says", "", "0.9 against 0.5")])}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("at", "holds", "message"),
    [
        ("holds", 10, "everywhere"),
        ("holds", 7, "not everywhere"),
        ("holds", 0, "only on the thesis' own point"),
        ("contradicted", 0, "on none"),
    ],
)
def test_a_claim_that_holds_only_on_the_published_point_is_said_to(at: str, holds: int, message: str) -> None:
    seen = looked(
        {f"{i}mbit": (0.9, 0.5) if i <= holds else (0.5, 0.9) for i in range(1, 11)}, around="rate 5mbit (×÷ 2), seed 1"
    )
    page = "".join(off_points([seen], at_point(at)))
    assert f"holds on **{holds} of 10**" in page
    assert f"| {message} |" in page
    assert "drawn around rate 5mbit (×÷ 2), seed 1" in page
    assert page.count("\n| rate=") == 10
    assert f"| {message} |" in "".join(summary([seen], at_point(at)))


def test_a_choice_is_shown_beside_what_is_open(tmp_path: Path) -> None:
    claim = Beyond(
        "choice",
        ("ho2008-fig9.9/1",),
        "A gets more than B.",
        "experiments/sensitivity/a.yml",
        (Place("buffer=5p", "holds", "2 against 1"), Place("buffer=9p", "contradicted", "1 against 2")),
    )
    opened = {"ho2008-fig9.9/1": "The buffer is lost.", "ho2008-fig9.8/2": "The rate is lost."}
    assert "**matters**" in "".join(choices_of("The buffer is lost.", [claim], opened))
    assert "".join(choices_of("The rate is lost.", [claim], opened)) == ""
    entries = at_point("holds")
    same = judged(entry(id="ho2008-fig9.7", open=["The rate is lost.", "The buffer is lost."]), [])
    entries[same.entry.id] = same
    thesis = Catalogue(catalogue="ho2008", thesis="A thesis", entries=[one.entry for one in entries.values()])
    write_pages(tmp_path, {"ho2008": thesis}, list(entries.values()), {}, beyond=[claim])
    page = (tmp_path / "ho2008.md").read_text()
    assert (
        "Open in the thesis: The buffer is lost.\n\n- Varied in [a.yml](../../experiments/sensitivity/a.yml), where it **matters**"
        in page
    )
    over_all = (tmp_path / "README.md").read_text()
    assert (
        "leave 2 things open, some of them at many entries (3 places). 1 of them were varied, which stand at 2 places"
        in over_all
    )


# --- what was learned


def catalogue(shown: dict[str, str], one: Entry) -> Catalogue:
    sentence = {"topic": "linux", "says": "Linux does it otherwise.", "shown": shown}
    return Catalogue.model_validate(
        {"catalogue": "ho2008", "thesis": "A thesis", "learned": [sentence], "entries": [one.model_dump()]}
    )


@pytest.mark.parametrize(
    ("shown", "evidence", "is_shown"),
    [
        ({"ho2008-fig9.9/1": "holds"}, [("holds", False)], True),
        ({"ho2008-fig9.9/1": "holds"}, [("holds", False), ("contradicted", False)], False),
        ({"ho2008-fig9.9/1": "contradicted"}, [("contradicted", False)], True),
        ({"ho2008-fig9.9/1": "explains"}, [("contradicted", False), ("holds", True)], True),
        ({"ho2008-fig9.9/1": "explains"}, [("contradicted", False), ("contradicted", True)], False),
        ({"ho2008-fig9.9/1": "holds"}, [("undecided", False)], False),
        ({"ho2008-fig9.9/1": "holds"}, [("holds", False), ("not run yet", False)], True),  # the longer form
        ({"ho2008-fig9.9/1": "holds"}, [("not run yet", False)], False),
        ({"ho2008-fig9.9/1": "holds"}, [], False),
        ({}, [("holds", False)], False),
    ],
)
def test_a_sentence_that_no_run_shows_is_called_a_conjecture(
    shown: dict[str, str], evidence: list[tuple[str, bool]], *, is_shown: bool
) -> None:
    one = entry()
    thesis = catalogue(shown, one)
    proofs = [Evidence("1", "order", held, "a.yml", "why", "", "5", explains=wrong) for held, wrong in evidence]  # type: ignore[arg-type]
    entries = {one.id: judged(one, proofs)}
    page = "".join(learned.section({"ho2008": thesis}, entries))
    assert ("*Conjecture:*" not in page) is is_shown
    assert learned.is_shown(thesis.learned[0], entries) is is_shown
    assert "Linux does it otherwise." in page


def test_a_sentence_about_what_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"learned: ho2008-fig9\.9/7 is no part of an entry"):
        catalogue({"ho2008-fig9.9/7": "holds"}, entry())


def test_what_nobody_can_reproduce_is_listed_with_its_reason() -> None:
    lost = entry(comparable="no", reason="a drawing | of something")
    part = entry(id="ho2008-fig9.8", left_out={"2": "the setting is lost"})
    thesis = Catalogue(catalogue="ho2008", thesis="A thesis", entries=[lost, part])
    page = "".join(learned.section({"ho2008": thesis}, {}))
    assert "1 entries, and 1 parts of others" in page
    assert "| ho2008-fig9.9 | A figure | a drawing \\| of something |" in page
    assert "the setting is lost" in page


# --- bindings

DRAWN = (
    "sweep: {parameters: {rate: topology.params.rate}, drawn: {seed: 1, around: {rate: {value: 5mbit, factor: 2}}}}\n"
)


@pytest.mark.parametrize(
    ("claim", "sweep", "message"),
    [
        ("off_point: [t2000-fig1/1]", "", "nothing is drawn; write sweep.drawn"),
        ("off_point: [t2000-fig2/1]", DRAWN, "no catalogue has an entry 't2000-fig2'; did you mean t2000-fig1?"),
        ("off_point: [t2000-fig1/4]", DRAWN, "t2000-fig1 has no part '4'"),
        ("choice: [t2000-fig1/1]", DRAWN, "t2000-fig1 leaves 0 things open"),
        ("differs: known", DRAWN, "name what it is about, with off_point or choice"),
    ],
)
def test_a_claim_beyond_the_points_names_what_it_is_about(tmp_path: Path, claim: str, sweep: str, message: str) -> None:
    for folder in ("t2000", "drawn"):
        (tmp_path / "experiments" / folder).mkdir(parents=True)
    (tmp_path / "experiments/t2000/catalogue.yaml").write_text(CATALOGUE)
    line = f"claims:\n  - {{source: x, metric: goodput_mbps, bounds: {{min: 1}}, {claim}}}\n"
    (tmp_path / "experiments/drawn/a.yml").write_text(lab.SMALL + sweep + line)
    with pytest.raises(SpecError) as caught:
        read(tmp_path)
    assert message in str(caught.value)


def test_a_claim_of_a_thesis_setting_is_not_one_beyond_it(tmp_path: Path) -> None:
    line = "claims:\n  - {source: x, metric: goodput_mbps, bounds: {min: 1}, decides: [t2000-fig1/1], off_point: [t2000-fig1/1]}\n"
    with pytest.raises(SpecError) as caught:
        prepare(lab.write(tmp_path, lab.SMALL + DRAWN + line))
    assert "is about the thesis' setting" in str(caught.value)


def test_every_algorithm_s_main_claim_is_asked_on_ten_drawn_paths() -> None:
    """One experiment at least for each thesis; each with ten paths."""
    bindings = read()
    drawn = [bound for bound in bindings.beyond if Path(bound.file).parent.name == "drawn"]
    theses = {entry.partition("-")[0] for bound in drawn for entry in bound.beyond}
    assert theses == set(bindings.theses)
    for bound in drawn:
        assert bound.experiment.sweep is not None
        assert len(bound.experiment.sweep.paths()) == 10, bound.file


def test_each_main_claim_has_been_tried_on_ten_drawn_paths_and_decided_on_all() -> None:
    """On the page that is in the repository: a path whose runs cannot say anything is a setting to mend."""
    page = (lab.ROOT / "docs/reproduction/README.md").read_text()
    rows = page.partition("## Off the published points")[2].partition("\n## ")[0].split("\n| ")[2:]
    for row in rows:
        tallied = re.search(r"holds on \*\*(\d+) of (\d+)\*\*(?: \(not on (\d+)\))?;", row)
        assert tallied, row
        holds, tried, fails = (int(n or 0) for n in tallied.groups())
        assert tried >= 10 and holds + fails == tried, row
    assert len(rows) >= 15
