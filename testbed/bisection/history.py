# SPDX-License-Identifier: Apache-2.0
"""The commits of a git tree that holds an algorithm's module: which there are, and the module as it was at each."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from base.cache import digest
from base.errors import UsageError

MAX_FILE_BYTES = 4 << 20
MAX_COMMITS = 100_000
REGULAR = ("100644", "100755")


@dataclass(frozen=True)
class Commit:
    """name: its whole hash; content: a hash of the folder's C files and headers at it, equal where none of them has changed"""

    name: str
    content: str
    subject: str

    @property
    def words(self) -> str:
        return f"{self.name[:12]} {self.subject}"


class History:
    """A folder of a git tree, which is read and never changed."""

    def __init__(self, folder: Path) -> None:
        """Raises UsageError where the folder is in no git tree."""
        self.folder = folder
        if not folder.is_dir():
            raise UsageError(f"{folder}: no such folder; TREE@REV is a folder of a git tree and a revision of it")
        self._prefix = self._git("rev-parse", "--show-prefix").strip()

    def commit(self, revision: str) -> Commit:
        """Raises UsageError where there is no such revision, or the folder is not in it."""
        name = self._git(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", about=revision
        ).strip()
        sources = self._sources(name, revision)
        subject = self._git("log", "-1", "--format=%s", name).strip()
        return Commit(name, digest(sorted(sources.items())), subject)

    def _sources(self, name: str, about: str) -> dict[str, str]:
        """The C files and headers of the folder at a commit: name → blob."""
        tree = f"{name}:{self._prefix.rstrip('/')}"
        texts = {}
        listed = self._git(
            "ls-tree", "--full-tree", "-z", "--long", tree, about=f"{about}, or no folder {self._prefix or '.'} in it,"
        )
        for entry in filter(None, listed.split("\0")):
            facts, _, file = entry.partition("\t")
            mode, kind, blob, size = facts.split()
            if kind != "blob" or mode not in REGULAR or Path(file).suffix not in (".c", ".h"):
                continue
            if int(size) > MAX_FILE_BYTES:
                raise UsageError(f"{about}: {file} has {size} bytes; a source has at most {MAX_FILE_BYTES}")
            texts[Path(file).name] = blob
        return texts

    def line(self, good: Commit, bad: Commit) -> list[Commit]:
        """The first parents from good to bad, both included, without those that change none of the folder's C files.

        Raises UsageError where good is not one of bad's first parents.
        """
        names = self._git("rev-list", "--first-parent", f"--max-count={MAX_COMMITS}", bad.name).split()
        if good.name not in names:
            raise UsageError(
                f"{good.name[:12]} is not among the first parents of {bad.name[:12]}; --good is an older commit of the same line"
            )
        commits = [good]
        for name in reversed(names[: names.index(good.name)]):
            commit = self.commit(name)
            if commit.content != commits[-1].content:
                commits.append(commit)
        return commits

    def write(self, commit: Commit, target: Path) -> None:
        """The C files and headers of the folder as they were, into a new folder."""
        target.mkdir(parents=True)
        for file, blob in self._sources(commit.name, commit.words).items():
            (target / file).write_bytes(self._run("cat-file", "blob", blob).stdout)

    def _git(self, *arguments: str, about: str = "") -> str:
        done = self._run(*arguments)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise UsageError(
                f"{self.folder}: {f'no revision {about!r} here' if about else 'git ' + arguments[0]}{': ' + said if said else ''}"
            )
        return done.stdout.decode(errors="replace")

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        try:
            return subprocess.run(
                ["git", "-C", str(self.folder), *arguments],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env=environment,
            )
        except FileNotFoundError as error:
            raise UsageError("git is not installed. As root: apt-get install --no-install-recommends git") from error
