# SPDX-License-Identifier: Apache-2.0
"""The tutorial's commands do what its page shows, from the first to the last, in a copy of the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hosts.virtual.launch import GuestKernel
from tests import lab
from tests.checkout import copied

PAGE = lab.ROOT / "docs/tutorial.md"
FENCE = r"```{language}\n(.*?)```"
FILE = re.compile(r"<!-- file: (\S+) -->\n" + FENCE.format(language="yaml"), re.DOTALL)
STEP = re.compile(
    r"<!-- run(?P<fails>: fails)? -->\n"
    + FENCE.format(language="sh").replace("(", "(?P<commands>", 1)
    + r"(?:\s*"
    + FENCE.format(language="text").replace("(", "(?P<shown>", 1)
    + ")?",
    re.DOTALL,
)
VARIES = re.compile(r"[0-9a-f]{8}\b|\d+(?:\.\d+)?")
"""Hashes and numbers: they change with the kernel, the machine and the day."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # ten runs, two builds of modules, two comparisons
MEDLEY = "kernels/modules/tcp_medley.c"
"""The only one of the project's algorithms that the page runs; without the others builds are quick."""
SHORTER = {"duration: 60s": "duration: 34s", "repeats: 2": "repeats: 1"}
"""The quickstart for the test; the page shows sixty seconds and two seeds. Its guards hold from 30 s on, when Medley is steady."""


@dataclass(frozen=True)
class Step:
    commands: str
    shown: str
    fails: bool


def steps(text: str) -> list[Step]:
    return [Step(m["commands"], m["shown"] or "", bool(m["fails"])) for m in STEP.finditer(text)]


def missing(shown: str, output: str) -> list[str]:
    """Lines of the page that the output lacks. `…` stands for anything, and what varies is not compared."""
    printed = [VARIES.sub("#", " ".join(line.split())) for line in output.splitlines()]
    lacking = []
    for line in shown.splitlines():
        wanted = VARIES.sub("#", " ".join(line.split()))
        pattern = ".*".join(map(re.escape, wanted.split("…")))
        if not any(re.fullmatch(pattern, other) for other in printed):
            lacking.append(line)
    return lacking


def test_a_line_that_is_not_printed_is_noticed() -> None:
    assert missing("util 0.99\nholds: … 0.9\n", "util   0.98\nholds: utilization ≥ 0.9\n") == []
    assert missing("valid 1.0\n", "invalid 1.0\n") == ["valid 1.0"]


class Checkout:
    """A copy of this checkout."""

    def __init__(self, root: Path) -> None:
        self.root = copied(root)
        shutil.copy(lab.ROOT / MEDLEY, self.root / MEDLEY)
        quickstart = self.root / "experiments/quickstart.yml"
        text = quickstart.read_text()
        for old, new in SHORTER.items():
            assert text.count(old) == 1
            text = text.replace(old, new)
        quickstart.write_text(text)

    def run(self, commands: str) -> tuple[int, str]:
        """Run a step in a shell; returns its exit code and all that it printed."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment |= {"PYTHONPATH": str(self.root), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["sh", "-e", "-c", commands], cwd=self.root, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def checkout(kernel: GuestKernel, tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout")


def test_the_tutorial_works_as_it_is_written(checkout: Checkout) -> None:
    text = PAGE.read_text()
    for name, content in FILE.findall(text):
        (checkout.root / name).write_text(content)
    # the tests run inside the environment already that `./warpbed` would make
    (checkout.root / "warpbed").write_text(
        f'#!/bin/sh\nif [ "$1" = exec ]; then shift; exec "$@"; fi\nexec {sys.executable} -P -m testbed "$@"\n'
    )
    todo = steps(text)
    assert len(todo) == text.count("```sh\n") == 10, "no command of the page is left out"
    for step in todo:
        code, output = checkout.run(step.commands)
        assert (code != 0) == step.fails, f"{step.commands}\n{output}"
        assert missing(step.shown, output) == [], f"{step.commands}\n{output}"
