# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with one attempt at a transfer is that attempt's: it is kept, marked, and the campaign goes on.

Both ends are imitated at the one place where they are asked, so that their answers can be as wrong as wanted.
"""

from __future__ import annotations

import struct
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plan.model import BpfObject
from plan.samples import MAGIC
from testbed import cli
from testbed.campaign import attempt, remote
from testbed.campaign.attempt import Attempt
from testbed.campaign.conductor import Conductor
from testbed.campaign.ends import End
from testbed.campaign.journal import Journal
from testbed.campaign.model import Campaign, load
from testbed.collecting import Trouble
from testbed.results import Results
from tests.campaign_text import campaign as campaign_text

CAMPAIGN = campaign_text(
    "{b: {}, c: {}}", pause="0s", every="0s", runs="1", attempts="2", traceroute="false", patience="1s"
)
EMPTY_CAPTURE = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1)
ENDS = {
    name: End(address=address, host="h", agent="/var/lib/warpbed/agent.pyz", consent="mine")
    for name, address in (("a", "192.0.2.10"), ("b", "192.0.2.20"), ("c", "192.0.2.30"))
}


def answer(name: str, _end: End, do: str, _timeout_s: float = 0.0, **_: Any) -> dict[str, Any]:
    """What an end that is well says."""
    side = "sender" if name == "a" else "receiver"
    if do == "probe":
        return {
            "time_ns": time.time_ns(), "boot_id": "x", "uid": 0, "free_bytes": 10**13, "interface": "eth0",
            "algorithms": ["reno"], "kernel": {"release": "6.1"}, "tools": {}, "clock": {"source": None},
        }  # fmt: skip
    if do == "start":
        return {"state": "ready" if side == "receiver" else "running"}
    if do == "status":
        return {
            "state": "ended", "ok": True, "reason": "", "start_realtime_ns": 10**18, "start_monotonic_ns": 0,
            "ended_s": 1.0, "capture_drops": 0, "captures_cut": False,
            "environment": {"kernel": {"release": "6.1"}, "tools": {}, "nodes": {side: {"interfaces": {}}}},
        }  # fmt: skip
    return {}


ANSWER = answer
LOG: Path | None = None
"""What each end has printed."""
WITHOUT = "nothing"
"""The file that no end sends."""


def conduct(
    folder: Path, monkeypatch: pytest.MonkeyPatch, captures: int, samples: bytes
) -> tuple[list[str], list[dict[str, Any]]]:
    """The transfers that are missing at the end of the campaign, and its journal."""

    def fetch(name: str, _end: End, _transfer: str, target: Path, **_: Any) -> None:
        side = "sender" if name == "a" else "receiver"
        target.mkdir()
        for number in range(captures):
            (target / f"eth{number}.pcap").write_bytes(EMPTY_CAPTURE)
        (target / f"{side}.json").write_text('{"bytes": 1000000, "seconds": 1.0}')
        (target / "sockets.bin").write_bytes(samples)
        if LOG is not None:
            (target / "console.log").symlink_to(LOG)
        (target / WITHOUT).unlink(missing_ok=True)

    monkeypatch.setattr(remote, "ask", ANSWER)
    monkeypatch.setattr(remote, "fetch", fetch)
    journal = Journal(folder / "results/demo")
    conductor = Conductor(
        _campaign(folder), ENDS, Results(folder / "results", "demo"), journal, print, lambda: False, retry_s=0.01
    )
    return conductor.conduct(), journal.events()


def _campaign(folder: Path) -> Campaign:
    file = folder / "c.yml"
    file.write_text(CAMPAIGN)
    return load(file)[0]


def test_a_kernel_that_takes_no_bpf_programs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ask", ANSWER)  # its probe says nothing of them
    journal = Journal(tmp_path / "results/demo")
    objects = {"reno": BpfObject("reno", "/nowhere", "0")}
    conductor = Conductor(
        _campaign(tmp_path), ENDS, Results(tmp_path / "results", "demo"), journal, print, lambda: False, objects=objects
    )
    assert len(conductor.conduct()) == 2
    reasons = {event["reason"] for event in journal.events() if event["event"] == "missing"}
    assert (
        len(reasons) == 1 and "a's kernel does not describe itself (CONFIG_DEBUG_INFO_BTF), which reno" in reasons.pop()
    )


@pytest.mark.parametrize(
    ("captures", "samples", "reason"),
    [
        (1, MAGIC, "0 data connections in the capture, 1 expected"),
        (0, MAGIC, "0 captures came home, 1 expected"),
        (2, MAGIC, "2 captures came home, 1 expected"),
    ],
    ids=["no packets", "no capture", "two captures"],
)
def test_a_transfer_that_cannot_be_collected_is_kept_and_the_campaign_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, captures: int, samples: bytes, reason: str
) -> None:
    missing, events = conduct(tmp_path, monkeypatch, captures, samples)
    assert len(missing) == 2, "both receivers were tried"
    failed = [event for event in events if event["event"] == "failed"]
    assert len(failed) == 4 and all(reason in event["reason"] for event in failed)
    kept = sorted(folder.name for folder in (tmp_path / "results/demo").glob("*.failed-*"))
    assert len(kept) == 4
    assert all((tmp_path / "results/demo" / name / "raw").is_dir() for name in kept)
    assert events[-1]["event"] == "over"
    assert list((tmp_path / "results").glob(".aside/*")) == []


def test_whatever_an_attempt_ends_with_the_campaign_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody has thought of, at a place that handles none."""
    inner = Attempt.await_end

    def breaks(self: Attempt, unreachable: Callable[[str], None]) -> dict[str, Any]:
        inner(self, unreachable)
        raise LookupError("nobody thought of this")

    monkeypatch.setattr(Attempt, "await_end", breaks)
    missing, events = conduct(tmp_path, monkeypatch, 1, MAGIC)
    assert len(missing) == 2 and events[-1]["event"] == "over", "both receivers were tried"
    reasons = [event["reason"] for event in events if event["event"] == "failed"]
    assert reasons == ["LookupError: nobody thought of this"] * 4


