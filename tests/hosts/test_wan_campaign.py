# SPDX-License-Identifier: Apache-2.0
"""A campaign between hosts that are reached over SSH, and everything that may happen to it meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from testbed.campaign.journal import Journal
from tests import lab, recap
from tests.plays import end
from tests.sshhosts import SshHosts, needs_ssh_hosts
from tests.waiting import wait_until
from tests.wan_lab import (
    CAMPAIGN,
    TRANSFERS,
    Prepared,
    assert_each_once,
    assert_nothing_left,
    await_event,
    events,
    inventory,
    start,
)

pytestmark = [pytest.mark.real_host, needs_ssh_hosts, pytest.mark.root]


@pytest.fixture(scope="module")
def prepared(hosts: SshHosts, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """A play prepares the hosts and conducts the small campaign; the tests' own campaigns then need no play."""
    folder = tmp_path_factory.mktemp("prepared")
    return Prepared(hosts, folder, end(start(hosts, folder)))


def test_a_campaign_brings_every_transfer_home_and_a_second_play_changes_nothing(prepared: Prepared) -> None:
    hosts, tmp_path, output = prepared.hosts, prepared.folder, prepared.words
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
    assert "done" in output and "published" not in output
    assert_nothing_left(hosts, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "results").rglob("raw/*")}
    again = end(start(hosts, tmp_path, counted=True))
    assert "started" not in [event["event"] for event in events(tmp_path)[-3:]]
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "results").rglob("raw/*")}
    assert "TASK [wan_end : Copy the agent]" in again
    recap.assert_changes_nothing(again)
    status = lab.warpbed("campaign", "status", tmp_path / "campaign.yml", "--results", tmp_path / "results")
    assert "short: over; 4 of about 4 transfers (100%)" in status


def test_kill_9_of_the_controller_loses_and_repeats_nothing(prepared: Prepared, tmp_path: Path) -> None:
    process = prepared.conduct(tmp_path)
    for number in (1, 3):
        await_event(tmp_path, "started", number)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        time.sleep(0.3)
        process = prepared.conduct(tmp_path)
    end(process)
    assert_each_once(tmp_path)
    assert_nothing_left(prepared.hosts, tmp_path)


def test_an_ssh_connection_that_is_cut_for_a_minute_costs_no_transfer(prepared: Prepared, tmp_path: Path) -> None:
    process = prepared.conduct(tmp_path, CAMPAIGN.replace("patience: 20s", "patience: 5min"))
    await_event(tmp_path, "started", 2)
    for name in "ab":
        prepared.hosts.cut(name)
    time.sleep(60)
    for name in "ab":
        prepared.hosts.mend(name)
    end(process)
    assert_each_once(tmp_path)
    assert events(tmp_path, "waiting") != [] or events(tmp_path, "failed") != []
    assert_nothing_left(prepared.hosts, tmp_path)


def test_a_receiver_that_vanishes_is_named_and_the_others_go_on(prepared: Prepared, tmp_path: Path) -> None:
    text = CAMPAIGN.replace("patience: 20s", "patience: 3s")
    process = prepared.conduct(tmp_path, text)
    await_event(tmp_path, "run")
    prepared.hosts.kill("c")
    try:
        output = end(process, code=1)
    finally:
        prepared.hosts.start("c")
    missing = {event["transfer"] for event in events(tmp_path, "missing")}
    runs = lab.runs(tmp_path / "results/short")
    assert len(runs) + len(missing) == TRANSFERS
    assert {run["params"]["receiver"] for run in runs} >= {"b"} and all("-c-" in name for name in missing)
    assert all(name in output for name in missing)
    status = lab.warpbed("campaign", "status", tmp_path / "campaign.yml", "--results", tmp_path / "results")
    assert all(f"missing: {name}: " in status for name in missing)
    again: list[str | Path] = ["--host", "wan", "--again", "--results", tmp_path / "results"]
    lab.warpbed("campaign", "execute", tmp_path / "campaign.yml", *again)
    assert len(lab.runs(tmp_path / "results/short")) == TRANSFERS
    assert_nothing_left(prepared.hosts, tmp_path)


@pytest.mark.parametrize("end_of_it", ["sender", "receiver"])
def test_a_host_that_restarts_in_the_middle_repeats_that_transfer_only(
    prepared: Prepared, tmp_path: Path, end_of_it: str
) -> None:
    process = prepared.conduct(tmp_path)
    await_event(tmp_path, "started", 2)
    receiver = events(tmp_path, "started")[1]["transfer"].split("-")[1]
    prepared.hosts.reboot({"sender": "a", "receiver": receiver}[end_of_it])
    end(process)
    assert_each_once(tmp_path)
    assert_nothing_left(prepared.hosts, tmp_path)


def test_a_full_disk_is_waited_for(hosts: SshHosts, tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m,mode=0755", "tmpfs", hosts.root("b")], check=True)
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


def test_a_wrong_clock_is_reported_with_every_transfer_it_touches(prepared: Prepared, tmp_path: Path) -> None:
    library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
    if not Path(library).exists():
        pytest.skip("libfaketime is not installed")
    prepared.hosts.kill("c")
    prepared.hosts.start("c", f"LD_PRELOAD={library} FAKETIME=+1h")
    try:
        end(prepared.conduct(tmp_path))
    finally:
        prepared.hosts.kill("c")
        prepared.hosts.start("c")
    for run in assert_each_once(tmp_path):
        rules = {reason["rule"] for reason in run["verdict"]["reasons"]}
        assert ("clock" in rules) == (run["params"]["receiver"] == "c")


def test_stop_ends_after_the_transfer_under_way_and_the_same_call_resumes(prepared: Prepared, tmp_path: Path) -> None:
    # a pause that outlasts the call, however slow the machine is: the transfer under way is the first
    process = prepared.conduct(tmp_path, CAMPAIGN.replace("pause: 0s", "pause: 30min"))
    await_event(tmp_path, "started")
    lab.warpbed("campaign", "stop", tmp_path / "campaign.yml", "--results", tmp_path / "results")
    assert "run the same command again to resume" in end(process, code=1)
    assert len(events(tmp_path, "done")) == 1
    assert_nothing_left(prepared.hosts, tmp_path)
    status = lab.warpbed("campaign", "status", tmp_path / "campaign.yml", "--results", tmp_path / "results")
    assert "short: stopped" in status
    end(prepared.conduct(tmp_path))
    assert_each_once(tmp_path)


def test_unreachable_host_is_reported_and_prepared_host_is_awaited(hosts: SshHosts, tmp_path: Path) -> None:
    hosts.kill("c")
    try:
        process = start(hosts, tmp_path)
        output, _ = process.communicate(timeout=200)
        assert process.returncode != 0 and "wan_end_facts" not in output
        assert "c could not be prepared (the reason is above); nothing was started" in output
        assert events(tmp_path) == []
        hosts.start("c")
        process = start(hosts, tmp_path, CAMPAIGN.replace("pause: 0s", "pause: 30min"))
        await_event(tmp_path, "started")
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        hosts.kill("c")
        process = start(hosts, tmp_path, CAMPAIGN.replace("patience: 20s", "patience: 3s"))
        output, _ = process.communicate(timeout=200)
        missing = {event["transfer"] for event in events(tmp_path, "missing")}
        assert process.returncode != 0 and missing and all("-c-" in name for name in missing), output
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
    left = str(tmp_path / "results")
    wait_until(lambda: not lab.processes_with(left), say=lambda: lab.processes_with(left))
    assert not Journal(tmp_path / "results/short").is_held()
