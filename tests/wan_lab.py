# SPDX-License-Identifier: Apache-2.0
"""A small campaign between SSH hosts, and how tests conduct it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.campaign import known_ends
from testbed.campaign.journal import Journal
from tests import lab, plays
from tests.sshhosts import SshHosts
from tests.waiting import wait_until

CAMPAIGN = """\
warpbed: 1
campaign: short
title: Two sizes to two receivers
sender: a
receivers: {b: {}, c: {}}
algorithms: [cubic]
sizes: [106KB, 1MB]
seed: 7
pause: 0s
every: 1s
lasts: 1h
runs: 1
patience: 20s
transfer_at_most: 30s
attempts: 3
captures: {budget: 1MB}
limits: {rate: 8mbit}
sockets: 20ms
"""
TRANSFERS = 4
LIMIT_S = 600
"""For an event of a campaign, whose host may boot meanwhile beside other tests: 180 s were too few once."""


def inventory(hosts: SshHosts, folder: Path, **more: str) -> Path:
    entries = {
        name: {
            "ansible_host": hosts.control(name),
            "wan_address": hosts.address(name),
            "wan_end_root": str(hosts.root(name)),
            **({} if name == "a" else {"wan_consent": "the test, today"}),
        }
        for name in hosts.names
    }
    for name, value in more.items():
        entries["b"][name] = value
    content = {
        "all": {
            "hosts": {"localhost": {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}},
            "children": {"wan": {"hosts": entries, "vars": {
                "ansible_user": "root", "wan_end_become": False, "ansible_python_interpreter": "/usr/bin/python3",
                "ansible_ssh_private_key_file": str(hosts.key), "wan_end_install": False,
                "ansible_ssh_common_args": f"-o UserKnownHostsFile={hosts.known_hosts}",
            }}},
        }
    }  # fmt: skip
    file = folder / "hosts.yml"
    file.write_text(json.dumps(content))
    return file


def start(
    hosts: SshHosts, folder: Path, text: str = CAMPAIGN, counted: bool = False, **more: str
) -> subprocess.Popen[str]:
    """counted: with Ansible's own output, which ends with how much each host was changed"""
    file = lab.write(folder, text, "campaign.yml")
    variables = {"campaign": str(file), "campaign_results": str(folder / "results"), "bootstrap_run_packages": ["dpkg"]}
    return plays.start("wan_campaign", "-i", inventory(hosts, folder, **more), variables=variables, counted=counted)


@dataclass(frozen=True)
class Prepared:
    """Hosts that a play has prepared, the folder of the campaign that it conducted there, and all that it said."""

    hosts: SshHosts
    folder: Path
    words: str

    def conduct(self, folder: Path, text: str = CAMPAIGN) -> subprocess.Popen[str]:
        """A campaign without the play, which for hosts that are prepared does nothing but start this command."""
        file, ends = lab.write(folder, text, "campaign.yml"), known_ends.file_of(folder / "results/short")
        if not ends.exists():
            shutil.copy(known_ends.file_of(self.folder / "results/short"), ends)
        return subprocess.Popen(
            lab.command("campaign", "execute", file, "--host", "wan", "--results", folder / "results"),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=lab.ROOT,
            env={**os.environ, "PYTHONPATH": str(lab.ROOT)}, start_new_session=True,
        )  # fmt: skip


def events(folder: Path, kind: str | None = None) -> list[dict[str, Any]]:
    listed = Journal(folder / "results/short").events()
    return listed if kind is None else [event for event in listed if event["event"] == kind]


def await_event(folder: Path, kind: str, count: int = 1) -> None:
    wait_until(lambda: len(events(folder, kind)) >= count, LIMIT_S, say=lambda: f"no {kind}: {events(folder)[-5:]}")


def assert_nothing_left(hosts: SshHosts, folder: Path) -> None:
    for name in hosts.names:
        assert hosts.processes(name) == []
        assert list(hosts.root(name).glob("transfers/[!.]*")) == []
    assert not (folder / "results/.aside").exists()


def assert_each_once(folder: Path, missing: int = 0) -> list[dict[str, Any]]:
    runs = lab.runs(folder / "results/short")
    combinations = [(r["params"]["receiver"], r["params"]["cca"], r["params"]["size"]) for r in runs]
    assert len(combinations) == len(set(combinations)) == TRANSFERS - missing
    assert len(events(folder, "done")) == TRANSFERS - missing
    return runs
