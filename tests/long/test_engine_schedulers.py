# SPDX-License-Identifier: Apache-2.0
"""A scheduler of Dask that dies while runs are made: the command ends with words, or goes on with another; no run is lost or doubled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from base.errors import WarpbedError
from hosts.per_kernel import RunHosts
from testbed.engine import clusters, conductor, stub
from testbed.engine.conductor import DaskRunner
from testbed.engine.supplies import Supplies
from testbed.results import Results
from testbed.runner import Job
from tests import sleeping
from tests.sleeping import RUNS, FakeHost, begun
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::RuntimeWarning"),
]


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    return sleeping.jobs(tmp_path)


@pytest.fixture(autouse=True)
def supplied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Supplies, "artifacts", lambda self, kernel: ())


def test_a_scheduler_that_goes_away_ends_the_command_with_words(
    jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scheduler.json"
    scheduler = subprocess.Popen(
        [sys.executable, "-P", "-m", "distributed.cli.dask_scheduler", "--scheduler-file", file, "--host", "127.0.0.1",
            "--port", "0",
         "--no-dashboard"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
         cwd=tmp_path, env={**os.environ, "DASK_TEMPORARY_DIRECTORY": str(tmp_path)},
    )  # fmt: skip
    try:
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        monkeypatch.setattr(conductor, "PATIENCE_S", 1.0)
        host: Any = FakeHost()
        with clusters.client_of(str(json.loads(file.read_text())["address"]), "local", 0) as client:
            runner = DaskRunner(Results(tmp_path / "results", "small"), RunHosts(host), client, print)
            failures: list[BaseException] = []

            def conduct() -> None:
                try:
                    runner.run_all(jobs)
                except WarpbedError as error:
                    failures.append(error)

            thread = threading.Thread(target=conduct)
            thread.start()
            time.sleep(1)
            scheduler.kill()
            thread.join(60)
            assert not thread.is_alive()
    finally:
        scheduler.kill()
        scheduler.wait()
    (failure,) = failures
    assert "the scheduler is gone" in str(failure) and "the same command resumes" in str(failure)
    assert capsys.readouterr().err.count("waiting for workers") == 1
    assert not [path.name for path in (tmp_path / "results").iterdir() if path.name.startswith(".engine")]


def test_a_scheduler_that_is_started_again_gets_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its workers end with it, and others come to the new one; the command goes on, and each run is there once."""
    monkeypatch.setattr(stub, "run_task", sleeping.sleeps_long)
    monkeypatch.setattr(clusters, "CONNECT_S", 300)
    (tmp_path / "results").mkdir()
    groups: list[subprocess.Popen[bytes]] = []

    def begin(number: int, port: str) -> str:
        """A scheduler at a port, and two workers; its address."""
        file = tmp_path / f"scheduler{number}"
        line = [sys.executable, "-P", "-m", "tests.dask_cluster", port, str(file)]
        quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        groups.append(subprocess.Popen(line, cwd=tmp_path, **quiet))
        wait_until(file.exists, while_running=groups[-1])
        return file.read_text()

    runs = sleeping.jobs(tmp_path)
    summaries: list[Any] = []
    try:
        address = begin(1, "0")
        with clusters.client_of(address, "local", 0) as client:
            host: Any = FakeHost()
            runner = DaskRunner(Results(tmp_path / "results", "small"), RunHosts(host), client, lambda event: None)
            conducting = threading.Thread(target=lambda: summaries.append(runner.run_all(runs)))
            conducting.start()
            wait_until(lambda: len(begun(tmp_path)) >= 2, 120)
            groups[0].kill()
            groups[0].wait()
            before = len(begun(tmp_path))
            assert begin(2, address.rpartition(":")[2]) == address
            conducting.join(300)
    finally:
        for process in groups:
            process.kill()
            process.wait()
    (summary,) = summaries
    assert before < RUNS, "it was killed in the middle"
    assert summary.failed == {}
    assert sorted(path.name for path in (tmp_path / "results/small").iterdir()) == sorted(job.run_id for job in runs)
    assert sorted(summary.done) == sorted(job.run_id for job in runs), "each is told once"
