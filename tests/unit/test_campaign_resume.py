# SPDX-License-Identifier: Apache-2.0
"""A campaign that is resumed, whose ends answer nonsense, or whose disks are full: nothing is lost, and nothing stays behind.

The ends are imitated at the one place where they are asked, and what came home is a run folder as small as can be.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

from analysis.results import FORMAT
from testbed.campaign import conductor as conductor_module
from testbed.campaign import remote
from testbed.campaign.attempt import Attempt
from testbed.campaign.conductor import KEPT_AT_MOST, Conductor
from testbed.campaign.ends import End
from testbed.campaign.journal import Journal, JournalError
from testbed.campaign.model import load
from testbed.campaign.schedule import run_of
from testbed.results import Results
from tests.campaign_text import campaign as campaign_text

CAMPAIGN = campaign_text(
    "{b: {}, c: {}}", pause="0s", every="0s", runs="1", attempts="2", traceroute="true", patience="0s"
)
NESTED: list[Any] = []
for _ in range(5000):
    NESTED = [NESTED]


class Clock:
    """Time passes where it is waited for, and nowhere else."""

    def __init__(self) -> None:
        self.now_s = 1e9

    def time(self) -> float:
        return self.now_s

    def time_ns(self) -> int:
        return round(self.now_s * 1e9)

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += max(seconds, 1e-3)


@dataclass
class World:
    """A campaign's ends and its results here."""

    folder: Path
    clock: Clock
    text: str = CAMPAIGN
    files: dict[str, set[str]] = field(default_factory=lambda: {name: set() for name in "abc"})
    """The attempts of which an end has files."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    away: set[str] = field(default_factory=set)
    """Ends that cannot be reached when they are to list what they have, or to remove it."""
    answers: dict[str, Any] = field(default_factory=dict)
    """What is said to a question instead of what is true."""
    cannot_fetch: bool = False
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        file = self.folder / "c.yml"
        file.write_text(self.text)
        self.campaign = load(file)[0]
        self.results = Results(self.folder / "results", "demo")
        self.journal = Journal(self.results.folder, self.clock.time)
        self.transfers = [transfer.id for transfer in run_of(self.campaign, 1, "wan")]

    def conduct(self, again: bool = False) -> list[str]:
        ends = {
            name: End(address=f"192.0.2.{number}", host="h", agent="/var/lib/warpbed/agent.pyz", consent="mine")
            for number, name in enumerate("abc", 1)
        }
        conductor = Conductor(
            self.campaign, ends, self.results, self.journal, self.said.append, lambda: False, again, retry_s=1.0
        )
        return conductor.conduct()

    def ask(self, name: str, _end: End, do: str, _timeout_s: float = 0.0, **request: Any) -> dict[str, Any]:
        self.asked.append((name, do))
        attempt = request.get("id", "")
        if do in ("list", "remove") and name in self.away:
            raise remote.UnreachableError(f"{name}: no route")
        if do in self.answers:
            if isinstance(self.answers[do], Exception):
                raise self.answers[do]
            return dict(self.answers[do])
        if do == "list":
            return {"transfers": dict.fromkeys(self.files[name], "ended")}
        if do == "remove":
            self.files[name].discard(attempt)
        if do == "start":
            self.files[name].add(attempt)
            return {"state": "running" if name == "a" else "ready"}
        if do == "status":
            return {"state": "ended" if attempt in self.files[name] else "absent", "ok": True, "reason": ""}
        if do == "trace":
            return {"hops": [{"hop": 1, "addresses": ["192.0.2.9"], "rtt_ms": [1.5]}]}
        return {
            "time_ns": 10**18, "boot_id": "x", "uid": 0, "free_bytes": 10**13, "interface": "eth0",
            "algorithms": ["reno"], "kernel": {"release": "6.1"}, "tools": {}, "clock": {"source": None},
        }  # fmt: skip

    def bring_home(self, attempt: Attempt, results: Results, _status: Mapping[str, Any]) -> Path:
        if self.cannot_fetch:
            raise remote.UnreachableError("a: the files did not come through")
        with results.aside() as folder:
            (folder / "run.json").write_text(json.dumps({"format": FORMAT, "status": "complete"}))
            return results.publish(folder, attempt.transfer.id)

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.journal.events() if event["event"] == kind]

    def at_ends(self) -> set[str]:
        return set().union(*self.files.values())


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path, Clock())
    monkeypatch.setattr(remote, "ask", made.ask)
    monkeypatch.setattr(conductor_module, "time", made.clock)

    def bring_home(attempt: Attempt, results: Results, status: Mapping[str, Any]) -> Path:
        return made.bring_home(attempt, results, status)

    monkeypatch.setattr(Attempt, "bring_home", bring_home)
    return made


def publish(world: World, transfer: str, content: str = json.dumps({"format": FORMAT})) -> Path:
    folder = world.results.path(transfer)
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(content)
    return folder


def begun(world: World, transfer: str, *ends: str) -> None:
    """As a crash leaves it that came after an attempt had begun."""
    world.journal.add("begun", host="wan")
    world.journal.add("run", run=1)
    world.journal.add("started", transfer=transfer, attempt=1, bytes=10**6)
    for name in ends:
        world.files[name].add(f"{transfer}.a1")


def test_a_run_that_has_its_name_is_cleared_at_the_ends_and_noted_when_the_campaign_is_resumed(world: World) -> None:
    one = world.transfers[0]
    begun(world, one, "a", "b", "c")
    publish(world, one)
    world.files["a"].add("of-another-campaign.a1")
    assert world.conduct() == []
    assert world.at_ends() == {"of-another-campaign.a1"}
    assert sorted(event["transfer"] for event in world.events("done")) == sorted(world.transfers)
    assert [event["transfer"] for event in world.events("started")] == world.transfers, "nothing was measured twice"


def test_what_failed_is_cleared_at_the_ends_when_the_campaign_is_resumed(world: World) -> None:
    begun(world, world.transfers[0], "a")
    world.journal.add("failed", transfer=world.transfers[0], attempt=1, reason="x")
    assert world.conduct() == [] and world.at_ends() == set()


def test_an_end_that_cannot_be_reached_is_asked_again_by_the_next_start(world: World) -> None:
    world.away = {"c"}
    assert world.conduct() == [] and world.at_ends() != set()
    assert world.events("left") != []
    world.away.clear()
    assert world.conduct() == [] and world.at_ends() == set()


@pytest.mark.parametrize(
    "answer",
    [{}, {"transfers": 3}, {"transfers": [[]]}, {"transfers": None}, RuntimeError("x"), RecursionError("x")],
    ids=repr,
)
def test_a_list_that_no_agent_gives_costs_nothing_but_a_line(world: World, answer: Any) -> None:
    begun(world, world.transfers[0], "a")
    publish(world, world.transfers[0])
    world.answers["list"] = answer
    assert world.conduct() == [] and world.events("left") != []


@pytest.mark.parametrize(
    "trace",
    [
        {"hops": NESTED}, {"hops": [{"hop": 1, "addresses": NESTED, "rtt_ms": []}]}, {"hops": None}, {},
        {"hops": [{"hop": 1, "addresses": [], "rtt_ms": ["nan", 1e999]}]},
        {"hops": [{"hop": "\ud800", "addresses": [], "rtt_ms": []}]},
        {"hops": [{"hop": 1, "addresses": [], "rtt_ms": []}] * 65},
        RuntimeError("x"), RecursionError("x"),
    ],
    ids=["deep", "deep address", "none", "nothing", "no numbers", "half a character", "many", "runtime", "recursion"],
)  # fmt: skip
def test_a_path_that_no_traceroute_shows_costs_no_transfer(world: World, trace: Any) -> None:
    world.answers["trace"] = trace
    assert world.conduct() == []
    assert all(event["hops"] == [] and "reason" in event for event in world.events("path"))
    assert len(world.events("path")) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"clock": NESTED}, {"time_ns": 1e999}, {"time_ns": "x"}, {"boot_id": "\ud800"}, {"free_bytes": None},
        {"algorithms": 3},
    ],
    ids=["deep", "endless", "a word", "half a character", "no room", "a number"],
)  # fmt: skip
def test_a_probe_that_no_agent_gives_is_given_up_and_the_campaign_goes_on(world: World, change: dict[str, Any]) -> None:
    end = End(address="192.0.2.1", host="h", agent="/var/lib/warpbed/agent.pyz")
    world.answers["probe"] = {**world.ask("a", end, "probe"), **change}
    assert world.conduct() == world.transfers
    assert [event["event"] for event in world.journal.events()][-1] == "over"


@pytest.mark.parametrize("error", [RuntimeError, RecursionError, MemoryError])
def test_an_error_while_the_ends_are_probed_is_given_up_and_the_campaign_goes_on(
    world: World, error: type[Exception]
) -> None:
    world.answers["probe"] = error("nobody thought of this")
    assert world.conduct() == world.transfers
    assert all("nobody thought of this" in event["reason"] for event in world.events("missing"))


def fill(world: World, monkeypatch: pytest.MonkeyPatch, times: int, error: int = errno.ENOSPC) -> None:
    """The journal's disk has no room the next `times` times."""
    inner, left = Journal._write, [times]

    def write(self: Journal, line: bytes) -> None:
        if left[0]:
            left[0] -= 1
            raise OSError(error, "No space left on device")
        inner(self, line)

    monkeypatch.setattr(Journal, "_write", write)


