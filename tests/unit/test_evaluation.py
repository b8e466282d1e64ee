# SPDX-License-Identifier: Apache-2.0
"""Evaluations: an algorithm takes the place of the one under test, and what its claims came to stands on page, JSON, JUnit and table."""

from __future__ import annotations

import dataclasses
import html
import json
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from analysis.evaluation.outcomes import (
    FAILS,
    NOT_RUN,
    PASSES,
    UNDECIDED,
    Judged,
    Measured,
    Said,
    Value,
    as_data,
    outcome_of,
)
from analysis.evaluation.page import page
from analysis.evaluation.table import table
from base.errors import SpecError, UsageError, WarpbedError
from kernels import series
from schema.claims import Sides
from schema.names import algorithms
from testbed import junit
from testbed.evaluation import kernels
from testbed.evaluation.derive import FOLDER, UNDER_TEST, derived, evaluations, written
from testbed.evaluation.modules import checkout, name_of
from testbed.experiments import prepare
from tests import lab

ALL = evaluations()
RFC_MUST = {"beside-cubic", "beside-reno", "path-change", "short-flows", "tail-drop"}


def words_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set().union(*map(words_in, value.values()), map(str, value))
    return set().union(*map(words_in, value)) if isinstance(value, list) else {str(value)}


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_every_file_is_one_criterion_with_cubic_and_reno_in_its_cells(one: Any) -> None:
    assert one.data["name"] == f"evaluate-{one.name}" and one.criterion.section in one.data["source"]
    assert {"cubic", "reno"} <= set(one.data["sweep"]["factorial"][UNDER_TEST])
    assert one.data["claims"] and one.data["metrics"]
    for claim in one.data["claims"]:
        whose = (
            ("this project's", "the draft's")
            if one.criterion.document == "draft-ietf-ccwg-bbr"
            else ("this project's",)
        )
        assert claim["source"].startswith(f"{one.criterion.document}, ")
        assert claim["source"].endswith(tuple(f"; the bound is {by}" for by in whose))
    assert (one.criterion.level == "MUST") == (one.name in RFC_MUST)


@pytest.mark.parametrize("algorithm", ["medley", "cubic"])
@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_an_algorithm_takes_the_place_of_the_one_under_test(one: Any, algorithm: str, tmp_path: Path) -> None:
    data = derived(one, algorithm, quick=True)
    swept = data["sweep"]["factorial"].pop(UNDER_TEST)
    assert swept[-1] == algorithm and len(set(swept)) == len(swept)
    assert all(len(values) == 1 for values in data["sweep"]["factorial"].values())
    assert "bbr" not in words_in([data["claims"], data["sweep"]])
    asked = prepare(written(one, algorithm, True, tmp_path))
    assert asked.errors == []
    assert len(asked.runs) == 2 * len(swept)
    for claim in asked.experiment.claims:
        if isinstance(claim.relation, Sides):
            assert claim.relation.first.where != claim.relation.second.where
            assert claim.relation.first.where[UNDER_TEST] == algorithm


def test_the_whole_form_is_the_file_s_own(tmp_path: Path) -> None:
    tail_drop = next(one for one in ALL if one.name == "tail-drop")
    runs = prepare(written(tail_drop, "bbr", False, tmp_path)).runs
    assert [(run.label(), run.seed) for run in runs] == [
        (run.label(), run.seed) for run in prepare(tail_drop.path).runs
    ]
    assert {run.run_id("virtual", "k") for run in runs} == {
        run.run_id("virtual", "k") for run in prepare(tail_drop.path).runs
    }


def test_a_link_in_the_place_of_a_derived_file_is_not_followed(tmp_path: Path) -> None:
    one = evaluations()[0]
    file = written(one, "bbr", True, tmp_path / "results")
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    file.unlink()
    file.symlink_to(mine)
    assert written(one, "bbr", True, tmp_path / "results") == file and not file.is_symlink()
    assert mine.read_text() == "mine"


