# SPDX-License-Identifier: Apache-2.0
"""Packages that Warpbed installs on other people's machines can be taken back, and no others are (playbooks/files/packages.py)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from base.paths import ROOT
from tests import fake_apt


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder, self.state, self.record = folder, folder / "state", folder / "root/packages.json"

    def has(self, installed: str) -> None:
        fake_apt.put(self.folder / "bin", ROOT, self.state, installed)

    def packages(self) -> set[str]:
        return {f"{name}" if word == "installed" else f"{name}:{word}" for name, word in self._known().items()}

    def _known(self) -> dict[str, str]:
        return fake_apt.packages(self.state)

    def say(self, name: str, word: str) -> None:
        with self.state.open("a") as state:
            state.write(f"{name} {word}\n")

    def call(self, what: str, *arguments: str, code: int = 0) -> Any:
        done = subprocess.run(
            ["/usr/bin/python3", "-I", ROOT / "playbooks/files/packages.py", what, self.record, *arguments],
            env={**os.environ, "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout) if code == 0 else done.stderr

    def log(self) -> list[str]:
        return (self.folder / "apt.log").read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_what_was_installed_goes_with_its_dependencies_and_nothing_else(machine: Machine) -> None:
    machine.has("python3 tcpdump")
    assert machine.call("install", "chrony", "traceroute", "tcpdump") == {"changed": True}
    assert machine.packages() == {"python3", "tcpdump", "chrony", "libedit", "traceroute", "libtrace"}
    assert machine.record.stat().st_mode & 0o777 == 0o600
    answer = machine.call("remove", "--check")
    assert answer["removed"] == ["chrony", "libedit", "libtrace", "traceroute"] and machine.record.exists()
    assert "chrony" in machine.packages()
    assert machine.call("remove")["removed"] == answer["removed"]
    assert machine.packages() == {"python3", "tcpdump"} and not machine.record.exists()
    assert machine.call("remove") == {"changed": False, "removed": [], "stay": []}
    assert not [line for line in machine.log() if "autoremove" in line]


def test_it_is_recorded_before_it_is_installed(machine: Machine) -> None:
    """A machine whose apt kills its caller in the middle of the installation."""
    machine.has("python3")
    apt = machine.folder / "bin/apt-get"
    apt.rename(apt.with_name("real-apt-get"))
    apt.write_text(
        '#!/bin/sh\ncase "$*" in *--simulate*|*update*) exec real-apt-get "$@";; esac\nreal-apt-get "$@"; kill -9 $PPID\n'
    )
    apt.chmod(0o755)
    machine.call("install", "traceroute", code=-9)
    assert "traceroute" in machine.packages()
    apt.with_name("real-apt-get").rename(apt)
    assert machine.call("remove")["removed"] == ["libtrace", "traceroute"]
    assert machine.packages() == {"python3"}


def test_what_could_not_be_installed_is_not_removed_from_who_installs_it_later(machine: Machine) -> None:
    machine.has("python3")
    (machine.folder / "traceroute.broken").touch()
    assert "traceroute is broken" in machine.call("install", "traceroute", code=1)
    machine.say("traceroute", "installed")
    assert machine.call("remove") == {"changed": False, "removed": [], "stay": ["libtrace"]}
    assert machine.packages() == {"python3", "traceroute", "libtrace"}


def test_what_others_have_come_to_need_stays_and_they_do_too(machine: Machine) -> None:
    machine.has("python3")
    machine.call("install", "chrony", "traceroute")
    machine.say("theirs", "installed")
    answer = machine.call("remove")
    assert answer["removed"] == ["chrony", "libtrace", "traceroute"] and answer["stay"] == ["libedit"]
    assert machine.packages() == {"python3", "theirs", "libedit"}


def test_settings_that_were_there_before_a_package_stay(machine: Machine) -> None:
    machine.has("python3")
    machine.say("chrony", "config-files")
    machine.call("install", "chrony")
    machine.call("remove")
    assert machine.packages() == {"python3", "chrony:config-files"}


def test_a_second_installation_adds_to_the_first(machine: Machine) -> None:
    machine.has("python3")
    machine.call("install", "chrony")
    machine.call("install", "traceroute")
    machine.call("remove")
    assert machine.packages() == {"python3"}


def test_an_error_of_apt_is_told(machine: Machine) -> None:
    machine.has("python3")
    (machine.folder / "bin/apt-get").write_text("#!/bin/sh\necho 'E: no network' >&2\nexit 100\n")
    assert machine.call("install", "chrony", code=1) == "apt-get: E: no network\n"
    assert not machine.record.exists()
