# SPDX-License-Identifier: Apache-2.0
"""The tutorial's commands do what its pages show, in a copy of the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from base.paths import cache_dir
from hosts.virtual.launch import GuestKernel
from kernels import series
from kernels.build_key import find_build
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

pytestmark = pytest.mark.timeout(900)  # two runs, by way of the play


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


@pytest.fixture
def checkout(kernel: GuestKernel, tmp_path: Path) -> Iterator[Path]:
    root = copied(tmp_path / "checkout")
    yield root
    built = find_build(series.DEFAULT, root=root).path
    if built and Path(built) != kernel.linux.parent and Path(built).parent == cache_dir() / "kernels":
        shutil.rmtree(built, ignore_errors=True)


def test_the_tutorial_works_as_it_is_written(checkout: Path) -> None:
    text = PAGE.read_text()
    for name, content in FILE.findall(text):
        (checkout / name).write_text(content)
    # the tests run inside the environment already that `./warpbed` would make
    shortcut = checkout / "warpbed"
    shortcut.write_text(
        f'#!/bin/sh\nif [ "$1" = exec ]; then shift; exec "$@"; fi\nexec {sys.executable} -P -m testbed "$@"\n'
    )
    todo = steps(text)
    assert len(todo) == 4
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for step in todo:
        done = subprocess.run(
            ["sh", "-e", "-c", step.commands], cwd=checkout, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        output = done.stdout + done.stderr
        assert (done.returncode != 0) == step.fails, f"{step.commands}\n{output}"
        assert missing(step.shown, output) == [], f"{step.commands}\n{output}"
