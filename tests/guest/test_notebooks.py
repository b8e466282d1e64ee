# SPDX-License-Identifier: Apache-2.0
"""The notebooks execute as they are, in a copy of the checkout, and show what they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from base.paths import cache_dir
from hosts.virtual.launch import GuestKernel
from tests.checkout import copied

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
EXECUTE = """
import asyncio, sys, nbformat
from nbclient import NotebookClient
book = nbformat.read(sys.argv[1], 4)
NotebookClient(book, timeout=1500, kernel_name="python3", resources={"metadata": {"path": sys.argv[3]}}).execute()
nbformat.write(book, sys.argv[2])
"""


class Checkout:
    """A copy of this checkout whose `./warpbed` is in the tests' environment already."""

    def __init__(self, root: Path, *, modules: bool) -> None:
        self.root = copied(root, modules=modules)  # with all modules, the kernel build is the one that is there
        entry = f'#!/bin/sh\nexport PYTHONPATH={self.root}\nexec {sys.executable} -P -m testbed "$@"\n'
        (self.root / "warpbed").write_text(entry)

    def execute(self, name: str) -> list[dict[str, Any]]:
        """Execute a notebook; returns its cells with what they show."""
        done_file = self.root / "done.ipynb"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        environment |= {"PYTHONPATH": f"{self.root}:{self.root}/python", "HOME": str(self.root)}
        environment |= {"WARPBED_CACHE": str(cache_dir())}
        done = subprocess.run(
            [sys.executable, "-P", "-c", EXECUTE, self.root / "notebooks" / name, done_file, self.root],
            env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=1600,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        cells: list[dict[str, Any]] = json.loads(done_file.read_text())["cells"]
        return cells


@pytest.fixture(scope="module")
def whole(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout(tmp_path_factory.mktemp("notebooks") / "whole", modules=True)


@pytest.fixture
def checkout(kernel: GuestKernel, tmp_path: Path) -> Checkout:
    """One whose builds are its own."""
    return Checkout(tmp_path / "checkout", modules=False)


def shown(cells: list[dict[str, Any]]) -> str:
    """All text that the cells print or show."""
    texts = []
    for cell in cells:
        for output in cell.get("outputs", ()):
            texts.append("".join([*output.get("text", ()), *output.get("data", {}).get("text/plain", ())]))
    return "\n".join(texts)


def drawn(cells: list[dict[str, Any]]) -> int:
    return sum("image/svg+xml" in output.get("data", {}) for cell in cells for output in cell.get("outputs", ()))


def test_first_look(whole: Checkout) -> None:
    cells = whole.execute("first-look.ipynb")
    output = shown(cells)
    assert drawn(cells) == 1
    assert output.count("valid") >= 6, output
    assert "queue_max_packets" in output and "holds" in output
    assert "r1" in output, "the bottleneck's interface"


def test_own_algorithm_beside_three_others(checkout: Checkout) -> None:
    cells = checkout.execute("own-algorithm.ipynb")
    output = shown(cells)
    assert drawn(cells) == 1
    assert "kernels/modules/tcp_mine.c" in output
    assert "[8/8]" in output
    assert "tcp_mine" in {file.stem for file in (checkout.root / "kernels/modules").glob("*.c")}


def test_a_reproduction(whole: Checkout) -> None:
    cells = whole.execute("reproduction.ipynb")
    output = shown(cells)
    assert drawn(cells) == 1
    assert output.count("agrees") >= 2, "the tables that are calculated"
    assert "['valid', 'valid']" in output
    assert "holds" in output
