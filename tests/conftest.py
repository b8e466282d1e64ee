# SPDX-License-Identifier: Apache-2.0
"""Fixtures that several test files share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from base.errors import WarpbedError
from base.paths import cache_dir
from benchmarks import store_lab
from hosts.virtual.kernel import find
from hosts.virtual.launch import GuestKernel
from hosts.vm.builds import Builds
from hosts.vm.builds import find as find_builds
from store import debian_server
from tests import alone, durations, held, kept_results, lab, needs, order, reaper, spread, surroundings
from tests.sshhosts import SshHosts
from tests.waiting import wait_until

surroundings.settle(os.environ)

MEMORY = "held"
ENDING_S = 20.0
"""How long what a file's tests have started may take to end after the last of them."""

ALLOWED = sorted(os.sched_getaffinity(0))
# each of pytest-xdist's workers keeps to one CPU, which tests/spread.py changes from file to file
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.sched_setaffinity(0, {ALLOWED[int(worker.removeprefix("gw")) % len(ALLOWED)]})

# no test depends on how fast the machine is, and a failure is found again by running again
settings.register_profile(
    "warpbed", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("warpbed")


def pytest_configure(config: pytest.Config) -> None:
    reaper.start()
    config.pluginmanager.register(durations.CpuTime())
    if not hasattr(config, "workerinput") and (memory := held.memory(config)):
        config.pluginmanager.register(memory, MEMORY)


@pytest.fixture(scope="module", autouse=True)
def own_cpu(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file's tests, and what they start, run on one CPU: the one that the other workers' files need least."""
    if given := getattr(request.config, "workerinput", None):
        cost = given["costs"].get(order.name_of(request.path))
        shared = tmp_path_factory.getbasetemp().parent / "cpus.json"
        spread.settle(shared, given["workerid"], durations.Cost(*cost).busy if cost else 1.0, ALLOWED)


@pytest.fixture(scope="module", autouse=True)
def nothing_goes_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """A file whose tests leave a process running has failed; the process is ended, for it would take the others' CPU."""
    yield
    try:
        wait_until(lambda: not reaper.left_by(request.node.nodeid), ENDING_S)
    except AssertionError:
        left = reaper.left_by(request.node.nodeid)
        reaper.kill(list(left))
        if left:
            pytest.fail("\n".join(("left running, and ended now:", *left.values())))


@pytest.fixture(scope="session")
def kernel() -> GuestKernel:
    """The default guest kernel; without one the tests that need it fail, since nothing that matters was tested."""
    try:
        return find("default")
    except WarpbedError as error:
        pytest.fail(str(error))


@pytest.fixture(scope="session")
def builds() -> Builds:
    """What emulated machines boot; without it the tests that need it fail, since nothing that matters was tested."""
    try:
        return find_builds("default")
    except WarpbedError as error:
        pytest.fail(str(error))


@pytest.fixture(scope="session")
def small(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the small experiment with one seed, made once."""
    return kept_results.results(tmp_path_factory.mktemp("small"), lab.SMALL)


@pytest.fixture(scope="session")
def timescale(tmp_path_factory: pytest.TempPathFactory) -> Iterator[debian_server.Server]:
    """A running TimescaleDB, one per worker."""
    if os.geteuid() != 0:
        pytest.skip("the database's tests need root (chroot)")
    with debian_server.running(tmp_path_factory.mktemp("pg"), **store_lab.FAST) as server:
        yield server


@pytest.fixture
def this_machine() -> Iterator[None]:
    """No other test registers algorithms with this machine's kernel, or has a run on the local host."""
    with alone.with_this_machine():
        yield


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    """Three hosts over SSH, a, b and c; who uses them needs tests.sshhosts.needs_ssh_hosts. What campaigns keep of them goes with them."""
    ssh_hosts = SshHosts(tmp_path_factory.mktemp("hosts"), ["a", "b", "c"])
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WARPBED_STATE", str(tmp_path_factory.mktemp("state")))
            yield ssh_hosts
    finally:
        ssh_hosts.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with what it needs, before pytest selects by marker."""
    for item in items:
        needs.mark(item)
    if given := getattr(config, "workerinput", None):
        costs = {file: durations.Cost(*cost) for file, cost in given["costs"].items()}
        costs |= dict.fromkeys(held.leave_out(items, given["held"]), durations.Cost(0.0, 0.0))
        items[:] = order.side_by_side(items, costs, given["workercount"])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Each of pytest-xdist's workers is told the same costs, since all of them have to have the same order, and what has passed before."""
    node.workerinput["costs"] = {file: list(cost) for file, cost in durations.last().items()}
    memory = node.config.pluginmanager.get_plugin(MEMORY)
    node.workerinput["held"] = memory.days() if memory and is_whole(node.config) else {}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    seen = [report for reports in terminalreporter.stats.values() for report in reports]
    reports = [report for report in seen if isinstance(report, pytest.TestReport)]
    for line in durations.summary(reports):
        terminalreporter.write_line(line)
    left_out = {report.location[0] for report in reports if held.is_held(report)}
    if is_whole(config):
        durations.keep({file: cost for file, cost in durations.by_file(reports).items() if file not in left_out})
        kept_results.forget(cache_dir())


def is_whole(config: pytest.Config) -> bool:
    """Whether all tests run, none chosen by file, marker or name."""
    is_all = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return is_all and not config.option.markexpr and not config.option.keyword