def test_room_for_the_journal_is_waited_for(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    patient = World(tmp_path, world.clock, CAMPAIGN.replace("patience: 0s", "patience: 1min"))
    monkeypatch.setattr(remote, "ask", patient.ask)
    fill(patient, monkeypatch, 30)
    assert patient.conduct() == []
    assert [text for text in patient.said if "the disk is full; waiting for room for 1min" in text] != []
    assert [event["event"] for event in patient.journal.events()].count("done") == 2


@pytest.mark.parametrize(("times", "error"), [(1000, errno.ENOSPC), (1, errno.EIO)], ids=["full", "broken"])
def test_without_a_journal_the_campaign_ends_with_a_message(
    world: World, monkeypatch: pytest.MonkeyPatch, times: int, error: int
) -> None:
    fill(world, monkeypatch, times, error)
    with pytest.raises(JournalError, match="the same command resumes it"):
        world.conduct()
    assert ("a", "start") not in world.asked


@pytest.mark.parametrize("content", ["", "{", "[]", '"text"', "[" * 100], ids=["empty", "half", "list", "text", "deep"])
def test_what_is_no_run_makes_way_before_anything_is_measured(world: World, content: str) -> None:
    one = world.transfers[0]
    (publish(world, one, content) / "notes").write_text("mine")
    assert world.conduct() == []
    aside = world.results.path(f"{one}.failed-1")
    assert (aside / "run.json").read_text() == content and (aside / "notes").read_text() == "mine"
    assert len(world.events("started")) == 2 and world.results.is_complete(one)
    assert any(f"it is now {one}.failed-1" in text for text in world.said)


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_no_folder_makes_way_and_is_not_followed(world: World, kind: str) -> None:
    place = world.results.path(world.transfers[0])
    place.parent.mkdir(parents=True)
    if kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to(world.folder)
    assert world.conduct() == [] and len(world.events("started")) == 2
    aside = place.with_name(f"{place.name}.failed-1")
    assert (kind == "file" and aside.read_text() == "mine") or aside.is_symlink()


def test_what_cannot_make_way_is_named_before_anything_is_measured(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_results: Results, _transfer: str) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Results, "set_aside", refuse)
    assert world.conduct() == world.transfers and world.events("started") == []
    assert all("Permission denied" in event["reason"] for event in world.events("missing"))


