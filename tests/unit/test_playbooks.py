# SPDX-License-Identifier: Apache-2.0
"""The playbooks, run as users run them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from base.paths import ROOT
from playbooks.callback_plugins import warpbed as callback
from tests import recap
from tests.plays import BIN

PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.yml"))


def play(name: str, *arguments: str, default_output: bool = False, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "PATH": f"{BIN}:/usr/sbin:/usr/bin:/sbin:/bin",
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


def dpkg_without(folder: Path, *missing: str) -> str:
    """A PATH on which dpkg knows nothing of some packages."""
    query = folder / "dpkg-query"
    names = "|".join(re.escape(name) for name in missing)
    query.write_text(f"#!/bin/sh\n/usr/bin/dpkg-query \"$@\" | grep -vE ' ({names})$'\nexit 0\n")
    query.chmod(0o755)
    return f"{folder}:{BIN}:/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: path.stem)
def test_every_playbook_is_well_formed(playbook: Path) -> None:
    done = play(playbook.name, "--syntax-check", default_output=True)
    assert done.returncode == 0, done.stderr


def test_ansible_lint_finds_nothing_in_its_production_profile(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{BIN}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "ANSIBLE_HOME": str(tmp_path)}
    done = subprocess.run(
        ["ansible-lint", "-q"], check=False, capture_output=True, text=True, cwd=ROOT, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_yamllint_finds_nothing() -> None:
    done = subprocess.run([BIN / "yamllint", "--strict", "."], check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout


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
    path = dpkg_without(tmp_path, "mininet", "iperf3")
    identity = tmp_path / "id"
    identity.write_text("#!/bin/sh\necho 1000\n")
    identity.chmod(0o755)
    done = play("bootstrap.yml", "--extra-vars", '{"bootstrap_run_packages": ["dpkg", "mininet", "iperf3"]}', PATH=path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("As root: apt-get install --no-install-recommends iperf3 mininet")


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
        ("test_environment.yml", {"bootstrap", "collector_build", "kernel_build", "timescaledb_tree", "vm_image", "lab_machine_disk"}),
    ],
)  # fmt: skip
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


def test_a_failure_is_told_in_the_words_of_the_program() -> None:
    result = {"msg": "non-zero return code", "rc": 1, "stderr": "no such series\n", "stdout": "x"}
    assert callback.reason(result) == "no such series"
    assert callback.reason({"msg": "says what", "stderr": ""}) == "says what"
    assert callback.reason({"msg": "", "rc": 3}) == "exit status 3"


def test_a_long_failure_is_cut_to_its_end() -> None:
    shown = callback.reason({"msg": "\n".join(map(str, range(1000)))}).splitlines()
    assert shown[0] == "…"
    assert shown[-1] == "999"
    assert len(shown) == callback.LAST_LINES + 1
