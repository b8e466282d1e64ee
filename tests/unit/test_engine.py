# SPDX-License-Identifier: Apache-2.0
"""The engine that spreads runs over Dask's workers: each run once, in order, tried again elsewhere, and one word about each failure.

The scheduler is Dask's own, the runs only sleep. tests/guest/test_engine_runs.py makes real ones.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from base.errors import UsageError, WarpbedError
from hosts.per_kernel import RunHosts
from testbed.engine import clusters, conductor, options, stub
from testbed.engine.conductor import DaskRunner
from testbed.engine.order import expected_s, longest_first
from testbed.engine.store import Store
from testbed.engine.supplies import Supplies
from testbed.results import Results
from testbed.runner import Job
from tests import sleeping
from tests.sleeping import RUNS, FakeHost, answer, begun, sleeps

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::RuntimeWarning"),
]


def fails_at_0(order: dict[str, Any]) -> dict[str, Any]:
    from distributed import get_worker

    if str(get_worker().name) == "0":
        return answer(order, "failed", "boot guest: no words")
    return sleeps(order)


def fails(order: dict[str, Any]) -> dict[str, Any]:
    return answer(order, "failed", "boot guest: no words")


def lacks(order: dict[str, Any]) -> dict[str, Any]:
    return answer(order, "lacking", "/srv: the kernel is not there")


def lacks_at_0(order: dict[str, Any]) -> dict[str, Any]:
    from distributed import get_worker

    return lacks(order) if str(get_worker().name) == "0" else sleeps(order)


def lies(order: dict[str, Any]) -> dict[str, Any]:
    return answer(order, "done")


def breaks(order: dict[str, Any]) -> dict[str, Any]:
    raise RuntimeError("a worker of another version")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Three workers with a thread each, in this process."""
    import dask
    from distributed import Client, LocalCluster

    make: Any = LocalCluster
    with (
        dask.config.set({"temporary-directory": str(tmp_path_factory.mktemp("dask"))}),
        make(n_workers=3, threads_per_worker=1, processes=False, dashboard_address=None, protocol="inproc") as cluster,
        Client(cluster, set_as_default=False) as one,  # type: ignore[no-untyped-call]
    ):
        yield one


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    return sleeping.jobs(tmp_path)


@pytest.fixture(autouse=True)
def supplied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Supplies, "artifacts", lambda self, kernel: ())


Made = Callable[..., tuple[DaskRunner, list[dict[str, Any]]]]


