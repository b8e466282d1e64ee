# SPDX-License-Identifier: Apache-2.0
"""Finding the commit after which a claim no longer holds: the search, the history that it reads, and how a revision is judged."""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from base.errors import UsageError
from kernels.build_key import find_build
from testbed.bisection.history import History
from testbed.bisection.kernels import KernelTrials
from testbed.bisection.search import Found, Verdict, first_bad
from testbed.bisection.trial import Trials, chosen
from testbed.commands import bisect
from tests import lab

CLAIMS = [
    {"says": "It keeps the queue short.", "claim": "queue_mean_packets at most 20", "outcome": "holds", "reason": ""},
    {"says": "It loses little.", "claim": "loss_rate at most 0.1", "outcome": "contradicted", "reason": "0.3"},
    {"says": "", "claim": "loss_rate at least 0", "outcome": "undecided", "reason": "one seed"},
]


@pytest.mark.parametrize("length", [2, 3, 4, 9, 100])
def test_every_first_bad_revision_is_found_in_as_many_steps_as_halving_takes(length: int) -> None:
    line = [f"r{i}" for i in range(length)]
    for bad in range(1, length):
        first = first_bad(line, lambda name: Verdict.BAD if int(name[1:]) >= bad else Verdict.GOOD)  # noqa: B023
        assert first.suspects == (f"r{bad}",)
        assert first.asked <= (length - 2).bit_length()


def test_what_cannot_be_judged_is_stepped_over_and_named_where_it_may_be_the_one() -> None:
    """r0 … r8, bad from r5 on: r4 skipped costs a question; with r5 skipped too, r4 to r6 are left, of which two were never judged."""

    def judge(*skipped: int) -> Found:
        def verdict(name: str) -> Verdict:
            i = int(name[1:])
            return Verdict.SKIPPED if i in skipped else Verdict.BAD if i >= 5 else Verdict.GOOD

        return first_bad([f"r{i}" for i in range(9)], verdict)

    assert judge().suspects == ("r5",)
    assert judge(4).suspects == ("r4", "r5")
    assert judge(4, 5).suspects == ("r4", "r5", "r6")
    assert judge(2, 7).suspects == ("r5",)
    assert judge(*range(1, 8)).suspects == tuple(f"r{i}" for i in range(1, 9))


class Repository:
    """A git tree with a module in the folder `mine`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tree"
        self.mine = self.folder / "mine"
        self.mine.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *argv: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", "-C", str(self.folder), *who, *argv], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, subject: str, **files: str) -> str:
        for name, text in files.items():
            (self.mine / name.replace("__", ".")).write_text(text)
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", subject)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_the_line_has_the_commits_that_change_sources_and_each_as_it_was(
    repository: Repository, tmp_path: Path
) -> None:
    first = repository.commit("one", tcp_mine__c="1", mine__h="h")
    repository.commit("words", notes__txt="x")
    repository.git("switch", "--quiet", "--create", "side")
    repository.commit("aside", tcp_mine__c="aside")
    repository.git("switch", "--quiet", "main")
    third = repository.commit("three", tcp_mine__c="3")
    repository.git("merge", "--quiet", "-s", "ours", "-m", "merged", "side")
    last = repository.commit("last", tcp_mine__c="4")
    history = History(repository.mine)
    line = history.line(history.commit(first), history.commit("HEAD"))
    assert [(commit.name, commit.subject) for commit in line] == [(first, "one"), (third, "three"), (last, "last")]
    for number, text in enumerate(("1", "3", "4")):
        history.write(line[number], tmp_path / str(number))
        contents = {file.name: file.read_text() for file in (tmp_path / str(number)).iterdir()}
        assert contents == {"tcp_mine.c": text, "mine.h": "h"}
    assert repository.git("status", "--porcelain") == ""
    with pytest.raises(UsageError, match="not among the first parents"):
        history.line(history.commit("side"), history.commit("HEAD"))
    with pytest.raises(UsageError, match="no revision 'v1'"):
        history.commit("v1")


def test_a_link_out_of_the_tree_is_not_followed(repository: Repository, tmp_path: Path) -> None:
    (repository.mine / "tcp_mine.h").symlink_to("/etc/passwd")
    repository.commit("link", tcp_mine__c="1")
    history = History(repository.mine)
    history.write(history.commit("HEAD"), tmp_path / "out")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["tcp_mine.c"]


def test_a_claim_is_named_by_its_number_or_by_words_that_no_other_has() -> None:
    assert chosen("2", CLAIMS) is chosen("LOSES", CLAIMS) is CLAIMS[1]
    for wanted, message in (
        ("loss_rate", "several claims"),
        ("4", "names no claim"),
        ("nothing", "2: It loses little."),
    ):
        with pytest.raises(UsageError, match=message):
            chosen(wanted, CLAIMS)


class FakeCommand:
    """`./warpbed` in a checkout: what is built is what the source says."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def __call__(
        self, argv: Sequence[str], folder: Path, more: Mapping[str, str] = MappingProxyType({})
    ) -> subprocess.CompletedProcess[str]:
        self.told.append(tuple(argv))
        source = (folder / "kernels/modules/tcp_mine.c").read_text()
        code, out, err = 0, "", ""
        if argv[0] == "check":
            out = "7.2\n"
        elif argv[0] == "build-kernels" and source == "broken":
            code, err = (
                1,
                "In file included …\ntcp_mine.c:7: error: no such thing\nEverything it printed: …\nplease read it\nall\n",
            )
        elif argv[0] == "compare":
            code, out = 1, json.dumps({"claims": CLAIMS})
        return subprocess.CompletedProcess(list(argv), code, out, err)


