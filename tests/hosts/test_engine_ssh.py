# SPDX-License-Identifier: Apache-2.0
"""Workers on hosts of their own, reached over SSH or by a scheduler: runs and builds travel over SSH, and neither workers that are killed
at random nor a network that goes away lose a run or make it twice.

The hosts are network namespaces; they share this machine's files, but no cache.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from base.errors import WarpbedError
from base.paths import cache_dir
from hosts.per_kernel import RunHosts
from hosts.virtual.launch import GuestKernel
from testbed.engine import clusters, stub
from testbed.engine.conductor import DaskRunner
from testbed.engine.store import Store
from testbed.engine.supplies import Supplies
from testbed.results import Results
from tests import kept_results, lab, sleeping
from tests.sshhosts import SshHosts, needs_ssh_hosts
from tests.waiting import wait_until

pytestmark = [
    needs_ssh_hosts,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::RuntimeWarning"),
]
RUNS = 60
MOST_LOSSES = 8
WAYS = ["kill", "stop", "cut"]


@pytest.fixture
def keys(hosts: SshHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the key and the hosts' keys, for this process and for the sessions on host a."""
    for home in (tmp_path / "home", hosts.folder / "a/home"):
        (home / ".ssh").mkdir(parents=True, exist_ok=True)
        shutil.copy(hosts.key, home / ".ssh/id_ed25519")
        shutil.copy(hosts.known_hosts, home / ".ssh/known_hosts")
    monkeypatch.setenv("WARPBED_CACHE", str(cache_dir()))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_folder_travels_over_ssh_and_damage_is_seen(hosts: SshHosts, keys: Path, tmp_path: Path) -> None:
    store = Store(f"ssh://root@{hosts.control('a')}{tmp_path}/store")
    (tmp_path / "run/raw").mkdir(parents=True)
    (tmp_path / "run/raw/a.pcap").write_bytes(bytes(range(256)) * 5000)
    entry = store.put(tmp_path / "run", "runs/small/s1", {"status": "done"})
    assert store.entries("runs/small/s1") == [entry] and store.entries("runs/small/s2") == []
    (tmp_path / "out").mkdir()
    store.get(entry, tmp_path / "out")
    assert (tmp_path / "out/raw/a.pcap").read_bytes() == bytes(range(256)) * 5000
    archive = tmp_path / "store" / entry.name
    archive.write_bytes(archive.read_bytes()[:-1])
    with pytest.raises(WarpbedError, match="not what was stored"):
        store.get(entry, tmp_path / "out")
    store.remove(entry)
    assert store.entries("runs/small/s1") == [] and not archive.exists()


