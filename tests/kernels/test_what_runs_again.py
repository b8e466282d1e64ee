# SPDX-License-Identifier: Apache-2.0
"""What makes an experiment's runs be made again, by the commands that a user gives: a new algorithm nothing, a changed one its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from base.cache import sha256_of
from base.paths import cache_dir
from hosts.virtual.launch import GuestKernel
from tests import lab
from tests.guest.test_paper_experiments import shortened
from tests.kernels.test_new_algorithm import Checkout

QUICKSTART = "experiments/quickstart.yml"
MEDLEY = "kernels/modules/tcp_medley.c"
OLD, NEW = "#define MEDLEY_STEP\t4", "#define MEDLEY_STEP\t6"


@pytest.fixture
def checkout(kernel: GuestKernel, tmp_path: Path) -> Iterator[Checkout]:
    """A copy with Medley's module and a quickstart of three cells, 4 s of one seed each."""
    checkout = Checkout(tmp_path)
    shutil.copy(lab.ROOT / MEDLEY, checkout.root / MEDLEY)
    checkout.mark(checkout.root / MEDLEY)
    quickstart = checkout.root / QUICKSTART
    quickstart.write_text(shortened(quickstart.read_text().replace("[50p, 250p]", "[50p]"), 4))
    yield checkout
    checkout.remove_builds(kernel.linux.parent)


def made(checkout: Checkout) -> dict[str, tuple[str, int, int, str]]:
    """Of each run its algorithm, and by what a run that was made again would differ."""
    keys = {}
    for file in checkout.results:
        at = file.stat()
        cca = json.loads(file.read_text())["params"]["cca"]
        keys[file.parent.name] = (cca, at.st_ino, at.st_mtime_ns, sha256_of(file))
    return keys


def test_a_new_algorithm_runs_nothing_again_and_a_changed_medley_its_own_cells_alone(checkout: Checkout) -> None:
    checkout.call("testbed", "run", QUICKSTART, code=0)
    first = made(checkout)
    assert sorted(cca for cca, *_ in first.values()) == ["cubic", "medley", "reno"]
    assert len(checkout.builds) == 1

    checkout.call("testbed", "new-algorithm", "zeta_2", code=0)
    checkout.call("testbed", "run", QUICKSTART, code=0)
    assert len(checkout.builds) == 2, "another kernel build"
    assert made(checkout) == first
    assert "3 of 3 runs exist and were made from the current sources" in checkout.call(
        "testbed", "status", QUICKSTART, code=0
    )

    module = checkout.root / MEDLEY
    text = module.read_text()
    assert text.count(OLD) == 1
    module.write_text(text.replace(OLD, NEW))
    checkout.call("testbed", "run", QUICKSTART, "--only", "cca=cubic", code=0)
    assert len(checkout.builds) == 3
    assert made(checkout) == first, "CUBIC does not depend on Medley"
    rows = json.loads(checkout.call("testbed", "status", QUICKSTART, "--format", "json", code=0))
    changed = {name: "module tcp_medley" if cca == "medley" else "" for name, (cca, *_) in first.items()}
    assert {row["run"]: row["changed since"] for row in rows} == changed

    checkout.call("testbed", "run", QUICKSTART, code=0)
    again = made(checkout)
    assert {name: row for name, row in again.items() if name in first} == first
    assert sorted(cca for name, (cca, *_) in again.items() if name not in first) == ["medley"]


def test_what_only_reads_needs_no_kernel(small: Path, tmp_path: Path) -> None:
    """With a cache that holds the packet collector and nothing else, and nothing is put there."""
    cache, results = tmp_path / "cache", tmp_path / "results"
    cache.mkdir()
    (cache / "native").symlink_to(cache_dir() / "native")
    shutil.copytree(small, results / small.name)
    file = lab.write(tmp_path, lab.SMALL)
    (run,) = lab.runs(results / small.name)
    for argv in (
        *(("metrics", file), ("metrics", "small", "--cells"), ("compare", file), ("report", file), ("status", file)),
        *(("collect", results / small.name), ("list", "metrics"), ("list", "algorithms")),
    ):
        where = ("--results", results) if argv[0] in ("metrics", "compare", "report", "status") else ()
        lab.warpbed(*argv, *where, environment={"WARPBED_CACHE": str(cache)})
    assert "kernels and modules were not compared" in lab.warpbed(
        "status", file, "--results", results, environment={"WARPBED_CACHE": str(cache)}
    )
    assert lab.runs(results / small.name)[0]["metrics"] == run["metrics"]
    assert [entry.name for entry in cache.iterdir()] == ["native"]