@pytest.mark.parametrize("script", ["kill -9 $$", "echo out of memory >&2; kill -ABRT $$"])
def test_a_collector_that_dies_of_what_a_host_sent_ends_one_attempt_and_not_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    (tmp_path / "python").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    missing, events = conduct(tmp_path, monkeypatch, 1, MAGIC)
    assert len(missing) == 2 and events[-1]["event"] == "over", "both receivers were tried"
    failed = [event["reason"] for event in events if event["event"] == "failed"]
    assert len(failed) == 4 and all("measured, but collecting failed: ended by SIG" in reason for reason in failed)
    kept = list((tmp_path / "results/demo").glob("*.failed-*"))
    assert len(kept) == 4 and all((folder / "raw/sockets.bin").is_file() for folder in kept)


@pytest.mark.parametrize(("snap", "most"), [("96B", 1_000_000), ("all", 660 * (16 + (256 << 10)))])
def test_no_more_of_a_capture_is_taken_than_its_budget_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snap: str, most: int
) -> None:
    taken: list[int] = []

    def fetch(*_: Any, capture_bytes: int, heed: Callable[[], None]) -> None:
        heed()
        taken.append(capture_bytes)
        raise remote.RefusedError("imitated")

    monkeypatch.setattr(sys.modules[__name__], "CAMPAIGN", f"{CAMPAIGN}captures: {{snap: {snap}, budget: 1MB}}\n")
    monkeypatch.setattr(remote, "ask", ANSWER)
    monkeypatch.setattr(remote, "fetch", fetch)
    journal = Journal(tmp_path / "results/demo")
    results = Results(tmp_path / "results", "demo")
    assert len(Conductor(_campaign(tmp_path), ENDS, results, journal, print, lambda: False).conduct()) == 2
    assert set(taken) and all(0.9 * most < one <= most for one in taken)


def test_a_large_log_of_a_host_is_kept_to_its_end_and_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    with open(log, "wb") as file:
        file.truncate(1 << 30)
        file.seek(0, 2)
        file.write(b"the last words")
    monkeypatch.setattr(sys.modules[__name__], "LOG", log)
    monkeypatch.setattr(attempt, "collect_fetched", lambda folder, **_: Trouble("imitated"))
    tracemalloc.start()
    try:
        conduct(tmp_path, monkeypatch, 1, MAGIC)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    for folder in (tmp_path / "results/demo").glob("*.failed-*"):
        said = (folder / "raw/console.log").read_bytes()
        assert said.count(b"the last words") == 2 and len(said) == 2 << 20


@pytest.mark.parametrize("name", ["sockets.bin", "sender.json", "receiver.json"])
def test_a_file_that_a_host_does_not_send_is_its_failure_and_no_full_disk_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "WITHOUT", name)
    _, events = conduct(tmp_path, monkeypatch, 1, MAGIC)
    failed = [event["reason"] for event in events if event["event"] == "failed"]
    assert len(failed) == 4 and all(f"no {name} came home" in reason for reason in failed)


def test_started_again_the_campaign_does_not_stumble_over_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = conduct(tmp_path, monkeypatch, 1, MAGIC)
    second, events = conduct(tmp_path, monkeypatch, 1, MAGIC)
    assert first == second
    assert [event["event"] for event in events].count("failed") == 4, "what is settled is not tried again unasked"


def test_an_end_that_answers_what_no_agent_does_is_given_up_and_the_campaign_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def strange(name: str, end: End, do: str, timeout_s: float = 0.0, **request: Any) -> dict[str, Any]:
        asked.append(name)
        return {"free_bytes": None} if name == "b" else answer(name, end, do, timeout_s, **request)

    monkeypatch.setattr(sys.modules[__name__], "ANSWER", strange)
    missing, events = conduct(tmp_path, monkeypatch, captures=0, samples=MAGIC)
    assert len(missing) == 2 and "c" in asked
    waiting = [event["reason"] for event in events if event["event"] == "waiting"]
    assert waiting == ["an end answers what no agent of ours does (KeyError: 'interface')"]


def test_words_of_an_end_do_not_move_the_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.yml").write_text(CAMPAIGN)
    journal = Journal(tmp_path / "results/demo")
    journal.add("begun", host="wan")
    journal.add("missing", transfer="r0001-b", reason="b: \x1b[2J\x1b]0;title\x07gone")
    options = ["campaign", "status", str(tmp_path / "c.yml"), "--results", str(tmp_path / "results")]
    assert cli.main(options) == 0
    shown = capsys.readouterr().out
    assert "gone" in shown and "\x1b" not in shown and "\x07" not in shown

    def refuse() -> int:
        raise remote.RefusedError("b: \x1b[2J\nsecond line")

    assert cli.ended(refuse) == 1
    assert capsys.readouterr().err == "b: �[2J\n  second line\n"