def test_workers_that_dask_starts_over_ssh_make_the_same_runs(
    kernel: GuestKernel, hosts: SshHosts, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSHCluster, and a store over SSH: the workers' cache is empty at first."""
    address = hosts.control("a")
    login = {"known_hosts": str(hosts.known_hosts), "client_keys": [str(hosts.key)], "username": "root"}
    options = {
        "connect_options": login,
        "remote_python": sys.executable,
        "scheduler_options": {"host": address, "port": 0, "dashboard": False},
        "worker_options": {"nthreads": 1},
    }
    (tmp_path / "dask").mkdir()
    (tmp_path / "dask/warpbed.yaml").write_text(
        json.dumps({"warpbed": {"ssh": {"hosts": [address] * 2, "options": options}}})
    )
    monkeypatch.setenv("DASK_CONFIG", str(tmp_path / "dask"))
    (tmp_path / "alone").mkdir()
    alone = kept_results.results(tmp_path / "alone", lab.SMALL)
    lab.warpbed(
        "execute", lab.write(tmp_path, lab.SMALL), "--engine", "dask", "--cluster", "ssh",
        "--results", tmp_path / "dask-runs", "--store", f"ssh://root@{address}{tmp_path}/store", timeout_s=600,
    )  # fmt: skip
    (run,), (same,) = lab.runs(tmp_path / "dask-runs/small"), lab.runs(alone)
    assert (run["run"], lab.digests(run["path"])) == (same["run"], lab.digests(same["path"]))
    cache = hosts.folder / "a/home/.cache/warpbed"
    assert {path.name for path in cache.iterdir()} >= {"kernels", "native", "userland", "engine"}
    assert not list((tmp_path / "store/runs").rglob("*.tar")), "what came home was taken from the store"
    wait_until(lambda: not [line for line in hosts.processes("a") if "dask" in line], 60)
    shutil.rmtree(cache)


class Workers:
    """A scheduler of this machine, and a worker on each host, which is replaced when it is lost."""

    def __init__(self, hosts: SshHosts, folder: Path, stack: contextlib.ExitStack) -> None:
        self._hosts, self._folder, self._stack = hosts, folder, stack
        file = folder / "scheduler.json"
        self._start(
            ["-m", "distributed.cli.dask_scheduler", "--scheduler-file", str(file), "--host", "0.0.0.0", "--port", "0",
             "--no-dashboard"], [],
            {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "4s", "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "20"},
        )  # fmt: skip
        wait_until(lambda: file.exists() and file.read_text().endswith("}"), 60)
        self.port = str(json.loads(file.read_text())["address"]).rpartition(":")[2]
        self._number = 0
        self.there = {name: self.start(name) for name in hosts.names}

    def _start(self, argv: list[str], before: list[str], more: dict[str, str]) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*before, sys.executable, "-P", *argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd=self._folder, env={**os.environ, **more},
        )  # fmt: skip
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def start(self, name: str) -> subprocess.Popen[bytes]:
        self._number += 1
        own = self._hosts.control(name)
        here = own.rpartition(".")[0] + f".{int(own.rpartition('.')[2]) - 1}"
        argv = ["-m", "distributed.cli.dask_worker", f"tcp://{here}:{self.port}", "--host", own, "--nthreads", "1"]
        argv += [
            "--no-nanny",
            "--no-dashboard",
            "--name",
            f"{name}{self._number}",
            "--local-directory",
            str(self._folder),
        ]
        return self._start(argv, ["ip", "netns", "exec", self._hosts.netns(name)], {})

    def lose(self, draw: random.Random, how: str) -> None:
        """Kill a worker, stop it for good, or cut its network for some seconds; another one begins in its place."""
        name = draw.choice(self._hosts.names)
        if how == "cut":
            self._hosts.cut(name)
            threading.Event().wait(6)
            self._hosts.mend(name)
        else:
            os.kill(self.there[name].pid, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
            self.there[name] = self.start(name)


@pytest.fixture
def workers(hosts: SshHosts, tmp_path: Path) -> Iterator[Workers]:
    (tmp_path / "dask").mkdir()
    with contextlib.ExitStack() as stack:
        yield Workers(hosts, tmp_path / "dask", stack)


def test_workers_that_are_lost_at_random_lose_no_run_and_make_none_twice(
    workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stub, "run_task", sleeping.sleeps_long)
    monkeypatch.setattr(Supplies, "artifacts", lambda self, kernel: ())
    (tmp_path / "results").mkdir()
    host: Any = sleeping.FakeHost()
    draw, losses, over = random.Random(20), list[str](), threading.Event()

    def chaos() -> None:
        ways = draw.sample(WAYS, len(WAYS)) + draw.choices(WAYS, k=MOST_LOSSES - len(WAYS))
        while len(losses) < MOST_LOSSES and not over.wait(draw.uniform(0.5, 1.5)):
            workers.lose(draw, ways[len(losses)])
            losses.append(ways[len(losses)])

    with clusters.client_of(f"tcp://127.0.0.1:{workers.port}", "local", 0) as client:
        client.wait_for_workers(3, timeout=120)
        loser = threading.Thread(target=chaos)
        loser.start()
        try:
            runner = DaskRunner(
                Results(tmp_path / "results", "small"), RunHosts(host), client, lambda event: None, retries=3
            )
            summary = runner.run_all(sleeping.jobs(tmp_path, RUNS))
        finally:
            over.set()
            loser.join()
    assert set(losses) == set(WAYS), losses
    assert sorted(summary.done) == sorted(f"s{n}" for n in range(1, RUNS + 1)), "each once"
    assert summary.failed == {}
    assert sorted(path.name for path in (tmp_path / "results/small").iterdir()) == sorted(summary.done)
    assert set(sleeping.begun(tmp_path)) == set(summary.done)
