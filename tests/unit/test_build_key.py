# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from base.errors import UsageError
from base.paths import ROOT
from hosts.identity import kernel_inputs
from kernels import build_key
from kernels.build_key import BuildKey, find_build
from network.model import Network
from plan.model import Plan

PLAN = Plan(network=Network((), (), None), flows=(), duration_s=1.0, grace_s=1.0, start_grid_s=1, hosts={})
DEB = "linux-source-7.2_7.2.12-1_all.deb"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with just what the key is made of."""
    root = tmp_path / "checkout"
    for name, text in {
        "patches/series": "a.patch\nold.patch <7.0\n",
        "patches/a.patch": "a",
        "patches/old.patch": "old",
        "configs/um.config": "CONFIG_A=y\n",
        "configs/um.required": "CONFIG_A=y\n",
        "modules/Kbuild": "obj-m += tcp_x.o\n",
        "modules/tcp_x.c": "int x;\n",
    }.items():
        file = root / "kernels" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    cache = tmp_path / "cache"
    (cache / "sources").mkdir(parents=True)
    (cache / "sources" / DEB).write_text("a package")
    return cache


def key(checkout: Path, cache: Path, kernel: str = "7.2") -> BuildKey:
    return find_build(kernel, cache=cache, root=checkout)


def test_equal_inputs_give_an_equal_key(checkout: Path, cache: Path) -> None:
    first = key(checkout, cache)
    assert first == key(checkout, cache)
    assert first.path == str(cache / "kernels" / str(first.key))
    assert not first.exists


def test_without_a_source_nothing_exists(checkout: Path, cache: Path) -> None:
    assert key(checkout, cache, "6.1") == BuildKey(None, None, None, exists=False)


def test_a_published_build_exists(checkout: Path, cache: Path) -> None:
    path = Path(str(key(checkout, cache).path))
    (path / "build").mkdir(parents=True)
    assert not key(checkout, cache).exists
    (path / "build.json").write_text("{}")
    assert key(checkout, cache).exists


def test_a_changed_module_changes_the_build_but_not_the_kernel(checkout: Path, cache: Path) -> None:
    before = key(checkout, cache)
    (checkout / "kernels/modules/tcp_x.c").write_text("int y;\n")
    after = key(checkout, cache)
    assert after.key != before.key
    assert after.kernel_key == before.kernel_key


def test_a_kernel_without_the_modules_is_told_apart_from_none(checkout: Path, cache: Path) -> None:
    before = key(checkout, cache)
    assert not before.kernel_exists
    (cache / f"kernels/base/{before.kernel_key}").mkdir(parents=True)
    (cache / f"kernels/base/{before.kernel_key}/linux").touch()
    assert key(checkout, cache).kernel_exists and not key(checkout, cache).exists


@pytest.mark.parametrize("name", ["tcp_x.o", "tcp_x.ko", "tcp_x.mod.c", "README.md"])
def test_what_a_module_is_not_made_of_changes_nothing(checkout: Path, cache: Path, name: str) -> None:
    before = key(checkout, cache)
    (checkout / "kernels/modules" / name).write_text("product")
    assert key(checkout, cache) == before


@pytest.mark.parametrize("name", ["patches/a.patch", "configs/um.config", "configs/um.required"])
def test_a_changed_input_of_the_kernel_changes_both_keys(checkout: Path, cache: Path, name: str) -> None:
    before = key(checkout, cache)
    (checkout / "kernels" / name).write_text("changed")
    after = key(checkout, cache)
    assert after.kernel_key != before.kernel_key
    assert after.key != before.key


@pytest.mark.parametrize("program", ["gcc", "ld"])
def test_another_compiler_or_linker_makes_another_kernel_and_other_runs(
    checkout: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    before, first_line = key(checkout, cache), build_key._first_line
    assert first_line(program).startswith({"gcc": "gcc ", "ld": "GNU ld "}[program])
    monkeypatch.setattr(
        build_key, "_first_line", lambda name: f"{first_line(name)} rebuilt" if name == program else first_line(name)
    )
    after = key(checkout, cache)
    assert after.kernel_key != before.kernel_key and after.key != before.key
    # what of them enters a run's id
    ids = {kernel_inputs({"kernel_key": build.kernel_key}, PLAN).key for build in (before, after)}
    assert len(ids) == 2


def test_a_patch_of_another_series_changes_nothing(checkout: Path, cache: Path) -> None:
    before = key(checkout, cache)
    (checkout / "kernels/patches/old.patch").write_text("changed")
    assert key(checkout, cache) == before


def test_the_order_of_patches_counts(checkout: Path, cache: Path) -> None:
    (checkout / "kernels/patches/series").write_text("a.patch\nold.patch\n")
    before = key(checkout, cache)
    (checkout / "kernels/patches/series").write_text("old.patch\na.patch\n")
    assert key(checkout, cache).kernel_key != before.kernel_key


def test_the_newest_package_in_the_cache_is_used(checkout: Path, cache: Path) -> None:
    (cache / "sources/linux-source-7.2_7.2.9-1_all.deb").write_text("older by Debian's rules, not as text")
    newest = key(checkout, cache)
    assert newest == find_build("7.2", cache=cache, root=checkout, version="7.2.12-1")
    assert newest != find_build("7.2", cache=cache, root=checkout, version="7.2.9-1")


def test_a_replaced_package_is_hashed_again(checkout: Path, cache: Path) -> None:
    before = key(checkout, cache)
    (cache / "sources" / DEB).write_text("another package")
    assert key(checkout, cache).kernel_key != before.kernel_key


def test_a_source_tree_is_keyed_by_content_and_never_by_time(checkout: Path, cache: Path, tmp_path: Path) -> None:
    tree = tmp_path / "linux"
    (tree / "arch/um").mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 9\nSUBLEVEL = 3\n")
    (tree / "arch/um/a.c").write_text("int a;\n")
    before = key(checkout, cache, str(tree))
    os.utime(tree / "arch/um/a.c", ns=(0, time.time_ns() + 10**9))
    assert key(checkout, cache, str(tree)) == before
    (tree / "arch/um/a.c").write_text("int b;\n")
    assert key(checkout, cache, str(tree)) != before


def test_an_unknown_kernel_name_lists_the_valid_ones(checkout: Path, cache: Path) -> None:
    with pytest.raises(UsageError, match=r"neither a series such as 6\.1, 6\.12 or 7\.2 nor"):
        key(checkout, cache, "latest")


def test_the_program_prints_the_key_of_this_checkout(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kernels.build_key", "--series", "7.2", "--cache", str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    nothing = {"key": None, "kernel_key": None, "path": None, "exists": False, "kernel_exists": False}
    assert json.loads(done.stdout) == nothing
