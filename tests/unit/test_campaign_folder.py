# SPDX-License-Identifier: Apache-2.0
"""A campaign's results folder that came from somebody else: no program starts and no file elsewhere is touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

import pytest

from base.errors import UsageError
from testbed.campaign import ends, known_ends, remote, ssh_options
from testbed.campaign.journal import FOLDER, Journal
from testbed.campaign.model import load
from testbed.commands import campaign as command
from tests import lab
from tests.campaign_text import campaign as campaign_text

CAMPAIGN = campaign_text()


def end(address: str, **more: Any) -> dict[str, Any]:
    return {"address": address, "host": "h", "agent": "/var/lib/warpbed/agent.pyz", "consent": "mine", **more}


HOSTS = {"hosts": {"a": end("192.0.2.10"), "b": end("192.0.2.20")}}


@pytest.fixture(autouse=True)
def no_program_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARPBED_STATE", str(tmp_path / "state"))

    def refuse(*arguments: Any, **_: Any) -> NoReturn:
        raise AssertionError(f"started: {arguments}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(command, "stop_on_signals", lambda _: None)


def campaign(action: str, folder: Path, *more: str, code: int = 0) -> str:
    return lab.inside(
        "campaign", action, lab.write(folder, CAMPAIGN), *more, "--results", folder / "results", code=code
    )


def test_hosts_that_a_results_folder_names_are_never_asked(tmp_path: Path) -> None:
    hostile = {
        name: end(address, ssh_options=["-o", f"ProxyCommand=sh -c 'touch {tmp_path}/ran'"], become=False)
        for name, address in (("a", "192.0.2.10"), ("b", "192.0.2.20"))
    }
    folder = tmp_path / "results/demo"
    Journal(folder).add("begun", host="wan")
    (folder / FOLDER / "ends.json").write_text(json.dumps({"hosts": hostile}))
    assert "not known to this user of this machine" in campaign("stop", tmp_path, code=1)
    assert "not known to this user of this machine" in campaign("execute", tmp_path, "--host", "wan", code=2)
    absent = json.dumps({"hosts": {}, "absent": ["a", "b"]})
    assert "could not be prepared" in campaign("execute", tmp_path, "--host", "wan", "--ends", absent, code=2)
    assert not (tmp_path / "ran").exists()


def test_known_hosts_are_the_users_own_and_belong_to_one_folder(tmp_path: Path) -> None:
    parsed = ends.parse(json.dumps(HOSTS), load(lab.write(tmp_path, CAMPAIGN))[0])
    folder = tmp_path / "results/demo"
    assert known_ends.read(folder) == ""
    known_ends.write(folder, parsed)
    file = known_ends.file_of(folder)
    assert file.is_relative_to(tmp_path / "state") and not file.is_relative_to(tmp_path / "results")
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
    (tmp_path / "results").mkdir()
    (tmp_path / "link").symlink_to("results")
    assert json.loads(known_ends.read(tmp_path / "link/demo"))["hosts"].keys() == {"a", "b"}
    assert known_ends.read(tmp_path / "elsewhere/demo") == ""


@pytest.mark.parametrize(
    "text",
    [
        "", "-J gate.example:22 -p 2222", "-o UserKnownHostsFile=/tmp/a_b/known -o HostKeyAlias=b1", "-oPort=22 -4 -C",
        "-o StrictHostKeyChecking=no", '-o ProxyJump="u@gate,v@other:2"', "-i ~/.ssh/key -oBindAddress=192.0.2.1",
    ],
)  # fmt: skip
def test_options_that_say_how_a_host_is_reached_are_taken(text: str) -> None:
    ssh_options.check(text.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-o ProxyCommand=nc", "ProxyCommand: not one of the options"),
        ("-oproxycommand=nc", "proxycommand: not one of the options"),
        ("-o KnownHostsCommand=/bin/sh", "not one of the options"),
        ("-o LocalCommand=x -o PermitLocalCommand=yes", "not one of the options"),
        ("-o PKCS11Provider=/tmp/x.so", "not one of the options"),
        ("-I /tmp/x.so", "not one of the options"),
        ("-F /tmp/config", "not one of the options"),
        ("-E /tmp/log", "not one of the options"),
        ("host", "not one of the options"),
        ("-J -oProxyCommand=x", "not a value"),
        ("-o ProxyJump=$(id)", "not a value"),
        ("-o UserKnownHostsFile=|/bin/sh", "not a value"),
        ("-o Port", "write -o NAME=VALUE"),
        ("-J", "its value is missing"),
    ],
)
def test_other_options_are_refused_with_the_remedy(tmp_path: Path, text: str, message: str) -> None:
    hosts = {"hosts": {**HOSTS["hosts"], "b": end("192.0.2.20", ssh_options=text.split())}}
    with pytest.raises(UsageError, match=r"hosts\.b\.ssh_options") as caught:
        ends.parse(json.dumps(hosts), load(lab.write(tmp_path, CAMPAIGN))[0])
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["journal.jsonl", "lock", "stop"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_what_is_no_plain_file_in_a_campaigns_folder_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    mine, journal = tmp_path / "bashrc", Journal(tmp_path / "results/demo")
    mine.write_text("mine\n")
    journal.folder.mkdir(parents=True)
    place = journal.folder / name
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(mine if kind == "link" else tmp_path / "new")

    def use() -> None:
        with journal.held():
            journal.add("begun", host="wan")
            journal.stop()

    with pytest.raises(UsageError, match=r"is no plain file; remove it"):
        use()
    assert mine.read_text() == "mine\n" and not (tmp_path / "new").exists()
    assert not os.path.islink(tmp_path / "new")


@pytest.mark.parametrize("action", ["execute", "status", "stop"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "file"])
def test_a_link_in_the_place_of_a_campaigns_own_folder_is_not_followed(tmp_path: Path, action: str, kind: str) -> None:
    home, place = tmp_path / "home", tmp_path / "results/demo" / FOLDER
    home.mkdir()
    place.parent.mkdir(parents=True)
    if kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to(home if kind == "link" else tmp_path / "new")
    known_ends.write(place.parent, ends.parse(json.dumps(HOSTS), load(lab.write(tmp_path, CAMPAIGN))[0]))
    more = ["--host", "wan"] if action == "execute" else []
    ended = 0 if kind == "dangling link" and action != "execute" else 2
    if ended:
        assert "is no plain folder; remove it" in campaign(action, tmp_path, *more, code=ended)
    assert list(home.iterdir()) == [] and not (tmp_path / "new").exists()


def test_an_event_that_did_not_reach_the_disk_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path)
    journal.add("begun")
    before = journal.file.read_bytes()

    def full(_: int) -> NoReturn:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(Exception, match="make room"):
            journal.add("done", transfer="x")
    assert journal.file.read_bytes() == before


@pytest.mark.parametrize(
    "line",
    [
        '{"time": 1e300, "event": "begun"}', '{"time": NaN, "event": "begun"}', '{"time": -1, "event": "begun"}',
        '{"time": true, "event": "begun"}', '{"time": 1, "event": []}', '{"time": 1, "event": "run", "run": "x"}',
        '{"time": 1, "event": "started", "transfer": "x"}', '{"time": 1, "event": "missing", "transfer": {}}',
        "[" * 100_000, "[]", "\ud800",
    ],
)  # fmt: skip
def test_a_line_that_no_journal_has_is_left_out(tmp_path: Path, line: str) -> None:
    journal = Journal(tmp_path)
    journal.add("begun", host="wan")
    with open(journal.file, "ab") as file:
        file.write(line.encode(errors="surrogatepass") + b"\n")
    journal.add("run", run=1)
    assert [event["event"] for event in journal.events()] == ["begun", "run"]


def test_what_another_campaign_has_at_the_same_hosts_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, closed = tmp_path / "results/demo", list[tuple[str, str]]()
    known_ends.write(folder, ends.parse(json.dumps(HOSTS), load(lab.write(tmp_path, CAMPAIGN))[0]))
    Journal(folder).add("started", transfer="demo-b-1", attempt=2, bytes=1)

    def ask(name: str, _end: object, what: str, **more: str) -> dict[str, Any]:
        if what == "close":
            closed.append((name, more["id"]))
        return {"transfers": {"demo-b-1.a2": "running", "other-b-1.a1": "running", "demo-b-1.a1": "ended"}}

    monkeypatch.setattr(remote, "ask", ask)
    assert "a: demo-b-1.a2 ended" in campaign("stop", tmp_path)
    assert closed == [("a", "demo-b-1.a2"), ("b", "demo-b-1.a2")]


def test_a_campaign_stops_in_order_where_nobody_reads_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as out, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        stop = threading.Event()
        tell = command._teller(stop)
        tell("one")
        assert stop.is_set()
        tell("two")
