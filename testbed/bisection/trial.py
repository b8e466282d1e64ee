# SPDX-License-Identifier: Apache-2.0
"""One revision: its module in a checkout of its own, built, run, and the claim judged by its runs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from base.errors import UsageError
from testbed.bisection.history import Commit, History
from testbed.bisection.search import Verdict
from testbed.evaluation.modules import checkout, name_of

VERDICTS = {"holds": Verdict.GOOD, "contradicted": Verdict.BAD}
"""By a claim's outcome; undecided and not comparable say neither."""
LINES = 3


@dataclass(frozen=True)
class Judged:
    verdict: Verdict
    why: str


class Command(Protocol):
    """Runs `./warpbed` with these words in a checkout; more: of its environment."""

    def __call__(
        self, arguments: Sequence[str], folder: Path, /, more: Mapping[str, str] = ...
    ) -> subprocess.CompletedProcess[str]: ...


def command(
    arguments: Sequence[str], folder: Path, more: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        ["./warpbed", *arguments],
        cwd=folder,
        env=environment | dict(more),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


@dataclass(frozen=True)
class Trials:
    """What stays the same from one revision to the next.

    claim: a claim's number, from 1 on, or a part of its words that no other claim has
    results: where the runs of a revision are, in a folder named by what the tree's folder holds at it
    scratch: a folder for the checkout
    """

    history: History
    experiment: Path
    claim: str
    results: Path
    scratch: Path
    jobs: int
    run: Command = command

    def judge(self, commit: Commit) -> Judged:
        """Raises UsageError for what every revision would have: a file that is not valid, a claim that is not there."""
        source = self.scratch / "source" / commit.name
        if not source.exists():
            self.history.write(commit, source)
        try:
            name_of(source)
            copy = checkout(source, self.scratch / "checkout")
        except UsageError as error:
            return Judged(Verdict.SKIPPED, str(error).replace(f"--module {source}: ", ""))
        asked = self.run(["check", "--kernel", str(self.experiment)], copy)
        if asked.returncode:
            raise UsageError(f"at {commit.words}: {end(asked)}")
        for series in asked.stdout.split():
            built = self.run(["build-kernels", "--series", series], copy)
            if built.returncode:
                return Judged(Verdict.SKIPPED, f"does not build: {end(built)}")
        return self.claimed(commit, copy)

    def claimed(self, commit: Commit, copy: Path, more: Mapping[str, str] = MappingProxyType({})) -> Judged:
        """Make the runs in a checkout where all is built, and judge the claim by them."""
        place = ["--results", str(self.results / commit.content[:20])]
        execution = self.run(["run", str(self.experiment), *place, "--jobs", str(self.jobs)], copy, more)
        judged = self.run(["compare", str(self.experiment), *place, "--format", "json"], copy, more)
        try:
            claims = json.loads(judged.stdout)["claims"]
        except (ValueError, KeyError):
            return Judged(Verdict.SKIPPED, f"cannot be run: {end(execution) or end(judged)}")
        claim = chosen(self.claim, claims)
        verdict = VERDICTS.get(str(claim["outcome"]), Verdict.SKIPPED)
        return Judged(verdict, str(claim["outcome"]) if verdict is Verdict.SKIPPED else str(claim["reason"] or ""))


def chosen(wanted: str, claims: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The claim that is meant by a number or by a part of its words.

    Raises UsageError where that is none or several.
    """
    if wanted.isdigit() and 1 <= int(wanted) <= len(claims):
        return claims[int(wanted) - 1]
    fitting = [claim for claim in claims if wanted.lower() in f"{claim['says']} {claim['claim']}".lower()]
    if len(fitting) == 1 and not wanted.isdigit():
        return fitting[0]
    listed = "; ".join(f"{number}: {claim['says'] or claim['claim']}" for number, claim in enumerate(claims, start=1))
    problem = "is in the words of several claims" if fitting and not wanted.isdigit() else "names no claim"
    raise UsageError(f"--claim {wanted!r} {problem}; give a number or words of one: {listed or 'the file has none'}")


def end(done: subprocess.CompletedProcess[str]) -> str:
    """A compiler's errors where there are any, else the last lines."""
    lines = [line.strip() for line in (done.stderr.strip() or done.stdout.strip()).splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line]
    return " / ".join(errors[:LINES] or lines[-LINES:])
