# SPDX-License-Identifier: Apache-2.0
"""Raw files of guests that tests share over runs of the tests: a guest runs again as soon as anything that decides them has changed."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hosts.base import Execution, Outcome, failure
from hosts.identity import KernelInputs
from testbed.experiments import prepare
from tests import kept_raw, lab

FACTS = {"memory": [1, 2.5], "name": "é"}


class Guests:
    """A stand-in for the virtual host, whose guests write their seed; the cache is empty."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.seeds = folder, list[int]()
        self.plan = prepare(lab.write(folder, lab.SMALL)).plans[0]
        self.inputs = KernelInputs("kernel", {"tcp_x": "A"}, {"iperf3": "3.12"}, "agent")
        self.error: dict[str, str] | None = None

    def start(self, host: object, run: Execution) -> Outcome:
        self.seeds.append(run.seed)
        (run.folder / "deep").mkdir()
        (run.folder / "deep/a.pcap").write_text(f"seed {run.seed}")
        return Outcome(self.error, FACTS, 1.5, 6.0)

    def run(self, name: str, seed: int = 1, **changes: Any) -> Outcome:
        raw = self.folder / name
        raw.mkdir()
        plan = dataclasses.replace(self.plan, **changes)
        host: Any = SimpleNamespace(inputs=lambda plan: self.inputs)
        outcome = kept_raw.execute(host, Execution(plan, raw, 0, seed, lambda _: None, lambda: False))
        assert (raw / "deep/a.pcap").read_text() == f"seed {seed}"
        return outcome


@pytest.fixture
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guests:
    guests = Guests(tmp_path)
    monkeypatch.setattr(kept_raw, "_execute", guests.start)
    monkeypatch.setattr(kept_raw, "cache_dir", lambda: tmp_path / "cache")
    return guests


def test_an_equal_guest_runs_once_and_its_outcome_is_the_same(guests: Guests) -> None:
    assert [guests.run(name) for name in "abc"] == [Outcome(None, FACTS, 1.5, 6.0)] * 3
    assert guests.seeds == [1]


def test_what_decides_a_guest_makes_it_run_again(guests: Guests, monkeypatch: pytest.MonkeyPatch) -> None:
    guests.run("first")
    guests.run("seed", seed=2)
    guests.run("plan", duration_s=7.0)
    sound = guests.inputs
    for change in (
        {"kernel": "other"},
        {"modules": {"tcp_x": "B"}},
        {"userland": {"iperf3": "3.18"}},
        {"agent": "other"},
    ):
        guests.inputs = dataclasses.replace(sound, **change)
        guests.run(next(iter(change)))
    guests.inputs = sound
    monkeypatch.setattr(kept_raw, "starter", lambda: "other")
    guests.run("starter")
    assert guests.seeds == [1, 2, *[1] * 6]


def test_a_failure_is_not_kept(guests: Guests) -> None:
    guests.error = failure("kernel", "guest", "panic")
    assert [guests.run(name).error for name in "ab"] == [guests.error] * 2
    assert len(guests.seeds) == 2