@pytest.mark.parametrize(
    ("source", "claim", "verdict", "why"),
    [
        ("works", "1", Verdict.GOOD, ""),
        ("works", "2", Verdict.BAD, "0.3"),
        ("works", "3", Verdict.SKIPPED, "undecided"),
        ("broken", "1", Verdict.SKIPPED, "does not build: tcp_mine.c:7: error: no such thing"),
    ],
)
def test_a_revision_is_judged_by_its_claim_and_skipped_where_that_cannot_be(
    repository: Repository, tmp_path: Path, source: str, claim: str, verdict: Verdict, why: str
) -> None:
    repository.commit("one", tcp_mine__c=source)
    history, fake = History(repository.mine), FakeCommand()
    commit = history.commit("HEAD")
    trials = Trials(history, tmp_path / "e.yml", claim, tmp_path / "results", tmp_path / "scratch", 1, fake)
    judged = trials.judge(commit)
    assert (judged.verdict, judged.why) == (verdict, why)
    runs = [argv for argv in fake.told if argv[0] == "run"]
    place = str(tmp_path / "results" / commit.content[:20])
    assert runs == ([] if source == "broken" else [("run", str(tmp_path / "e.yml"), "--results", place, "--jobs", "1")])


def test_a_revision_without_a_module_is_skipped(repository: Repository, tmp_path: Path) -> None:
    repository.commit("none yet", readme__h="")
    history = History(repository.mine)
    trials = Trials(history, tmp_path, "1", tmp_path, tmp_path / "scratch", 1, FakeCommand())
    judged = trials.judge(history.commit("HEAD"))
    assert judged.verdict is Verdict.SKIPPED and "one file tcp_NAME.c is needed" in judged.why


def test_what_cannot_be_bisected_is_refused_before_anything_is_built(repository: Repository, tmp_path: Path) -> None:
    first = repository.commit("one", tcp_mine__c="1")
    repository.commit("words", notes__txt="x")
    file, mine = lab.write(tmp_path, lab.SMALL), repository.mine

    def said(good: str, bad: str, experiment: Path = file) -> str:
        argv: list[Any] = [
            "bisect",
            experiment,
            "--claim",
            "1",
            "--good",
            good,
            "--bad",
            bad,
            "--results",
            tmp_path / "r",
        ]
        return lab.inside(*argv, code=2)

    assert "write TREE@REV" in said(f"{mine}", f"{mine}@HEAD")
    assert "write TREE@REV" in said(f"{mine}@--help", f"{mine}@HEAD")
    assert "both name revisions of one folder" in said(f"{mine}@{first}", f"{tmp_path}@HEAD")
    assert "no revision 'v9'" in said(f"{mine}@v9", f"{mine}@HEAD")
    assert "nothing has changed" in said(f"{mine}@{first}", f"{mine}@HEAD")
    assert "no such file" in said(f"{mine}@{first}", f"{mine}@HEAD", tmp_path / "none.yml")
    (mine / "arch/um").mkdir(parents=True)
    assert "below the top of its git tree" in said(f"{mine}@{first}", f"{mine}@HEAD")
    assert not (tmp_path / "r").exists()


