# SPDX-License-Identifier: Apache-2.0
"""Which file of tests starts when, and on which CPU."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from base.paths import ROOT
from tests import order, spread
from tests.durations import Cost

CPUS, WORKERS = 2, 4


class Item:
    """What the order reads of a test."""

    def __init__(self, file: str, is_slow: bool = False) -> None:
        self.path, self._is_slow = Path(file), is_slow

    def get_closest_marker(self, name: str) -> bool:
        return name == "slow" and self._is_slow


def ordered(files: str | list[str], costs: dict[str, Cost], workers: int = WORKERS, slow: str = "") -> list[str]:
    items = [Item(file, is_slow=file in slow and i % 2 == 1) for i, file in enumerate(files)]
    return [item.path.name for item in order.side_by_side(cast("list[pytest.Item]", items), costs, workers)]


def test_tests_of_a_file_stay_together_and_slow_files_that_nobody_knows_come_first() -> None:
    costs = {"b": Cost(1, 1), "c": Cost(90, 90), "d": Cost(7.5, 7.5)}
    assert "".join(ordered("aabbbccddddeef", costs, slow="e")) == "eeccddddbbbaaf", "the others keep their order"


def test_files_that_wait_start_beside_files_that_compute() -> None:
    waiting = {f"w{i}": Cost(200, 20) for i in range(8)}
    computing = {f"c{i}": Cost(100, 100) for i in range(16)}
    names = ordered([*computing, *waiting], {**computing, **waiting})
    assert sorted(name[0] for name in names[:WORKERS]) == ["c", "c", "w", "w"]


def test_a_file_that_would_end_last_comes_first_whatever_it_does() -> None:
    costs = {"short": Cost(10, 10), "long": Cost(100, 100), "idle": Cost(30, 1)}
    assert ordered([*costs], costs, 2)[0] == "long"


def test_with_no_test_run_before_and_with_files_that_took_no_time_every_test_is_in_the_list() -> None:
    assert ordered("ab", {}) == ["a", "b"]
    assert sorted(ordered("ab", {"a": Cost(0, 0), "b": Cost(0, 0)})) == ["a", "b"]


def taken_s(names: list[str], costs: dict[str, Cost]) -> float:
    """Handed out to workers in this order, on CPUs that are shared evenly: seconds until the last file has ended."""
    queue = [(costs[name].took_s - costs[name].cpu_s, costs[name].cpu_s) for name in names]
    running: list[list[float]] = []
    now_s = 0.0
    while queue or running:
        while queue and len(running) < WORKERS:
            running.append(list(queue.pop(0)))
        # a file waits and computes by turns: in each second it asks for the share of CPU time that is left of its rest
        asked = [file[1] / max(sum(file), 1e-9) for file in running]
        share = min(1.0, CPUS / max(sum(asked), 1e-9))
        step_s = min(
            sum(file) / (1 - a + a * share) if a < 1 or share else 0 for file, a in zip(running, asked, strict=True)
        )
        for file, a in zip(running, asked, strict=True):
            done_s = step_s * (1 - a + a * share)
            part = min(1.0, done_s / max(sum(file), 1e-9))
            file[0] *= 1 - part
            file[1] *= 1 - part
        running = [file for file in running if sum(file) > 1e-6]
        now_s += step_s
    return now_s


@pytest.mark.parametrize("seed", range(6))
def test_a_run_played_through_takes_less_time_than_with_the_longest_files_first(seed: int) -> None:
    """Files as this project has them: a machine that is emulated, some that wait, many short ones that compute."""
    draw = random.Random(seed)
    costs = {"machine": Cost(600, 380)}
    for kind, number, shares in (("waits", 12, (0.1, 0.4)), ("computes", 80, (0.5, 1.0))):
        for i in range(number):
            took_s = draw.uniform(60, 350) if kind == "waits" else draw.expovariate(1 / 25)
            costs[f"{kind} {i}"] = Cost(took_s, took_s * draw.uniform(*shares))
    longest_first = sorted(costs, key=lambda name: -costs[name].took_s)
    assert taken_s(ordered([*costs], costs), costs) < 0.95 * taken_s(longest_first, costs)


def test_files_have_the_names_that_reports_give_them(request: pytest.FixtureRequest) -> None:
    assert order.name_of(request.path) == request.node.location[0]


def test_a_file_runs_where_the_others_leave_most() -> None:
    assert spread.choose([0, 1], []) == 0
    assert spread.choose([0, 1], [(0, 0.2)]) == 1
    assert spread.choose([0, 1], [(0, 0.2), (1, 0.9), (0, 0.3)]) == 0


def test_workers_hear_of_one_another(tmp_path: Path) -> None:
    """Each in a process of its own, since it moves itself; a worker's next file counts instead of the one before."""
    cpus = sorted(os.sched_getaffinity(0))
    code = (
        "import os, sys; from pathlib import Path; from tests import spread; "
        f"print(spread.settle(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), {cpus!r}), os.sched_getaffinity(0))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for worker, busy in [("gw0", "0.9"), ("gw1", "0.5"), ("gw0", "0.1")]:
        line = [sys.executable, "-P", "-c", code, str(tmp_path / "cpus"), worker, busy]
        done = subprocess.run(line, capture_output=True, text=True, check=True, env=environment)
        cpu, allowed = done.stdout.split(maxsplit=1)
        assert allowed.strip() == f"{{{cpu}}}"
    taken = json.loads((tmp_path / "cpus").read_text())
    second = cpus[min(1, len(cpus) - 1)]
    assert taken == {"gw0": [cpus[0], 0.1], "gw1": [second, 0.5]}
