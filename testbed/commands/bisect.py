# SPDX-License-Identifier: Apache-2.0
"""`./warpbed bisect EXPERIMENT --claim NAME --good TREE@REV --bad TREE@REV`: after which commit of a module, or of a kernel, a claim
no longer holds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from base.errors import UsageError
from base.text import clean, json_text
from base.watcher import watched_folder
from testbed.bisection.history import Commit, History
from testbed.bisection.kernels import KernelHistory, KernelTrials, is_kernel
from testbed.bisection.search import Verdict, first_bad
from testbed.bisection.trial import Judged, Trials
from testbed.commands.arguments import results
from testbed.commands.output import add_format, render, spoken_aside

HELP = "find the commit of a module's or a kernel's git tree after which a claim no longer holds"
FOLDER = "bisections"
"""Below the results: a folder of results for each content that the tree's folder had."""


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("experiment", type=Path, help="experiment file, with the claim")
    command.add_argument(
        "--claim", required=True, metavar="NAME", help="the claim's number, or words of it that no other has"
    )
    command.add_argument(
        "--good", required=True, metavar="TREE@REV", help="a folder of a git tree, and where the claim holds"
    )
    command.add_argument("--bad", required=True, metavar="TREE@REV", help="the same folder, and where it does not")
    command.add_argument("--jobs", type=int, default=0, metavar="N", help="runs in parallel (default: one per CPU)")
    add_format(command)
    results(command)


def main(options: argparse.Namespace) -> int:
    """0 where the commit, or those of which it is one, is found."""
    if options.jobs < 0:
        raise UsageError("--jobs takes numbers from 1 on (0: one per CPU)")
    (tree, good_name), (other, bad_name) = _place("--good", options.good), _place("--bad", options.bad)
    if tree != other:
        raise UsageError(f"--good is in {tree}, --bad in {other}; both name revisions of one folder")
    if not options.experiment.is_file():
        raise UsageError(f"{options.experiment}: no such file")
    of_kernels = is_kernel(tree)
    history = KernelHistory(tree) if of_kernels else History(tree)
    line = history.line(history.commit(good_name), history.commit(bad_name))
    if len(line) < 2:
        raise UsageError(f"{tree}: nothing has changed from {good_name} to {bad_name}")
    by_name = {commit.name: commit for commit in line}
    said: dict[str, Judged] = {}
    with watched_folder("warpbed-bisect-") as scratch, spoken_aside(options.format):
        trials = (KernelTrials if of_kernels else Trials)(
            history,
            options.experiment.resolve(),
            options.claim,
            options.results.resolve() / FOLDER,
            scratch,
            options.jobs,
        )

        def judge(name: str) -> Verdict:
            commit = by_name[name]
            print(clean(f"{commit.words}: "), end="", flush=True)
            said[name] = trials.judge(commit)
            why = f" ({said[name].why})" if said[name].why else ""
            print(clean(f"{said[name].verdict.value}{why}"), flush=True)
            return said[name].verdict

        for commit, wanted in ((line[0], Verdict.GOOD), (line[-1], Verdict.BAD)):
            if (seen := judge(commit.name)) is not wanted:
                raise UsageError(f"{commit.words}: the claim {_words(seen, said[commit.name])} here; {_remedy(wanted)}")
        first = first_bad([commit.name for commit in line], judge)
    suspects = [by_name[name] for name in first.suspects]
    if options.format != "table":
        rows = [_row(commit, said.get(commit.name), commit in suspects) for commit in line]
        print(json_text(rows) if options.format == "json" else render(rows, options.format), end="")
        return 0
    print(_answer(suspects, line))
    return 0


def _row(commit: Commit, judged: Judged | None, is_suspect: bool) -> dict[str, Any]:
    verdict = "" if judged is None else judged.verdict.value
    return {"commit": commit.name, "subject": commit.subject, "verdict": verdict, "suspect": is_suspect}


def _place(option: str, text: str) -> tuple[Path, str]:
    tree, _, revision = text.rpartition("@")
    if not tree or not revision or revision.startswith(("-", "{")):
        raise UsageError(f"{option} {text}: write TREE@REV, such as ~/src/mine@v1.2")
    return Path(tree).expanduser().resolve(), revision


def _words(seen: Verdict, judged: Judged) -> str:
    return f"cannot be judged ({judged.why})" if seen is Verdict.SKIPPED else seen.value


def _remedy(wanted: Verdict) -> str:
    return (
        "name an older --good" if wanted is Verdict.GOOD else "name a --bad where it fails, or there is nothing to find"
    )


def _answer(suspects: list[Commit], line: list[Commit]) -> str:
    if len(suspects) == 1:
        return (
            f"the claim holds before {suspects[0].words} and not after it ({len(line)} commits that change the sources)"
        )
    listed = "\n".join(f"  {commit.words}" for commit in suspects)
    return f"the claim no longer holds after one of these {len(suspects)} commits; those between could not be judged:\n{listed}"