@pytest.fixture
def made(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """A runner whose tasks are a function of this file, and the events that it reports."""

    def make(task: Callable[[dict[str, Any]], dict[str, Any]], **more: Any) -> tuple[DaskRunner, list[dict[str, Any]]]:
        monkeypatch.setattr(stub, "run_task", task)
        events: list[dict[str, Any]] = []
        host: Any = FakeHost()
        (tmp_path / "results").mkdir(exist_ok=True)
        return DaskRunner(Results(tmp_path / "results", "small"), RunHosts(host), client, events.append, **more), events

    return make


def test_every_run_is_made_once_and_the_longest_begins_first(made: Made, jobs: list[Job], tmp_path: Path) -> None:
    runner, events = made(sleeps)
    summary = runner.run_all(jobs)
    assert sorted(summary.done) == sorted(job.run_id for job in jobs)
    assert (summary.failed, summary.present, summary.cancelled) == ({}, 0, False)
    first = begun(tmp_path)
    assert len(first) == len(set(first)) == RUNS
    assert set(first[:2]) <= {f"s{n}" for n in range(RUNS - 4, RUNS + 1)}, (
        "three workers begin with three of the longest"
    )
    assert [event["event"] for event in events] == ["done"] * RUNS
    again = runner.run_all(jobs)
    assert (again.present, again.done) == (RUNS, []) and begun(tmp_path) == first
    assert not [path.name for path in (tmp_path / "results").iterdir() if path.name.startswith(".")], "nothing is left"


def test_order_follows_the_plans_cost_and_then_the_sweep(jobs: list[Job]) -> None:
    ordered = longest_first(jobs)
    assert [job.plan.duration_s for job in ordered] == sorted((job.plan.duration_s for job in jobs), reverse=True)
    equal = [replace(job, plan=jobs[0].plan) for job in jobs]
    assert [job.run_id for job in longest_first(equal)] == [job.run_id for job in equal]
    assert expected_s(jobs[-1]) > expected_s(jobs[0])


def test_the_scheduler_holds_few_runs_at_a_time(made: Made, jobs: list[Job], client: Any) -> None:
    runner, _ = made(sleeps)
    most = 0
    inner = conductor._Round._submit

    def counted(self: Any) -> None:
        nonlocal most
        inner(self)
        most = max(most, len(self._under))

    conductor._Round._submit = counted  # type: ignore[method-assign]
    try:
        runner.run_all(jobs)
    finally:
        conductor._Round._submit = inner  # type: ignore[method-assign]
    assert 3 <= most <= 3 + 3 // conductor.AHEAD


def test_the_scheduler_keeps_few_of_the_runs_that_it_has_sent(
    jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its memory would grow with their number: Dask keeps a thousand messages to each worker, and they hold the runs."""
    from distributed import LocalCluster

    def one_worker(_workers: int) -> Any:
        make: Any = LocalCluster
        return make(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, protocol="inproc")

    monkeypatch.setitem(clusters.KINDS, "local", one_worker)
    monkeypatch.setattr(stub, "run_task", sleeps)
    monkeypatch.setattr(clusters, "KEPT_MESSAGES", 3)
    host: Any = FakeHost()
    (tmp_path / "results").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with clusters.client_of("", "local", 1) as client:
        summary = DaskRunner(Results(tmp_path / "results", "small"), RunHosts(host), client, print).run_all(jobs)
        (stream,) = client.cluster.scheduler.stream_comms.values()
        assert len(summary.done) == RUNS and stream.batch_count >= RUNS
        assert len(stream.recent_message_log) == 3
    assert not list((tmp_path / "temporary").glob("dask*")), "Dask's locks lie in the cache"


def test_a_run_that_fails_on_one_worker_is_tried_on_another(made: Made, jobs: list[Job], tmp_path: Path) -> None:
    runner, events = made(fails_at_0, retries=3)
    summary = runner.run_all(jobs)
    assert summary.failed == {} and len(summary.done) == RUNS
    assert len(begun(tmp_path)) == RUNS
    assert {event["event"] for event in events} == {"done"}, "what succeeds at last is no failure"


def test_a_run_that_fails_everywhere_is_told_once_with_the_worker(made: Made, jobs: list[Job]) -> None:
    runner, events = made(fails, retries=1)
    summary = runner.run_all(jobs[:2])
    assert summary.done == [] and set(summary.failed) == {"s1", "s2"}
    for words in summary.failed.values():
        assert words.startswith("boot guest: no words (worker ") and words.endswith("attempt 2)")
    assert [event["event"] for event in events] == ["failed", "failed"]


def test_what_a_worker_lacks_is_one_error_and_not_one_for_each_run(made: Made, jobs: list[Job]) -> None:
    runner, events = made(lacks)
    with pytest.raises(WarpbedError, match=r"the kernel is not there \(worker .*3 of 3 workers cannot make runs"):
        runner.run_all(jobs)
    assert events == []


def test_one_bad_worker_does_not_keep_the_others_from_working(made: Made, jobs: list[Job], tmp_path: Path) -> None:
    runner, _ = made(lacks_at_0)
    summary = runner.run_all(jobs)
    assert len(summary.done) == RUNS == len(begun(tmp_path)) and summary.failed == {}


def test_a_folder_that_did_not_come_is_no_result(made: Made, jobs: list[Job]) -> None:
    summary = made(lies, retries=0)[0].run_all(jobs[:1])
    assert "did not come home whole" in summary.failed["s1"]


def test_a_task_that_dask_cannot_execute_is_told(made: Made, jobs: list[Job]) -> None:
    summary = made(breaks, retries=0)[0].run_all(jobs[:1])
    assert "a worker of another version" in summary.failed["s1"]


def test_cancelling_ends_soon_and_keeps_what_is_done(made: Made, jobs: list[Job]) -> None:
    runner, _ = made(sleeps)
    inner, counted = runner._report, 0

    def cancel_at_three(event: dict[str, Any]) -> None:
        nonlocal counted
        inner(event)
        counted += 1
        if counted == 3:
            runner.cancel()

    runner._report = cancel_at_three
    summary = runner.run_all(jobs)
    assert summary.cancelled and 3 <= len(summary.done) < RUNS
    rest = made(sleeps)[0].run_all(jobs)
    assert rest.present >= len(summary.done) and rest.present + len(rest.done) == RUNS


def test_two_clients_at_once_publish_each_run_once(made: Made, jobs: list[Job], tmp_path: Path) -> None:
    runners = [made(sleeps)[0] for _ in range(2)]
    summaries: list[Any] = []
    threads = [threading.Thread(target=lambda one=one: summaries.append(one.run_all(jobs))) for one in runners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(summary.failed == {} and len(summary.done) + summary.present == RUNS for summary in summaries)
    assert len(list((tmp_path / "results/small").iterdir())) == RUNS


def test_only_the_virtual_host_runs_anywhere(client: Any, tmp_path: Path) -> None:
    host: Any = FakeHost(kind="lab")
    with pytest.raises(UsageError, match="host lab"):
        DaskRunner(Results(tmp_path, "small"), RunHosts(host), client, print)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"cluster": "slurm"}, "--cluster: only with --engine dask"),
        ({"store": "s3://x/y", "workers": 2}, "--workers, --store: only with"),
        ({"engine": "dask", "scheduler": "tcp://h:1", "cluster": "ssh"}, "without --cluster"),
        ({"engine": "dask", "retries": -1}, "numbers from 0 on"),
    ],
)
def test_options_that_contradict_one_another_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        options.check(Namespace(**{**options.DEFAULTS, **given}))


def test_options_reach_the_play_as_words() -> None:
    assert options.words(Namespace(**options.DEFAULTS)) == []
    asked = Namespace(**{**options.DEFAULTS, "engine": "dask", "scheduler": "tcp://h:1"})
    assert options.words(asked) == ["--engine=dask", "--scheduler=tcp://h:1", "--workers=0", "--retries=1"]


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(f"file://{tmp_path}/store" if request.param == "file" else f"memory://{os.getpid()}-{tmp_path.name}")


def test_a_folder_comes_out_of_a_store_as_it_went_in(store: Store, tmp_path: Path) -> None:
    (tmp_path / "run/raw").mkdir(parents=True)
    (tmp_path / "run/raw/a.pcap").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "run/run.json").write_text("{}")
    entry = store.put(tmp_path / "run", "runs/small/s1", {"status": "done"})
    assert store.entries("runs/small/s1") == [entry] and entry.says == {"status": "done"}
    assert store.entries("runs/small/s2") == []
    (tmp_path / "out").mkdir()
    store.get(entry, tmp_path / "out")
    assert (tmp_path / "out/raw/a.pcap").read_bytes() == bytes(range(256)) * 100
    assert sorted(path.name for path in (tmp_path / "out").rglob("*")) == ["a.pcap", "raw", "run.json"]
    store.remove(entry)
    assert store.entries("runs/small/s1") == []


def test_what_is_not_whole_in_a_store_is_not_there(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}/store")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/run.json").write_text("{}")
    entry = store.put(tmp_path / "run", "runs/small/s1", {"status": "done"})
    archive = tmp_path / "store" / entry.name
    described = archive.with_name(archive.name + ".json")
    whole, words = archive.read_bytes(), described.read_text()
    described.write_text(words[:20])
    assert store.entries("runs/small/s1") == [], "a description that is cut off"
    described.write_text(words)
    for damaged in (whole[:-1], whole[:600] + b"x" + whole[601:], b""):
        archive.write_bytes(damaged)
        (found,) = store.entries("runs/small/s1")
        out = tmp_path / f"out{len(damaged)}"
        out.mkdir()
        with pytest.raises(WarpbedError, match="not what was stored"):
            store.get(found, out)
        assert list(out.iterdir()) == []


def test_a_stored_run_with_a_link_is_refused(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}/store")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/run.json").symlink_to("/etc/passwd")
    entry = store.put(tmp_path / "run", "runs/small/s1", {})
    (tmp_path / "out").mkdir()
    with pytest.raises(WarpbedError, match="plain files only"):
        store.get(entry, tmp_path / "out")


def test_runs_that_an_earlier_client_did_not_fetch_come_home(made: Made, jobs: list[Job], tmp_path: Path) -> None:
    url = f"file://{tmp_path}/store"
    (tmp_path / "run").mkdir()
    (tmp_path / "run/run.json").write_text("{}")
    Store(url).put(tmp_path / "run", "runs/small/s1", {"status": "done", "run": "s1"})
    Store(url).put(tmp_path / "run", "runs/small/s2", {"status": "failed", "run": "s2"})
    runner, _ = made(fails, store=url, retries=0)
    runner._supplies.__dict__["_code"] = {}  # nobody fetches it here
    summary = runner.run_all(jobs[:2])
    assert summary.present == 1 and list(summary.failed) == ["s2"]
    assert Results(tmp_path / "results", "small").is_complete("s1")
    assert Store(url).entries("runs/small/s1") == [], "what came home is taken away"


def test_a_store_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="--store nosuch://x"):
        Store("nosuch://x")


def test_a_run_takes_a_cpu_that_no_other_run_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    taken = [stub._free_cpu(lambda: False, 1) for _ in os.sched_getaffinity(0)]
    try:
        assert sorted(cpu for cpu, _ in taken) == sorted(os.sched_getaffinity(0))
        begun_s = time.monotonic()
        assert stub._free_cpu(lambda: time.monotonic() > begun_s + 0.5, 1) == "", (
            "all are taken: it waits until it is stopped"
        )
        os.close(taken[0][1])
        again = stub._free_cpu(lambda: False, 1)
        assert again[0] == taken[0][0]
        taken[0] = again
    finally:
        for _, lock in taken:
            os.close(lock)
    assert "MiB" in stub._free_cpu(lambda: False, 1 << 60)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("slurm", "--cluster slurm: .*cores"),
        ("lsf", "--cluster lsf: .*cores"),
        ("ssh", "warpbed.ssh.hosts"),
        ("kubernetes", "--cluster kubernetes: .*dask_kubernetes"),
    ],
)
def test_a_cluster_that_is_not_configured_or_installed_is_one_clear_error(kind: str, says: str) -> None:
    with pytest.raises(UsageError, match=says), clusters.client_of("", kind, 1):
        pass


def test_a_scheduler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CONNECT_S", 0.5)
    with (
        pytest.raises(UsageError, match=r"--scheduler tcp://127\.0\.0\.1:1: "),
        clusters.client_of("tcp://127.0.0.1:1", "local", 1),
    ):
        pass


def test_every_kind_of_cluster_can_be_asked_for() -> None:
    assert set(options.CLUSTERS) == set(clusters.KINDS)