class FakeKernels:
    """`./warpbed` where kernels take no time: what `build-kernels` is given is built, unless it is broken, and behaves as it says."""

    def __init__(self) -> None:
        self.built: dict[str, str] = {}
        self.runs: list[str] = []

    def __call__(
        self, argv: Sequence[str], folder: Path, more: Mapping[str, str] = MappingProxyType({})
    ) -> subprocess.CompletedProcess[str]:
        code, out, err = 0, "", ""
        if argv[0] == "build-kernels":
            source = Path(argv[argv.index("--source") + 1])
            text = (source / "net/ipv4/tcp_input.c").read_text()
            if "broken" in text:
                code, err = 1, "net/ipv4/tcp_input.c:9: error: expected declaration\n"
            else:
                self.built[str(find_build(str(source)).path)] = text
        elif argv[0] == "run":
            self.runs.append(self.built[more["WARPBED_TEST_KERNEL"]])
        elif argv[0] == "compare":
            outcome = "contradicted" if "late" in self.built[more["WARPBED_TEST_KERNEL"]] else "holds"
            out = json.dumps({"claims": [{"says": "On time.", "claim": "rtt", "outcome": outcome, "reason": ""}]})
        return subprocess.CompletedProcess(list(argv), code, out, err)


MAKEFILE = "VERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = 0\n"


def test_a_kernels_tree_is_bisected_by_builds_of_whole_revisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five commits, the third does not build, the fourth is the bad one: the kernels are imitated, the history is not."""
    repository = Repository(tmp_path)
    tree = repository.folder
    (tree / "arch/um").mkdir(parents=True)
    (tree / "arch/um/Makefile").touch()
    (tree / "net/ipv4").mkdir(parents=True)
    (tree / "Makefile").write_text(MAKEFILE)
    names = []
    for subject, text in (
        ("begin", "a"), ("tidy", "b"), ("half done", "broken"), ("wait longer", "late"), ("more", "late, more"),
    ):  # fmt: skip
        (tree / "net/ipv4/tcp_input.c").write_text(text)
        names.append(repository.commit(subject))
    fake = FakeKernels()
    monkeypatch.setattr(bisect, "KernelTrials", functools.partial(KernelTrials, run=fake))
    monkeypatch.setenv("WARPBED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache/sources").mkdir(parents=True)
    argv = ["--claim", "on time", "--good", f"{tree}@{names[0]}", "--bad", f"{tree}@main", "--format", "json"]
    parser = argparse.ArgumentParser()
    bisect.arguments(parser)
    options = parser.parse_args([str(lab.write(tmp_path, lab.SMALL)), *argv, "--results", str(tmp_path / "results")])
    assert bisect.main(options) == 0
    captured = capsys.readouterr()
    rows = json.loads(captured.out)
    assert [(row["subject"], row["verdict"]) for row in rows] == [
        ("begin", "holds"), ("tidy", "holds"), ("half done", "skipped"), ("wait longer", "does not hold"),
        ("more", "does not hold"),
    ]  # fmt: skip
    assert [row["subject"] for row in rows if row["suspect"]] == ["half done", "wait longer"]
    assert "does not build: net/ipv4/tcp_input.c:9: error: expected declaration" in captured.err
    assert "broken" not in fake.runs and len(fake.runs) == len(set(fake.runs)) == 4, "each revision is run once"
    assert repository.git("status", "--porcelain") == "" and not list(tmp_path.glob("**/source/*"))