def test_what_was_measured_and_cannot_be_fetched_stays_at_the_ends_and_is_fetched_later(world: World) -> None:
    world.cannot_fetch = True
    assert world.conduct() == world.transfers
    assert all(
        "they stay at the hosts; `campaign execute --again` fetches them" in e["reason"]
        for e in world.events("missing")
    )
    kept = world.at_ends()
    assert len(kept) == 2 and world.asked.count(("a", "start")) == 2, "no other attempt is made meanwhile"
    assert world.conduct() == world.transfers and world.at_ends() == kept, "as long as nobody asks"
    world.cannot_fetch = False
    assert world.conduct(again=True) == [] and world.at_ends() == set()
    assert world.asked.count(("a", "start")) == 2 and len(world.events("started")) == 2, "fetched, not measured again"


def test_no_more_than_a_few_transfers_wait_at_the_ends(world: World) -> None:
    world.cannot_fetch = True
    for number in range(KEPT_AT_MOST):
        world.journal.add("started", transfer=f"r0000-{number}", attempt=1, bytes=1)
        world.journal.add("kept", transfer=f"r0000-{number}", attempt=1, reason="x")
    assert world.conduct() == world.transfers and world.at_ends() == set()
    assert all("wait at the hosts already" in event["reason"] for event in world.events("failed"))
    assert len(world.events("failed")) == 4, "each of two transfers twice, as any failure"


def test_a_clock_that_was_set_back_makes_no_pause_longer(world: World) -> None:
    begun(world, world.transfers[0])
    world.journal.add("done", transfer="r0000-x", bytes=10**11)
    before_s = world.clock.now_s = world.clock.now_s - 1e8
    assert world.conduct() == [] and world.clock.now_s - before_s < 10 * 86400


def test_a_campaign_that_ran_in_virtual_time_runs_between_hosts_into_the_same_folder(world: World) -> None:
    world.journal.add("begun", host="virtual")
    world.journal.add("run", reason="run 1: 4 of 4 transfers")
    assert world.conduct() == []
