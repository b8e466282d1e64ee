# SPDX-License-Identifier: Apache-2.0
"""Stores in buckets of S3 and of Google's storage: folders come whole or not at all, and runs by workers that share nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from base.errors import WarpbedError
from hosts.virtual.launch import GuestKernel
from testbed.engine.store import Store
from tests import buckets, kept_results, lab
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.network,  # the servers' packages, once
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]
PARTS_BYTES = 24 << 20
"""More than one part of an upload has (Arrow: 10 MB for S3, 8 MiB for Google's storage)."""


@pytest.fixture(params=["s3", "gs"])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[buckets.Server]:
    with buckets.serving(request.param) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


def test_folders_are_in_a_bucket_whole_or_not_at_all(bucket: buckets.Server, tmp_path: Path) -> None:
    store, content = Store(bucket.url), os.urandom(PARTS_BYTES)
    run, out = tmp_path / "run", tmp_path / "out"
    (run / "raw").mkdir(parents=True)
    (run / "raw/a.pcap").write_bytes(content)
    assert store.entries("runs/small/s1") == [], "of what was never there"
    entry = store.put(run, "runs/small/s1", {"status": "done"})
    assert store.entries("runs/small/s1") == [entry] and entry.bytes > PARTS_BYTES
    out.mkdir()
    store.get(entry, out)
    assert (out / "raw/a.pcap").read_bytes() == content
    system, path = store.send(run / "raw/a.pcap", "code/x.tar")
    assert store.send(run / "raw/a.pcap", "code/x.tar")[1] == path and system.cat_file(path) == content
    assert [Path(one).name for one in system.ls(path.rpartition("/")[0], detail=False)] == ["x.tar"], "nothing aside"

    archive = f"{store._root}/{entry.name}"
    system.pipe_file(archive, system.cat_file(archive)[:-1])
    with pytest.raises(WarpbedError, match="not what was stored"):
        store.get(entry, tmp_path / "out")
    system.pipe_file(f"{archive}.json", b'{"name": ')
    assert store.entries("runs/small/s1") == [], "a description that is cut off"
    system.rm_file(archive)
    with pytest.raises(WarpbedError, match=entry.name):
        store.get(entry, tmp_path / "out")
    store.remove(entry)
    store.remove(entry)  # another client may have done it
    assert not system.exists(f"{archive}.json")


def test_a_run_comes_home_through_a_bucket(kernel: GuestKernel, bucket: buckets.Server, tmp_path: Path) -> None:
    """The worker has no cache and sees none of the client's files: code, kernel, collector and user land are in the bucket."""
    (tmp_path / "alone").mkdir()
    alone = kept_results.results(tmp_path / "alone", lab.SMALL)
    words = [sys.executable, "-P", "-m"]
    file = tmp_path / "scheduler.json"
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started: list[subprocess.Popen[bytes]] = []
    try:
        for program, more, environment in (
            ("dask_scheduler", ["--host", "127.0.0.1", "--port", "0"], {}),
            (
                "dask_worker",
                ["--nthreads", "1", "--no-nanny", "--local-directory", tmp_path / "dask"],
                {"WARPBED_CACHE": str(tmp_path / "elsewhere")},
            ),
        ):
            line = [*words, f"distributed.cli.{program}", "--scheduler-file", file, "--no-dashboard", *more]
            started.append(subprocess.Popen(line, cwd=tmp_path, env={**os.environ, **environment}, **quiet))
            wait_until(lambda: file.exists() and file.read_text().endswith("}"), while_running=started[-1])
        lab.warpbed(
            "execute",
            lab.write(tmp_path, lab.SMALL),
            "--engine",
            "dask",
            "--scheduler",
            str(json.loads(file.read_text())["address"]),
            "--results",
            tmp_path / "runs",
            "--store",
            bucket.url,
            timeout_s=900,
        )
    finally:
        for process in started:
            process.kill()
            process.wait()
    (run,), (same,) = lab.runs(tmp_path / "runs/small"), lab.runs(alone)
    assert (run["run"], lab.digests(run["path"])) == (same["run"], lab.digests(same["path"]))
    assert {path.name for path in (tmp_path / "elsewhere").iterdir()} >= {"kernels", "native", "userland", "engine"}
    assert Store(bucket.url).entries(f"runs/small/{run['run']}") == [], "what came home was taken from the bucket"
