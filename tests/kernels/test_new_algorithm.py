# SPDX-License-Identifier: Apache-2.0
"""A user's own algorithm: it works as it is made, and a broken one never gives a result."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from base.errors import UsageError, WarpbedError
from base.paths import cache_dir
from hosts.virtual.launch import GuestKernel
from kernels import series as kernel_series
from kernels.build_key import find_build
from schema.names import IN_TREE_CCAS
from testbed.new_algorithm import new_algorithm, targets
from tests import lab
from tests.checkout import copied

NAME = "zeta_2"


class Checkout:
    """A copy of this checkout in which only the new algorithm's module is built."""

    def __init__(self, root: Path) -> None:
        self.root = copied(root / "checkout")
        self.module = self.root / f"kernels/modules/tcp_{NAME}.c"
        self.builds: set[Path] = set()

    def mark(self, module: Path) -> None:
        """Make the builds with this module the copy's own: each worker that has some of a file's tests removes those that it has made."""
        with module.open("a") as source:
            source.write(f"/* {self.root} */\n")

    def call(self, *arguments: str, code: int) -> str:
        """`./warpbed` of the copy, without the entry script's start-up."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", *arguments], cwd=self.root, env={**os.environ, "PYTHONPATH": str(self.root)},
            capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        if path := find_build(kernel_series.DEFAULT, root=self.root).path:
            self.builds.add(Path(path))
        printed = done.stdout + done.stderr
        assert done.returncode == code, printed
        return printed

    def remove_builds(self, but: Path) -> None:
        """Builds of the copy; `but` is the checkout's own."""
        for build in self.builds - {but}:
            assert build.parent == cache_dir() / "kernels"
            shutil.rmtree(build, ignore_errors=True)
        for source in (self.root / "kernels/modules").glob("tcp_*.c"):
            for kept in (cache_dir() / "kernels/modules").glob(f"*/{source.stem}.ko"):
                if kept.stat().st_nlink == 1:  # in no build any more
                    shutil.rmtree(kept.parent, ignore_errors=True)

    def run(self, code: int) -> str:
        only = f"cca={NAME},buffer=50p"
        return self.call("testbed", "run", f"experiments/{NAME}.yml", "--only", only, code=code)

    @property
    def results(self) -> list[Path]:
        return [file for file in self.root.glob("results/*/*/run.json") if ".failed-" not in str(file)]


@pytest.fixture(scope="module")
def checkout(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    checkout = Checkout(tmp_path_factory.mktemp("own"))
    output = checkout.call("testbed", "new-algorithm", NAME, code=0)
    assert all(file in output for file in targets(NAME).values())
    checkout.mark(checkout.module)
    yield checkout
    checkout.remove_builds(kernel.linux.parent)


@pytest.fixture
def broken(checkout: Checkout) -> Iterator[Checkout]:
    """The checkout, whose module the test may break."""
    sound = checkout.module.read_text()
    before = checkout.results
    yield checkout
    checkout.module.write_text(sound)
    assert checkout.results == before, "a broken module gave a result"


def replaced(checkout: Checkout, old: str, new: str) -> None:
    text = checkout.module.read_text()
    assert text.count(old) == 1
    checkout.module.write_text(text.replace(old, new))


def test_it_runs_as_it_is_made(checkout: Checkout) -> None:
    assert "valid" in checkout.run(code=0)
    assert len(checkout.results) == 1


def test_its_own_test_holds_the_module_against_its_specification(checkout: Checkout) -> None:
    output = checkout.call("pytest", "-q", "-p", "no:xdist", f"tests/kernels/test_spec_{NAME}.py", code=0)
    assert "3 passed" in output


def test_what_it_makes_is_in_shape(checkout: Checkout) -> None:
    python_files = [str(checkout.root / file) for file in targets(NAME).values() if file.endswith(".py")]
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [Path(sys.executable).parent / "ruff", *command, *python_files], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_module_that_does_not_compile_shows_the_compiler_s_words(broken: Checkout) -> None:
    replaced(broken, "ca->credit = 0;\n\ttrace_cc_hook(sk, CC_INIT", "ca->credits = 0;\n\ttrace_cc_hook(sk, CC_INIT")
    output = broken.run(code=2)
    assert "compiling the modules failed" in output
    assert f"tcp_{NAME}.c" in output and "has no member named" in output


def test_a_module_that_does_not_register_shows_the_kernel_s_words(broken: Checkout) -> None:
    replaced(broken, f'.name\t\t= "{NAME}"', '.name\t\t= "cubic"')
    output = broken.run(code=1)
    assert f"module tcp_{NAME}.ko" in output
    assert "could not insert module" in output and "cubic already registered" in output


def test_a_module_that_registers_under_another_name_is_missed(broken: Checkout) -> None:
    replaced(broken, f'.name\t\t= "{NAME}"', '.name\t\t= "other"')
    assert f"the kernel has no {NAME}" in broken.run(code=1)


def test_a_module_that_oopses_shows_the_kernel_s_words(broken: Checkout) -> None:
    replaced(
        broken, "ca->credit = 0;\n\ttrace_cc_hook(sk, CC_LOSS", "*(volatile u32 *)8 = 0;\n\ttrace_cc_hook(sk, CC_LOSS"
    )
    output = broken.run(code=1)
    assert "kernel guest: " in output
    assert "Kernel panic" in output and f"{NAME}_ssthresh" in output


@pytest.mark.parametrize(
    "name", ["Zeta", "2fast", "a-b", "a b", "../x", "", "a" * 16, "é", "x\n", *IN_TREE_CCAS, "int", "lambda", "tcp"]
)
def test_a_name_that_cannot_be_one_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="algorithm "):
        new_algorithm(name, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["medley", "base", "quickstart"])
def test_nothing_is_overwritten(name: str) -> None:
    with pytest.raises(UsageError, match="exists"):
        new_algorithm(name, lab.ROOT)


def test_the_command_says_what_is_wrong_and_exits_with_2() -> None:
    assert "algorithm 'cubic': the kernel has one of this name" in lab.warpbed("new-algorithm", "cubic", code=2)


def test_half_an_algorithm_is_never_left(tmp_path: Path) -> None:
    for template in (lab.ROOT / "kernels/template").iterdir():
        (tmp_path / "kernels/template").mkdir(parents=True, exist_ok=True)
        shutil.copy(template, tmp_path / "kernels/template")
    for folder in ("kernels/modules", "kernels/reference"):  # tests/ and experiments/ are missing
        (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(WarpbedError, match="nothing was kept"):
        new_algorithm("zeta", tmp_path)
    assert not list(tmp_path.glob("kernels/[ms]*/*"))
