# SPDX-License-Identifier: Apache-2.0
"""Costly tests that have passed with all that decides them as it is now: the whole test does not run them again.

Two fifths of what the whole test computes are emulated machines and plays that are run on them, and most changes touch nothing
that they could notice. So each test that `--quick` leaves out is remembered, once it has passed, by the checkout's files (less the other
files of tests, and what NO_PART names), this machine's packages, its kernel, its user and the kernels that were built. Such a test is
shown as skipped, with the day on which it passed. Tests that are chosen by file, name or marker always run, and WARPBED_FRESH_GUESTS=1
runs all. One that fails is forgotten, and all of its file's tests run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

import pytest

from base.cache import digest, recall, remember
from base.errors import WarpbedError
from base.paths import cache_dir
from hosts.virtual.kernel import find
from hosts.vm.builds import find as find_builds
from tests.kept_results import FRESH
from tests.remembered import contents

READ_ALL = (
    *(
        f"guest/test_{name}"
        for name in ("adding", "benchmark", "determinism", "notebooks", "telling_entries", "tutorial")
    ),
    "playbooks/test_inventories",
)
NO_PART: Mapping[str, tuple[str, ...]] = {
    "hosts": ("docs", "experiments", "analysis/reproduction"),
    "faults": ("docs", "experiments"),
    "guest": ("docs",),
    "playbooks": ("docs",),
    "store": ("docs",),
    **dict.fromkeys((f"tests/{name}.py" for name in READ_ALL), ()),
}
"""Folder of tests, or one of its files, → folders of the checkout that nothing in it reads. All others depend on every folder."""
NEVER = frozenset({"browser", "style", "unit"})
"""Folders of tests that run each time: quick ones, those that remember for themselves, and those whose screenshots are looked at."""
NOWHERE = ("CHANGELOG.md", "tests/held.py")
"""Files that decide nothing of what a costly test finds, as no folder's README.md does outside docs/."""
NO_SETTINGS = frozenset(
    f"WARPBED_{name}" for name in ("ARTIFACTS", "CACHE", "DEV", "FRESH_GUESTS", "PYTEST", "STATUS", "TERMINAL")
)
"""Say where something is put, or are of one run of the tests; all others may decide what a test finds."""
REASON = "passed on {day} with the same code, packages and kernels; WARPBED_FRESH_GUESTS=1 runs it"


def keys(files: Mapping[str, str], machine: object) -> dict[str, str]:
    """For each file of costly tests what identifies all that decides them.

    files: the checkout's files by their digests; machine: what else there is
    """
    tests = {name for name in files if _is_of_tests(PurePath(name))}
    shared = {name: sha256 for name, sha256 in files.items() if name not in tests and not _is_nowhere(name)}
    others: dict[tuple[str, ...], str] = {}
    found = {}
    for name in sorted(tests):
        folder = PurePath(name).parts[1]
        if folder in NEVER:
            continue
        unread = NO_PART.get(name, NO_PART.get(folder, ()))
        if unread not in others:
            others[unread] = digest([{file: shared[file] for file in shared if not _is_in(file, unread)}, machine])
        found[name] = digest([others[unread], name, files[name]])[:32]
    return found


def _is_of_tests(name: PurePath) -> bool:
    return name.parts[0] == "tests" and len(name.parts) > 2 and name.name.startswith("test_") and name.suffix == ".py"


def _is_nowhere(name: str) -> bool:
    return name in NOWHERE or (PurePath(name).name == "README.md" and not name.startswith("docs/"))


def _is_in(name: str, folders: Iterable[str]) -> bool:
    return any(name.startswith(f"{folder}/") for folder in folders)


def machine() -> list[object]:
    """What decides a test beside the checkout: Python, packages, the kernel here, the user, settings, and what was built."""
    settings = {
        name: value for name, value in os.environ.items() if name.startswith("WARPBED_") and name not in NO_SETTINGS
    }
    system = os.uname()
    return [
        sys.version,
        packages(),
        [system.release, system.machine, os.geteuid(), os.access("/dev/kvm", os.R_OK | os.W_OK)],
        settings,
        _built(),
    ]


def packages() -> list[str]:
    """State, name and version of each package that dpkg knows."""
    shown = ["dpkg-query", "--show", "--showformat=${db:Status-Abbrev}${Package} ${Version}\\n"]
    return subprocess.run(shown, capture_output=True, text=True, check=True).stdout.splitlines()


def _built() -> list[str | None]:
    """Keys of the virtual host's kernel and of what virtual machines boot; None for what is not there."""
    built: list[str | None] = []
    for looked_for in (find, find_builds):
        try:
            built.append(looked_for("default").key)
        except WarpbedError:
            built.append(None)
    return built


class Memory:
    """Of the process that sees all reports: which tests have passed before, and which pass now."""

    def __init__(self, cache: Path, now: Mapping[str, str]) -> None:
        """now: each file's key (see `keys`)."""
        self._cache, self._now = cache, now
        self._passed = {name: dict(recall(cache, _question(name, key)) or {}) for name, key in now.items()}
        self._called: set[str] = set()

    def days(self) -> dict[str, str]:
        """The day on which each test has passed, "" for one that was skipped; none of them where all are to run."""
        if os.environ.get(FRESH):
            return {}
        return {test: day for passed in self._passed.values() for test, day in passed.items()}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test has passed once its tidying has; it is written down at once, for a run that is stopped is not lost."""
        file, test = report.nodeid.partition("::")[0], report.nodeid
        if file not in self._now:
            return
        if report.failed:
            self._called.discard(test)
            self._note(file, test, None)
        elif report.skipped:
            self._called.discard(test)
            if not is_held(report):
                self._note(file, test, "")
        elif report.when == "call":
            self._called.add(test)
        elif report.when == "teardown" and test in self._called:
            self._note(file, test, datetime.now(UTC).date().isoformat())

    def _note(self, file: str, test: str, day: str | None) -> None:
        passed = self._passed[file]
        if passed.get(test) == day:
            return
        if day is None:
            del passed[test]
        else:
            passed[test] = day
        remember(self._cache, _question(file, self._now[file]), passed)


def _question(file: str, key: str) -> list[str]:
    return ["tests that have passed", file, key]


def memory(config: pytest.Config) -> Memory | None:
    """With all files of the checkout, and this machine; None where git or dpkg does not know them, or all chosen tests run always."""
    chosen = {(PurePath(argument.partition("::")[0]).parts[1:2] or ("",))[0] for argument in config.args}
    if config.option.markexpr or chosen <= NEVER:
        return None
    try:
        now = keys(contents(lambda name: True), machine())
    except (OSError, subprocess.CalledProcessError):  # a copy without its history, as from an archive; no Debian
        return None
    return Memory(cache_dir(), now)


def leave_out(items: Iterable[Any], days: Mapping[str, str]) -> set[str]:
    """Mark the tests that have passed as skipped, in files with no other but what was skipped before; returns these files' names.

    A file with a test that has failed, or that is new, runs as a whole: tests may use what those before them have made.
    """
    files: dict[str, list[Any]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    left_out = {file: tests for file, tests in files.items() if all(test.nodeid in days for test in tests)}
    for test in (test for tests in left_out.values() for test in tests):
        if day := days[test.nodeid]:
            test.add_marker(pytest.mark.skip(reason=REASON.format(day=day)))
    return set(left_out)


def is_held(report: pytest.TestReport) -> bool:
    """Whether a report says that a test was left out for this."""
    said = REASON.partition("{")[0]
    return report.skipped and isinstance(report.longrepr, tuple) and said in str(report.longrepr[2])
