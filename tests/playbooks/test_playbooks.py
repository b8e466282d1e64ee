# SPDX-License-Identifier: Apache-2.0
"""The playbooks, run as users run them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from base.paths import ROOT
from collectors import native
from kernels.build_key import find_build
from playbooks.callback_plugins import warpbed as callback
from tests import recap
from tests.plays import BIN

PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.yml"))


def play(name: str, *arguments: str, default_output: bool = False, **more: str) -> subprocess.CompletedProcess[str]:
    """As `./warpbed` plays it: with the user's own PATH, whose programs decide what is to be installed."""
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        **(recap.WORDS if default_output else {}),
        **more,
    }
    return subprocess.run(
        ["ansible-playbook", str(ROOT / "playbooks" / name), *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
        env=environment,
    )


def fake(folder: Path, name: str, script: str) -> Path:
    """A program that stands for another one; returns its folder."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return folder


def dpkg_without(folder: Path, *missing: str) -> str:
    """A PATH on which dpkg knows nothing of some packages."""
    names = "|".join(re.escape(name) for name in missing)
    fake(folder, "dpkg-query", f"/usr/bin/dpkg-query \"$@\" | grep -vE ' ({names})$'\nexit 0")
    return f"{folder}:{BIN}:{os.environ['PATH']}"


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: path.stem)
def test_every_playbook_is_well_formed(playbook: Path) -> None:
    done = play(playbook.name, "--syntax-check", default_output=True)
    assert done.returncode == 0, done.stderr


def test_bootstrap_changes_nothing_where_all_is_there() -> None:
    done = play(
        "bootstrap.yml", "--extra-vars", '{"bootstrap_run_packages": ["dpkg", "util-linux"]}', default_output=True
    )
    assert done.returncode == 0, done.stdout
    recap.assert_changes_nothing(done.stdout)


def test_bootstrap_is_silent_where_all_is_there() -> None:
    done = play("bootstrap.yml", "--extra-vars", '{"bootstrap_run_packages": ["dpkg", "util-linux"]}')
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_bootstrap_tells_a_user_what_to_install(tmp_path: Path) -> None:
    path = dpkg_without(fake(tmp_path / "programs", "id", "echo 1000"), "mininet", "iperf3")
    done = play("bootstrap.yml", "--extra-vars", '{"bootstrap_run_packages": ["dpkg", "mininet", "iperf3"]}', PATH=path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("As root: apt-get install --no-install-recommends iperf3 mininet")


def bootstrap_without_root(programs: Path, cache: Path, *places: Path) -> subprocess.CompletedProcess[str]:
    """The play of a user who may install nothing, with no cargo on PATH but those of some places; a cache of its own."""
    fake(programs, "id", "echo 1000")
    # all that the play starts, without this machine's cargo, which may be Debian's
    fake(programs, "dpkg-query", """/usr/bin/dpkg-query "$@" | /usr/bin/grep -v ' cargo'""")
    (programs / "sh").unlink(missing_ok=True)
    (programs / "sh").symlink_to("/usr/bin/sh")
    return play(
        "bootstrap.yml",
        "--extra-vars",
        '{"bootstrap_run_packages": ["dpkg"]}',
        default_output=True,
        PATH=os.pathsep.join(map(str, [*places, programs, BIN])),
        WARPBED_CACHE=str(cache),
    )


def compiler(folder: Path, version: str) -> Path:
    fake(folder, "rustc", f"echo 'rustc {version} (0123456 2025-01-01)'")
    return fake(folder, "cargo", f"echo 'cargo {version} (0123456 2025-01-01)'")


def test_bootstrap_wants_a_cargo_only_to_build_the_collector(tmp_path: Path) -> None:
    """What the first command has built with a cargo that a later PATH lacks needs no cargo; nothing is installed."""
    programs, cache = tmp_path / "programs", tmp_path / "cache"
    wanted = bootstrap_without_root(programs, cache)
    assert wanted.returncode == 2
    assert re.search(r"apt-get install --no-install-recommends cargo(-web)?\b", wanted.stdout), wanted.stdout
    built = cache / "native" / native.key() / native.MODULE
    built.parent.mkdir(parents=True)
    built.touch()
    recap.assert_changes_nothing(bootstrap_without_root(programs, cache).stdout)


def test_bootstrap_takes_the_cargo_that_the_collector_is_built_with(tmp_path: Path) -> None:
    """Not the first on PATH, but the first that is new enough, as collectors.native does."""
    old, new = compiler(tmp_path / "old", "1.63.0"), compiler(tmp_path / "new", "1.85.0")
    recap.assert_changes_nothing(bootstrap_without_root(tmp_path / "programs", tmp_path / "cache", old, new).stdout)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_bootstrap_a_second_time_changes_nothing() -> None:
    first = play("bootstrap.yml")
    assert first.returncode == 0, first.stderr
    second = play("bootstrap.yml", default_output=True)
    recap.assert_changes_nothing(second.stdout)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
@pytest.mark.parametrize(
    ("playbook", "roles"),
    [
        ("build_machines.yml", {"bootstrap", "kernel_build", "vm_image"}),
        (
            "test_environment.yml",
            {
                "bootstrap",
                "collector_build",
                "kernel_build",
                "userland",
                "timescaledb_tree",
                "vm_image",
                "lab_machine_disk",
            },
        ),
    ],
)
def test_a_second_play_changes_nothing_of_what_the_tests_were_prepared_with(playbook: str, roles: set[str]) -> None:
    """`./warpbed test` has played test_environment.yml already; played by hand, the tests make what lacks."""
    done = play(playbook, "-i", str(ROOT / "inventory/virtual"), default_output=True)
    if "changed=0 " not in done.stdout.rpartition("PLAY RECAP")[2]:
        done = play(playbook, "-i", str(ROOT / "inventory/virtual"), default_output=True)
    assert {role for role in roles if f"TASK [{role} : " not in done.stdout} == set()
    recap.assert_changes_nothing(done.stdout)


def test_build_kernels_does_nothing_where_the_build_is_there(tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources/linux-source-7.2_7.2.1-1_all.deb").touch()
    key = subprocess.run(
        ["/usr/bin/python3", "-P", "-m", "kernels.build_key", "--series", "7.2", "--cache", tmp_path],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    build = Path(json.loads(key.stdout)["path"])
    (build / "build").mkdir(parents=True)
    (build / "build.json").write_text("{}")
    done = play("build_kernels.yml", default_output=True, WARPBED_CACHE=str(tmp_path))
    assert done.returncode == 0, done.stdout
    recap.assert_changes_nothing(done.stdout)


def test_build_kernels_says_why_a_source_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "linux.tar").write_text("not an archive")
    done = play(
        "build_kernels.yml", "--extra-vars", f"kernel_build_source={tmp_path}/linux.tar", WARPBED_CACHE=str(tmp_path)
    )
    assert done.returncode == 2
    assert "linux.tar: not a readable tar archive" in done.stderr


def test_build_kernels_wants_room_before_it_starts(tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources/linux-source-7.2_7.2.1-1_all.deb").touch()
    done = play("build_kernels.yml", "--extra-vars", "kernel_build_free_gib=1000000", WARPBED_CACHE=str(tmp_path))
    assert done.returncode == 2
    assert "a kernel build needs 1000000" in done.stderr


def tasks_of(file: Path) -> Iterator[dict[str, Any]]:
    """The tasks of a file, with those inside blocks."""
    waiting: list[dict[str, Any]] = list(YAML(typ="safe").load(file) or [])
    while waiting:
        task = waiting.pop(0)
        yield task
        waiting += [*task.get("block", []), *task.get("rescue", []), *task.get("always", [])]


def test_what_is_announced_before_it_starts_is_done() -> None:
    """The callback announces a task tagged slow before its condition is evaluated, so the condition lies with the include."""
    announced = []
    for file in sorted((ROOT / "playbooks/roles").glob("*/tasks/*.yml")):
        for task in tasks_of(file):
            if "slow" not in task.get("tags", []):
                continue
            announced.append(task["name"])
            assert "block" not in task, f"{file}: tags of a block are those of all its tasks"
            # in check mode nothing is announced
            assert task.get("when", "not ansible_check_mode") == "not ansible_check_mode", f"{file}: {task['name']}"
            includes = [
                other
                for sibling in file.parent.glob("*.yml")
                for other in tasks_of(sibling)
                if other.get("ansible.builtin.include_tasks") == file.name
            ]
            assert includes and all("when" in include for include in includes), f"{file}: included without a condition"
    assert len(announced) > 10


def test_a_kernel_that_is_there_is_not_announced_as_built(tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources/linux-source-7.2_7.2.1-1_all.deb").touch()

    def announced() -> str:
        done = play("build_kernels.yml", "--extra-vars", "kernel_build_free_gib=0", WARPBED_CACHE=str(tmp_path))
        assert done.returncode == 2, "the source is an empty file"
        return "".join(line for line in done.stdout.splitlines() if line.startswith("Build "))

    assert announced() == "Build Linux 7.2 for um (minutes) …"
    key = find_build("7.2", cache=tmp_path)
    (tmp_path / f"kernels/base/{key.kernel_key}").mkdir(parents=True)
    (tmp_path / f"kernels/base/{key.kernel_key}/linux").touch()
    assert announced() == "Build the modules for Linux 7.2 for um (less than a minute) …"


def test_a_failure_shows_the_program_s_own_message() -> None:
    result = {"msg": "non-zero return code", "rc": 1, "stderr": "no such series\n", "stdout": "x"}
    assert callback.reason(result) == "no such series"
    assert callback.reason({"msg": "says what", "stderr": ""}) == "says what"
    assert callback.reason({"msg": "", "rc": 3}) == "exit status 3"


def test_a_long_failure_is_cut_to_its_end() -> None:
    shown = callback.reason({"msg": "\n".join(map(str, range(1000)))}).splitlines()
    assert shown[0] == "…"
    assert shown[-1] == "999"
    assert len(shown) == callback.LAST_LINES + 1
