# SPDX-License-Identifier: Apache-2.0
"""Runs by Dask's workers are those of the local engine, byte for byte, also where workers and clients are killed or share no files."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from base.paths import cache_dir
from hosts.virtual.launch import GuestKernel
from tests import kept_results, lab
from tests.waiting import wait_until

SWEEP = "sweep:\n  parameters: {cca: flows.*.cca}\n  factorial: {cca: [cubic, reno]}\n"
TEXT = lab.SMALL + SWEEP
LONGER = TEXT.replace("5s", "30s")


@pytest.fixture
def alone(kernel: GuestKernel, tmp_path: Path) -> Path:
    """The same runs by the local engine."""
    (tmp_path / "alone").mkdir()
    return kept_results.results(tmp_path / "alone", TEXT)


def digests(folder: Path) -> dict[str, dict[str, str]]:
    return {run["run"]: lab.digests(run["path"]) for run in lab.runs(folder)}


class Cluster:
    """A scheduler and workers as processes of their own, as they are on other machines."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self.file = folder / "scheduler.json"
        self.start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        wait_until(lambda: self.file.exists() and self.file.read_text().endswith("}"))

    @property
    def address(self) -> str:
        return str(json.loads(self.file.read_text())["address"])

    def start(
        self, program: str, *arguments: str, environment: dict[str, str] | None = None, before: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [
                *before,
                sys.executable,
                "-P",
                "-m",
                f"distributed.cli.{program}",
                "--scheduler-file",
                str(self.file),
                *arguments,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            env={**os.environ, **(environment or {})},
        )
        self._stack.callback(_end, process)
        return process

    def worker(
        self, name: str, environment: dict[str, str] | None = None, before: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """before: a command line that starts it"""
        argv = [
            "--name",
            name,
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--local-directory",
            str(self._folder),
        ]
        return self.start("dask_worker", *argv, environment=environment, before=before)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "dask").mkdir()
    with contextlib.ExitStack() as stack:
        yield Cluster(tmp_path / "dask", stack)


def test_the_same_bytes_come_from_the_local_engine_and_from_dask(alone: Path, tmp_path: Path) -> None:
    file = lab.write(tmp_path, TEXT)
    output = lab.warpbed("execute", file, "--engine", "dask", "--workers", "2", "--results", tmp_path / "dask")
    assert digests(tmp_path / "dask/small") == digests(alone)
    assert "[2/2]" in output and "[3/2]" not in output, "each run is told once"
    assert "INFO" not in output
    assert "nothing to do" in lab.warpbed(
        "execute", file, "--engine", "dask", "--workers", "1", "--results", tmp_path / "dask"
    )


def test_a_worker_that_shares_no_files_fetches_what_it_needs_by_key(
    alone: Path, tmp_path: Path, cluster: Cluster
) -> None:
    elsewhere = tmp_path / "elsewhere"
    cluster.worker("far", {"WARPBED_CACHE": str(elsewhere)})
    file = lab.write(tmp_path, TEXT)
    output = lab.warpbed(
        "execute", file, "--engine", "dask", "--scheduler", cluster.address, "--results", tmp_path / "dask", "--only",
        "cca=cubic",
        code=1,
    )  # fmt: skip
    assert output.count("is missing, and this worker does not build it") == 1 and "worker far" in output, (
        "one clear error"
    )
    url = f"file://{tmp_path}/store"
    lab.warpbed(
        "execute", file, "--engine", "dask", "--scheduler", cluster.address, "--results", tmp_path / "dask", "--store",
        url,
    )  # fmt: skip
    assert digests(tmp_path / "dask/small") == digests(alone)
    assert {path.name for path in (elsewhere).iterdir()} >= {"kernels", "native", "userland", "engine"}
    assert not list((elsewhere / "engine/runs").iterdir()), "nothing of the runs is left on the worker"
    assert not list((tmp_path / "store/runs").rglob("*.tar")), "what came home was taken from the store"
    shutil.rmtree(elsewhere)


def guests(results: Path) -> list[str]:
    return lab.processes_with(f"{results}/.aside")


def test_killed_workers_and_clients_lose_nothing_and_count_nothing_twice(
    kernel: GuestKernel, tmp_path: Path, cluster: Cluster
) -> None:
    workers = [cluster.worker(f"w{n}") for n in range(2)]
    file, results = lab.write(tmp_path, LONGER), tmp_path / "results"
    arguments = ("execute", file, "--engine", "dask", "--scheduler", cluster.address, "--results", results)
    client = subprocess.Popen(
        lab.command(*arguments), cwd=lab.ROOT, env={**os.environ, "PYTHONPATH": str(lab.ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: len(guests(results)) >= 2, 120)
    finally:
        client.kill()
        client.wait()
    os.kill(workers[0].pid, signal.SIGKILL)
    cluster.worker("w2")
    output = lab.warpbed(*arguments, timeout_s=600)
    assert sorted(
        path.name for path in (results / "small").iterdir() if path.is_dir() and path.name != "figures"
    ) == sorted(run["run"] for run in lab.runs(results / "small")), "two complete runs, and no failed ones"
    assert len(lab.runs(results / "small")) == 2, output
    wait_until(lambda: not guests(results), 120)
    wait_until(lambda: not [path.name for path in results.iterdir() if path.name.startswith(".")], 120)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk is mounted by root")
def test_a_worker_whose_disk_is_full_is_told_and_its_runs_are_made_elsewhere(
    alone: Path, tmp_path: Path, cluster: Cluster
) -> None:
    """Its runs have room for one megabyte; it is the only worker at first, and the command ends with one error."""
    scratch = cache_dir() / "engine/runs"
    scratch.mkdir(parents=True, exist_ok=True)
    mount = ["unshare", "--mount", "--propagation", "private", "sh", "-ec",
             'mount -t tmpfs -o size=1m none "$0"; exec "$@"', str(scratch)]  # fmt: skip
    cluster.worker("full", before=mount)
    file, results = lab.write(tmp_path, TEXT), tmp_path / "dask"
    words = (
        "execute", file, "--engine", "dask", "--scheduler", cluster.address, "--results", results, "--retries", "0",
        "--store", f"file://{tmp_path}/store",
    )  # fmt: skip
    output = lab.warpbed(*words, code=1)
    assert "No space left on device" in output and "(worker full on " in output, output
    assert "1 of 1 workers cannot make runs" in output
    assert not list((results / "small").glob("*")) if (results / "small").is_dir() else True, "nothing counts as made"
    cluster.worker("good")
    output = lab.warpbed(*words)
    assert digests(results / "small") == digests(alone), output
    assert not list((results / "small").glob("*.failed-*")), "a full disk is no run's failure"


def test_a_failed_run_comes_home_with_its_logs_and_the_workers_name(
    kernel: GuestKernel, tmp_path: Path, cluster: Cluster
) -> None:
    """A guest that is killed on each worker: what it said is among the results of the client."""
    cluster.worker("weak", {"WARPBED_STALL_S": "0"})
    file, results = lab.write(tmp_path, lab.SMALL), tmp_path / "results"
    output = lab.warpbed(
        "execute", file, "--engine", "dask", "--scheduler", cluster.address, "--results", results, "--retries", "1",
        "--store", f"file://{tmp_path}/store", code=1,
    )  # fmt: skip
    assert "(worker weak on " in output and "attempt 2)" in output and output.count(": failed: ") == 1
    kept = sorted((results / "small").glob("*.failed-*"))
    assert len(kept) == 2, "both attempts"
    assert all((folder / "raw/console.log").read_text() for folder in kept)


def test_ctrl_c_ends_what_runs_and_leaves_nothing(kernel: GuestKernel, tmp_path: Path) -> None:
    file, results = lab.write(tmp_path, LONGER), tmp_path / "results"
    client = subprocess.Popen(
        lab.command("execute", file, "--engine", "dask", "--workers", "1", "--results", results), cwd=lab.ROOT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(lab.ROOT)}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        wait_until(lambda: guests(results), 120, while_running=client)
        os.killpg(client.pid, signal.SIGINT)  # as a terminal sends it, to all of them
        output, _ = client.communicate(timeout=200)
    finally:
        client.kill()
        client.wait()
    assert client.returncode == 1 and "interrupted; 0 of 2 runs are complete" in output, output
    assert "Traceback" not in output
    wait_until(lambda: not guests(results), 60)
    wait_until(
        lambda: not results.is_dir() or not [path.name for path in results.iterdir() if path.name.startswith(".")], 60
    )