def test_the_runs_of_cubic_are_the_same_whoever_is_under_test(tmp_path: Path) -> None:
    for one in ALL[::4]:
        ids = [
            {
                run.run_id("virtual", "k")
                for run in prepare(written(one, name, True, tmp_path)).runs
                if run.params["cca"] == "cubic"
            }
            for name in ("medley", "bbr", "reno")
        ]
        assert ids[0] == ids[1] == ids[2] and len(ids[0]) == 2


def test_the_default_kernel_is_not_named_and_another_one_is(tmp_path: Path) -> None:
    """Runs that are there for the default kernel stay the answer; another kernel's derived files have a folder of their own."""
    one = next(one for one in ALL if one.name == "collapse")
    assert "kernel" not in derived(one, "bbr", True, series.DEFAULT)
    older, newer = (written(one, "bbr", True, tmp_path, kernel) for kernel in ("6.1", series.DEFAULT))
    assert older.parent.parent.name == "quick-6.1" and newer.parent.parent.name == "quick"
    assert {run.experiment.kernel for run in prepare(older).runs} == {"6.1"}
    ids = [{run.run_id("virtual", "k") for run in prepare(file).runs} for file in (older, newer)]
    assert not ids[0] & ids[1]


def test_what_a_kernel_lacks_is_not_run_and_the_reason_is_on_page_and_in_json(tmp_path: Path) -> None:
    only = ["--only", "accurate-ecn,geo", "--quick", "--no-run", "--results", str(tmp_path)]
    lab.warpbed("evaluate", "cubic", "--kernel", "6.1", *only, timeout_s=1500)
    folder = tmp_path / "evaluations/cubic-6.1"
    lacking, other = json.loads((folder / "evaluation.json").read_text())["criteria"]
    assert lacking["outcome"] == NOT_RUN and "CONFIG_NET_SCH_DUALPI2" in lacking["why_not"]
    assert other["outcome"] == NOT_RUN and other["why_not"] == ""
    assert lacking["why_not"] in html.unescape((folder / "index.html").read_text())
    assert json.loads((folder / "evaluation.json").read_text())["kernel"] == "6.1"


