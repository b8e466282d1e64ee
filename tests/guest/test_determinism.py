# SPDX-License-Identifier: Apache-2.0
"""The same experiment gives the same packets, bit for bit; another seed gives others."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from base.layers import PACKAGES
from collectors import native
from hosts.virtual import pinned
from hosts.virtual.launch import GuestKernel
from tests import lab

LOSSY = lab.SMALL.replace("buffer: 40p", "buffer: 40p, loss: 0.5%") + "seeds: [1, 2]\n"


@pytest.fixture(scope="module")
def lossy(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lab.execute(tmp_path_factory.mktemp("lossy"), LOSSY, "--jobs=1")


def test_twice_and_side_by_side_give_equal_captures_and_records(lossy: Path, tmp_path: Path) -> None:
    again = lab.execute(tmp_path, LOSSY, "--jobs=2")
    first, second = lab.runs(lossy), lab.runs(again)
    assert [run["run"] for run in first] == [run["run"] for run in second]
    for one, other in zip(first, second, strict=True):
        assert len(lab.digests(one["path"])) == 2 + 6  # captures and records
        assert lab.digests(one["path"]) == lab.digests(other["path"])
        assert one["metrics"] == other["metrics"]
        assert one["packets"] == other["packets"] != ""


def test_another_seed_gives_other_packets(lossy: Path) -> None:
    one, other = (lab.digests(run["path"]) for run in lab.runs(lossy))
    for name in one:
        assert one[name] != other[name], name
    assert len({run["packets"] for run in lab.runs(lossy)}) == 2


def test_a_user_without_privileges_gets_the_same_packets(small: Path, kernel: GuestKernel, tmp_path: Path) -> None:
    """The whole way as `nobody`: own cache, own results, nothing of root's but what everybody may read."""
    if os.getuid() != 0:
        pytest.skip("changing to another user needs root; without it every other test has run unprivileged already")
    nobody = pwd.getpwnam("nobody")
    place = Path("/var/tmp") / f"warpbed-nobody-{os.getpid()}"
    try:
        for folder in ("checkout", "build", "home"):
            (place / folder).mkdir(parents=True)
        for part in (*(name for name in PACKAGES if name != "benchmarks"), "experiments", "docs"):
            shutil.copytree(
                lab.ROOT / part, place / "checkout" / part, ignore=shutil.ignore_patterns("__pycache__", "target")
            )
        shutil.copy(kernel.linux.resolve(), place / "build/linux")
        shutil.copytree(kernel.modules, place / "build/modules")
        shutil.copy(kernel.linux.parent / "build.json", place / "build/build.json")
        built = native.folder()
        shutil.copytree(built, place / "home/.cache/warpbed/native" / built.name)
        environment = Path(sys.prefix)
        shutil.copytree(environment / "lib", place / "environment/lib", symlinks=True)
        lab.write(place, lab.SMALL)
        for path in [place, *place.rglob("*")]:
            os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
        if userland := pinned.root():  # which everybody may read, as the packages have it
            shutil.copytree(userland, place / "home/.cache/warpbed/userland" / userland.name, symlinks=True)
        packages = next((place / "environment/lib").glob("python3*/site-packages"))
        command = ["/usr/bin/python3", "-P", "-m", "testbed", "execute", str(place / "experiment.yml")]
        done = subprocess.run(
            [*command, "--results", str(place / "home/results")],
            cwd=place / "checkout",
            user="nobody",
            group=nobody.pw_gid,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(place / "home"),
                "PYTHONPATH": f"{place / 'checkout'}:{packages}",
                "WARPBED_TEST_KERNEL": str(place / "build"),
                "WARPBED_CAGE": "required",
                "LC_ALL": "C.UTF-8",
            },
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (mine,), (theirs,) = lab.runs(small), lab.runs(lab.only_folder(place / "home/results"))
        assert lab.digests(theirs["path"]) == lab.digests(mine["path"])
    finally:
        shutil.rmtree(place, ignore_errors=True)
