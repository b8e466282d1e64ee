# SPDX-License-Identifier: Apache-2.0
"""The same of a kernel's own git tree: its commits, and one revision built as a kernel, run, and judged."""

from __future__ import annotations

import subprocess
from pathlib import Path

from base.cache import remove
from base.errors import UsageError, WarpbedError
from base.paths import ROOT
from kernels.build_key import find_build
from testbed.bisection.history import MAX_COMMITS, Commit, History
from testbed.bisection.search import Verdict
from testbed.bisection.trial import Judged, Trials, end

ARCHITECTURE = "arch/um"
"""What every tree of a kernel has, and this project builds."""


class KernelHistory(History):
    """The first parents of a kernel's git tree: a commit's content is all of it."""

    def __init__(self, folder: Path) -> None:
        """Raises UsageError where the folder is not the top of its git tree."""
        super().__init__(folder)
        if self._prefix:
            raise UsageError(
                f"{folder}: a kernel's source below the top of its git tree; only whole trees can be built"
            )

    def commit(self, revision: str) -> Commit:
        name = self._git(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", about=revision
        ).strip()
        content, _, subject = self._git("log", "-1", "--format=%T %s", name).strip().partition(" ")
        return Commit(name, content, subject)

    def line(self, good: Commit, bad: Commit) -> list[Commit]:
        """The first parents from good to bad, both included, without those that change nothing.

        Raises UsageError where good is not one of bad's first parents.
        """
        text = self._git("log", "--first-parent", f"--max-count={MAX_COMMITS}", "--format=%H %T %s", bad.name)
        listed = [Commit(*row.split(" ", 2)) for row in text.splitlines()]
        names = [commit.name for commit in listed]
        if good.name not in names:
            raise UsageError(
                f"{good.name[:12]} is not among the first parents of {bad.name[:12]}; --good is an older commit of the same line"
            )
        commits = [good]
        for commit in reversed(listed[: names.index(good.name)]):
            if commit.content != commits[-1].content:
                commits.append(commit)
        return commits

    def write(self, commit: Commit, target: Path) -> None:
        """All files as they were, into a new folder; the tree itself is not touched."""
        target.mkdir(parents=True)
        with subprocess.Popen(["git", "-C", self.folder, "archive", commit.name], stdout=subprocess.PIPE) as archive:
            subprocess.run(["tar", "-x", "-C", target], stdin=archive.stdout, check=True)
        if archive.returncode:
            raise UsageError(f"{commit.words}: git archive failed (exit code {archive.returncode})")


class KernelTrials(Trials):
    """Each revision's tree is built by this checkout as `./warpbed build-kernels --source` does; builds are kept by their content."""

    def judge(self, commit: Commit) -> Judged:
        source = self.scratch / "source" / commit.name
        self.history.write(commit, source)
        try:
            built = self.run(["build-kernels", "--source", str(source)], ROOT)
            if built.returncode:
                return Judged(Verdict.SKIPPED, f"does not build: {end(built)}")
            build = find_build(str(source)).path
        except WarpbedError as error:
            return Judged(Verdict.SKIPPED, f"does not build: {error}")
        finally:
            remove(source)  # a kernel's tree takes more than a gigabyte
        return self.claimed(commit, ROOT, {"WARPBED_TEST_KERNEL": str(build)})


def is_kernel(folder: Path) -> bool:
    return (folder / ARCHITECTURE).is_dir()