def test_a_tree_is_built_and_the_build_s_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    """The build is imitated: the command that makes it is not."""
    build = tmp_path / "build"
    build.mkdir()
    (build / "build.json").write_text(
        json.dumps({"arch": "um", "series": "6.1", "key": "abc", "kernel_release": "6.1.9"})
    )
    assert kernels.build_of(build) == build
    tree = tmp_path / "tree"
    (tree / "arch/um").mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = 0\n")
    asked: list[list[str]] = []

    def builder(code: int) -> Any:
        def run(words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
            asked.append(words)
            return subprocess.CompletedProcess(words, code)

        return run

    with pytest.raises(WarpbedError, match="does not build"):
        kernels.build_of(tree, builder(1))
    assert asked == [["./warpbed", "build-kernels", "--source", str(tree)]]
    with pytest.raises(WarpbedError, match="not in the cache"):
        kernels.build_of(tree, builder(0))


def test_builds_that_cannot_be_evaluated_are_refused(tmp_path: Path) -> None:
    (tmp_path / "build.json").write_text('{"arch": "x86"}')
    for kernel, words in (
        ("6.2", "neither a series (6.1, 6.12, 7.2) nor a kernel's tree, tarball or build"),
        (tmp_path, "a build for x86"),
    ):
        assert words in lab.inside("evaluate", "cubic", "--kernel", kernel, "--results", tmp_path / "r", code=2)
    table = ["--table", str(tmp_path / "t.md")]
    assert "leave it or --kernel out" in lab.inside("evaluate", "cubic", "--kernel", "6.1", *table, code=2)
    assert "--module is built for a series" in lab.inside(
        "evaluate", "--module", tmp_path, "--kernel", tmp_path, code=2
    )
    assert not (tmp_path / "t.md").exists()


def test_cubic_is_compared_with_reno(tmp_path: Path) -> None:
    beside = next(one for one in ALL if one.name == "beside-cubic")
    asked = prepare(written(beside, "cubic", True, tmp_path)).experiment
    says = [claim.says for claim in asked.claims]
    assert says[:2] == [
        "CUBIC gets at least half of what Reno leaves it.",
        "Beside CUBIC it gets at least a quarter of what Reno gets.",
    ]


def test_a_file_without_a_criterion_is_refused(tmp_path: Path) -> None:
    text = (FOLDER / "geo.yml").read_text()
    head, _, rest = text.partition("criterion:")
    lab.write(tmp_path, head + rest.partition("asks:")[2].partition("\n")[2], "geo.yml")
    with pytest.raises(SpecError, match="an evaluation says what it evaluates"):
        evaluations(tmp_path)
    lab.write(tmp_path, text.replace("level: ought", "level: OUGHT"), "geo.yml")
    with pytest.raises(SpecError, match="'MUST', 'SHOULD', 'should', 'ought' or 'described'"):
        evaluations(tmp_path)
    lab.write(tmp_path, text.replace("cca: [cubic, reno, bbr]", "cca: [bbr]"), "geo.yml")
    with pytest.raises(SpecError, match="of which the last is under test"):
        evaluations(tmp_path)


@pytest.mark.parametrize(
    ("outcomes", "outcome"),
    [
        (["holds", "holds"], PASSES),
        (["holds", "undecided"], UNDECIDED),
        (["holds", "not comparable"], UNDECIDED),
        (["undecided", "contradicted", "holds"], FAILS),
        (["not comparable"], NOT_RUN),
        ([], NOT_RUN),
    ],
)
def test_a_criterion_is_as_its_weakest_claim(outcomes: list[str], outcome: str) -> None:
    assert outcome_of(outcomes) == outcome


def judged(outcome: str, *claims: str) -> Judged:
    said = tuple(
        Said(
            f"It is <b>{word}</b> & so",
            "utilization: a / b",
            word,
            "why",
            ({"says": "a / b", "outcome": word, "estimate": 2.5},),
        )
        for word in claims
    )
    values = (
        Value("cubic", "", 2.0, 1.5, 2.5, 3, False),
        Value("mine", "", 4.0, 4.0, 4.0, 2, True),
        Value("reno", "", None, None, None, 0, False),
    )
    return Judged(
        "geo", "A title", "A question?", "Paths with High Delay", "ought", "not presume", outcome, said,
        (Measured("utilization", "Utilisation", "", values),), {"valid": 6},
    )  # fmt: skip


def test_page_json_junit_and_table_say_the_same(tmp_path: Path) -> None:
    results = [judged(FAILS, "holds", "contradicted", "undecided")]
    junit.write(tmp_path / "junit.xml", "evaluate.mine", junit.of_criteria(results))
    (suite,) = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert {key: suite.get(key) for key in ("tests", "failures", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "skipped": "1",
    }
    assert [len(case.findall("failure")) for case in suite] == [0, 1, 0]
    markup = page("mine", results, {"kernel": "7.2", "quick": True, "command": "c", "files": {"JSON": "e.json"}})
    assert "It is &lt;b&gt;contradicted&lt;/b&gt; &amp; so" in markup and "<b>" not in markup
    assert "2.000 (1.500 … 2.500)" in markup and 'width="100.0"' in markup and 'width="50.0"' in markup
    (data,) = json.loads(json.dumps(as_data(results)))
    assert data["outcome"] == FAILS and data["rfc"]["section"] == "Paths with High Delay"
    text = table({"mine": results, "other": [judged(PASSES, "holds")]}, quick=True)
    assert "| [geo](../experiments/evaluate/geo.yml) | Paths with High Delay | ought | ✕ | ✓ |" in text
    assert "- geo: It is <b>contradicted</b> & so (utilization: cubic 2.000; mine 4.000)" in text


def test_the_page_of_documentation_lists_every_criterion() -> None:
    text = (lab.ROOT / "docs/evaluation.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| [")]
    assert len(rows) == len(ALL)
    for one, row in zip(ALL, rows, strict=True):
        document = "" if one.criterion.document == "RFC 9743" else f"{one.criterion.document}: "
        asked = f"{document}{one.criterion.section} | {one.criterion.level}"
        assert row.startswith(f"| [{one.name}](../experiments/evaluate/{one.name}.yml) | {asked} |")
    header = next(line for line in text.splitlines() if line.startswith("| criterion |"))
    assert set(header.replace(" ", "").split("|")[4:-1]) <= set(algorithms())


def test_bad_calls_say_what_is_allowed(tmp_path: Path) -> None:
    assert "did you mean medley?" in lab.inside("evaluate", "medly", code=2)
    assert "did you mean collapse?" in lab.inside(
        "evaluate", "cubic", "--only", "colapse", "--results", tmp_path, code=2
    )
    assert "name an algorithm of ./warpbed list algorithms" in lab.inside("evaluate", code=2)
    assert "no such folder" in lab.inside("evaluate", "--module", tmp_path / "none", code=2)
    assert not (tmp_path / "evaluations").exists()


def test_nothing_is_called_passed_that_has_not_run(tmp_path: Path) -> None:
    text = lab.inside("evaluate", "medley", "--quick", "--no-run", "--results", tmp_path)
    assert f"medley: {len(ALL)} not run" in text
    data = json.loads((tmp_path / "evaluations/medley/evaluation.json").read_text())
    assert {one["outcome"] for one in data["criteria"]} == {NOT_RUN}


def test_a_module_of_the_user_s_gets_a_checkout_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    with pytest.raises(UsageError, match=r"there is none"):
        name_of(folder)
    (folder / "tcp_eta.c").write_text("/* eta */")
    assert name_of(folder) == "eta"
    copy = checkout(folder, tmp_path / "copy")
    assert (copy / "kernels/modules/tcp_eta.c").read_text() == "/* eta */"
    assert [file.name for file in (copy / "kernels/modules").glob("tcp_*.c")] == ["tcp_eta.c"]
    assert (copy / "kernels/modules/warp_wire.c").exists() and not (copy / "results").exists()
    assert not (lab.ROOT / "kernels/modules/tcp_eta.c").exists()
    (folder / "cc_common.h").write_text("")
    with pytest.raises(UsageError, match=r"cc_common\.h is the project's own"):
        checkout(folder, tmp_path / "copy")
    (folder / "tcp_theta.c").write_text("")
    with pytest.raises(UsageError, match=r"tcp_eta\.c, tcp_theta\.c"):
        name_of(folder)


def test_a_page_keeps_what_is_not_evaluated_now() -> None:
    """Of the same form: other algorithms' columns, other criteria's rows with their reasons; rows of criteria that are gone go."""
    first = table({"mine": [judged(FAILS, "contradicted")], "other": [judged(PASSES, "holds")]}, quick=True)
    leo = dataclasses.replace(judged(PASSES, "holds"), name="leo", document="draft-ietf-ccwg-bbr", section="A case")
    both = table({"mine": [leo]}, quick=True, before=first, criteria=["geo", "leo"])
    assert "| [geo](../experiments/evaluate/geo.yml) | Paths with High Delay | ought | ✕ | ✓ |" in both
    assert "| [leo](../experiments/evaluate/leo.yml) | draft-ietf-ccwg-bbr: A case | ought | ✓ | – |" in both
    assert "- geo: It is <b>contradicted</b> & so (utilization: cubic 2.000; mine 4.000)" in both
    assert "| not run | | | 0 | 1 |" in both
    again = table({"mine": [judged(PASSES, "holds")]}, quick=True, before=both, criteria=["geo", "leo"])
    assert again.count("✕ |") == 0 and "contradicted" not in again
    assert "geo" not in table({"mine": [leo]}, quick=True, before=both, criteria=["leo"])
    assert (
        "other" not in table({"mine": [leo]}, quick=False, before=both, criteria=["geo", "leo"]).partition("## Who")[2]
    )
