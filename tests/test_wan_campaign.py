# SPDX-License-Identifier: Apache-2.0
"""A campaign between hosts that are reached over SSH, and everything that may happen to it meanwhile."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.campaign.journal import Journal
from testbed.virtual.cage import die_with_parent
from tests import lab
from tests.sshhosts import SshHosts, needs_ssh_hosts
from tests.test_playbooks import BIN

pytestmark = [needs_ssh_hosts, pytest.mark.root, pytest.mark.timeout(240)]

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


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    made = SshHosts(tmp_path_factory.mktemp("hosts"), ["a", "b", "c"])
    try:
        yield made
    finally:
        made.close()


def inventory(hosts: SshHosts, folder: Path, **more: str) -> Path:
    entries = {
        name: {
            "ansible_host": hosts.control(name), "wan_address": hosts.address(name), "wan_end_root": str(hosts.root(name)),
            **({} if name == "a" else {"wan_consent": "the test, today"}),
        }
        for name in hosts.names
    }  # fmt: skip
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


def start(hosts: SshHosts, folder: Path, text: str = CAMPAIGN, **more: str) -> subprocess.Popen[str]:
    file = lab.write(folder, text, "campaign.yml")
    variables = {"campaign": str(file), "campaign_results": str(folder / "results"), "bootstrap_run_packages": ["dpkg"]}
    return subprocess.Popen(
        [str(BIN / "ansible-playbook"), "playbooks/wan_campaign.yml", "-i", str(inventory(hosts, folder, **more)),
         "-e", json.dumps(variables)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=lab.ROOT, stdin=subprocess.DEVNULL,
        env={**os.environ, "ANSIBLE_CONFIG": str(lab.ROOT / "ansible.cfg"), "PYTHONPATH": str(lab.ROOT)},
        start_new_session=True, preexec_fn=die_with_parent,
    )  # fmt: skip


def end(process: subprocess.Popen[str], code: int = 0) -> str:
    words, _ = process.communicate(timeout=200)
    assert process.returncode == code, words
    return words


def events(folder: Path, kind: str | None = None) -> list[dict[str, Any]]:
    found = Journal(folder / "results/short").events()
    return found if kind is None else [event for event in found if event["event"] == kind]


def await_event(folder: Path, kind: str, count: int = 1) -> None:
    deadline = time.monotonic() + 90
    while len(events(folder, kind)) < count:
        assert time.monotonic() < deadline, f"no {kind}: {events(folder)[-5:]}"
        time.sleep(0.05)


def assert_nothing_left(hosts: SshHosts, folder: Path) -> None:
    for name in hosts.names:
        assert hosts.processes(name) == []
        assert list(hosts.root(name).glob("transfers/*")) == []
    assert not (folder / "results/.aside").exists()


def assert_each_once(folder: Path, missing: int = 0) -> list[dict[str, Any]]:
    runs = lab.runs(folder / "results/short")
    combinations = [(r["params"]["receiver"], r["params"]["cca"], r["params"]["size"]) for r in runs]
    assert len(combinations) == len(set(combinations)) == TRANSFERS - missing
    assert len(events(folder, "done")) == TRANSFERS - missing
    return runs


def test_a_campaign_brings_every_transfer_home_and_a_second_play_changes_nothing(
    hosts: SshHosts, tmp_path: Path
) -> None:
    words = end(start(hosts, tmp_path))
    runs = assert_each_once(tmp_path)
    for run in runs:
        flow = run["metrics"]["flows"][0]
        (row,) = lab.table(run["path"], "flows")["delivered_bytes"]
        size = {"106KB": 106_000, "1MB": 1_000_000}[run["params"]["size"]]
        assert row == size, "exactly the bytes that the file asks for arrive"
        # pacing begins after the initial window
        assert size * 8 / 12e6 < flow["completion_s"] < 20, "paced at 8 Mbit/s"
        assert len(lab.table(run["path"], "tcp_info")["t_s"]) >= 1
        assert run["facts"]["path"][-1]["addresses"] == [hosts.address(run["params"]["receiver"])]
        assert {"sender", "receiver"} == set(run["facts"]["home_clock"])
    assert "done" in words and "published" not in words
    assert_nothing_left(hosts, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "results").rglob("raw/*")}
    again = end(start(hosts, tmp_path))
    assert "started" not in [event["event"] for event in events(tmp_path)[-3:]]
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "results").rglob("raw/*")}
    assert "Copy the agent" not in again and "Make the agent" not in again
    status = lab.warpbed("campaign", "status", tmp_path / "campaign.yml", "--results", tmp_path / "results")
    assert "short: over; 4 of about 4 transfers (100%)" in status


def test_kill_9_of_the_controller_loses_and_repeats_nothing(hosts: SshHosts, tmp_path: Path) -> None:
    process = start(hosts, tmp_path)
    for number in (1, 3):
        await_event(tmp_path, "started", number)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        time.sleep(0.3)
        process = start(hosts, tmp_path)
    end(process)
    assert_each_once(tmp_path)
    assert_nothing_left(hosts, tmp_path)


def test_an_ssh_connection_that_is_cut_for_a_while_costs_no_transfer(hosts: SshHosts, tmp_path: Path) -> None:
    process = start(hosts, tmp_path, CAMPAIGN.replace("patience: 20s", "patience: 5min"))
    await_event(tmp_path, "started", 2)
    for name in "ab":
        hosts.cut(name)
    time.sleep(15)
    for name in "ab":
        hosts.mend(name)
    end(process)
    assert_each_once(tmp_path)
    assert events(tmp_path, "waiting") != [] or events(tmp_path, "failed") != []
    assert_nothing_left(hosts, tmp_path)


def test_a_receiver_that_vanishes_is_named_and_the_others_go_on(hosts: SshHosts, tmp_path: Path) -> None:
    text = CAMPAIGN.replace("patience: 20s", "patience: 3s")
    process = start(hosts, tmp_path, text)
    await_event(tmp_path, "run")
    hosts.kill("c")
    try:
        words = end(process, code=2)
    finally:
        hosts.start("c")
    missing = {event["transfer"] for event in events(tmp_path, "missing")}
    runs = lab.runs(tmp_path / "results/short")
    assert len(runs) + len(missing) == TRANSFERS
    assert {run["params"]["receiver"] for run in runs} >= {"b"} and all("-c-" in name for name in missing)
    assert all(name in words for name in missing)
    status = lab.warpbed("campaign", "status", tmp_path / "campaign.yml", "--results", tmp_path / "results")
    assert all(f"missing: {name}: " in status for name in missing)
    again: list[str | Path] = ["--host", "wan", "--again", "--results", tmp_path / "results"]
    lab.warpbed("campaign", "execute", tmp_path / "campaign.yml", *again)
    assert len(lab.runs(tmp_path / "results/short")) == TRANSFERS
    assert_nothing_left(hosts, tmp_path)


def test_a_host_that_restarts_in_the_middle_repeats_that_transfer_only(hosts: SshHosts, tmp_path: Path) -> None:
    process = start(hosts, tmp_path)
    await_event(tmp_path, "started", 2)
    hosts.reboot("a")
    end(process)
    assert_each_once(tmp_path)
    assert_nothing_left(hosts, tmp_path)


def test_a_full_disk_is_waited_for(hosts: SshHosts, tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m", "tmpfs", hosts.root("b")], check=True)
    hosts.kill("b")
    hosts.start("b")  # in a namespace that knows the mount
    filler = hosts.root("b") / "filler"
    try:
        filler.write_bytes(bytes(40 << 20))
        process = start(hosts, tmp_path, CAMPAIGN.replace("patience: 20s", "patience: 5min"))
        await_event(tmp_path, "waiting")
        assert "MB free" in events(tmp_path, "waiting")[0]["reason"]
        filler.unlink()
        end(process)
        assert_each_once(tmp_path)
        assert_nothing_left(hosts, tmp_path)
    finally:
        subprocess.run(["umount", "-l", hosts.root("b")], check=True)
        hosts.kill("b")
        hosts.start("b")


def test_a_wrong_clock_is_told_with_every_transfer_it_touches(hosts: SshHosts, tmp_path: Path) -> None:
    library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
    if not Path(library).exists():
        pytest.skip("libfaketime is not installed")
    hosts.kill("c")
    hosts.start("c", f"LD_PRELOAD={library} FAKETIME=+1h")
    try:
        end(start(hosts, tmp_path))
    finally:
        hosts.kill("c")
        hosts.start("c")
    for run in assert_each_once(tmp_path):
        rules = {reason["rule"] for reason in run["verdict"]["reasons"]}
        assert ("clock" in rules) == (run["params"]["receiver"] == "c")


def test_stop_ends_after_the_transfer_under_way_and_the_same_call_goes_on(hosts: SshHosts, tmp_path: Path) -> None:
    # a pause that outlasts the call, however slow the machine is: the transfer under way is the first
    process = start(hosts, tmp_path, CAMPAIGN.replace("pause: 0s", "pause: 30min"))
    await_event(tmp_path, "started")
    lab.warpbed("campaign", "stop", tmp_path / "campaign.yml", "--results", tmp_path / "results")
    assert "the same command goes on" in end(process, code=2)
    assert len(events(tmp_path, "done")) == 1
    assert_nothing_left(hosts, tmp_path)
    status = lab.warpbed("campaign", "status", tmp_path / "campaign.yml", "--results", tmp_path / "results")
    assert "short: stopped" in status
    end(start(hosts, tmp_path))
    assert_each_once(tmp_path)


def test_a_host_that_is_away_at_the_start_is_told_and_one_that_was_prepared_before_is_waited_for(
    hosts: SshHosts, tmp_path: Path
) -> None:
    hosts.kill("c")
    try:
        process = start(hosts, tmp_path)
        words, _ = process.communicate(timeout=200)
        assert process.returncode != 0 and "wan_end_facts" not in words
        assert "c could not be prepared (the reason is above); nothing was started" in words
        assert events(tmp_path) == []
        hosts.start("c")
        process = start(hosts, tmp_path, CAMPAIGN.replace("pause: 0s", "pause: 30min"))
        await_event(tmp_path, "started")
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        hosts.kill("c")
        process = start(hosts, tmp_path, CAMPAIGN.replace("patience: 20s", "patience: 3s"))
        words, _ = process.communicate(timeout=200)
        missing = {event["transfer"] for event in events(tmp_path, "missing")}
        assert process.returncode != 0 and missing and all("-c-" in name for name in missing), words
        assert len(events(tmp_path, "done")) == TRANSFERS - len(missing)
    finally:
        hosts.kill("c")
        hosts.start("c")
    again: list[str | Path] = ["--host", "wan", "--again", "--results", tmp_path / "results"]
    lab.warpbed("campaign", "execute", tmp_path / "campaign.yml", *again)
    assert len(lab.runs(tmp_path / "results/short")) == TRANSFERS
    assert_nothing_left(hosts, tmp_path)


def test_nothing_conducts_a_campaign_whose_command_was_killed(hosts: SshHosts, tmp_path: Path) -> None:
    file = lab.write(tmp_path, CAMPAIGN.replace("pause: 0s", "pause: 30min"), "campaign.yml")
    more: list[str | Path] = ["--host", "wan", "-i", inventory(hosts, tmp_path), "--results", tmp_path / "results"]
    process = subprocess.Popen(
        lab.command("campaign", "run", file, *more), cwd=lab.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    await_event(tmp_path, "done")
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while left := lab.processes_with(str(tmp_path / "results")):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    assert not Journal(tmp_path / "results/short").is_held()


def test_a_receiver_without_consent_is_refused_before_anything_is_sent(hosts: SshHosts, tmp_path: Path) -> None:
    words = end(start(hosts, tmp_path, wan_consent=""), code=2)
    assert "b is not a consenting receiver" in words
    assert events(tmp_path) == []


def test_a_wrong_host_key_is_not_accepted(hosts: SshHosts, tmp_path: Path) -> None:
    known = hosts.known_hosts.read_text()
    other = known.splitlines()[0].split()[1:]
    lines = [
        f"{hosts.control('b')} {' '.join(other)}" if hosts.control("b") in line else line for line in known.splitlines()
    ]
    hosts.known_hosts.write_text("\n".join(lines) + "\n")
    try:
        process = start(hosts, tmp_path)
        words, _ = process.communicate(timeout=200)
    finally:
        hosts.known_hosts.write_text(known)
    assert process.returncode in (2, 4), words  # 4 is Ansible's own, where the host has no agent yet
    assert "HOST IDENTIFICATION HAS CHANGED" in words or "Host key verification failed" in words
    assert not any("-b-" in event["transfer"] for event in events(tmp_path, "done"))


def test_no_key_of_an_attempt_is_on_disk_or_in_a_command_line(hosts: SshHosts, tmp_path: Path) -> None:
    process = start(hosts, tmp_path, CAMPAIGN)
    lines: set[str] = set()
    while process.poll() is None:
        for name in hosts.names:
            lines.update(hosts.processes(name))
        time.sleep(0.05)
    end(process)
    assert any("filetransfer.py" in line for line in lines)
    assert not [line for line in lines if re.search(r"[0-9a-f]{64}", line)]
    texts = [
        path.read_text(errors="replace")
        for path in (tmp_path / "results").rglob("*")
        if path.is_file() and path.suffix in (".json", ".jsonl", ".log")
    ]
    assert not [text for text in texts if re.search(r'"key": "[0-9a-f]{64}"', text)]
