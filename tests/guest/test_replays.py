# SPDX-License-Identifier: Apache-2.0
"""The same bytes on any machine: golden runs against the repository's digests, and again under other conditions.

`python -m benchmarks.replay` does the same with every run under every condition. As nobody, and in other checkouts' whole way:
test_determinism.py.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

from base.errors import WarpbedError
from benchmarks import golden
from benchmarks.conditions import CONDITIONS
from hosts.virtual.kernel import find
from hosts.virtual.launch import GuestKernel
from kernels.series import DEFAULT, NAMES

CPU = min(os.sched_getaffinity(0))
HOW = {condition.name: condition for condition in CONDITIONS}
AGAIN = (
    ("busy CPU", "losses"),
    ("SIGSTOP and SIGCONT", "aqm"),
    ("memory pressure", "red"),
    ("ASLR of the host", "jitter"),
    ("in a container", "trace"),
    ("another user", "campaign"),
    ("another boot", "traffic"),
    ("another CPU's code", "algorithms"),
    ("another folder", "traffic"),
)


@pytest.fixture(scope="module")
def first(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> functools._lru_cache_wrapper[str]:
    """Name of a golden run → digest of its packets; executed once per worker."""

    @functools.cache
    def digest(name: str) -> str:
        return golden.run(name, kernel, tmp_path_factory.mktemp("first") / name, CPU)

    return digest


@pytest.mark.parametrize("name", golden.FILES)
def test_a_golden_run_has_the_packets_that_the_repository_knows(
    kernel: GuestKernel, first: functools._lru_cache_wrapper[str], name: str
) -> None:
    known = golden.known(kernel)
    if known is None:
        pytest.skip(f"no digests for {golden.identity(kernel)}; python -m benchmarks.replay --write records them")
    assert first(name) == known[name], "if packets were meant to change: python -m benchmarks.replay --write"


@pytest.mark.parametrize("series", [name for name in NAMES if name != DEFAULT])
def test_a_golden_run_by_another_kernel_has_the_packets_that_the_repository_knows(series: str, tmp_path: Path) -> None:
    try:
        kernel = find(series)
    except WarpbedError as error:
        pytest.skip(str(error))
    known = golden.known(kernel)
    if known is None:
        pytest.skip(f"no digests for {golden.identity(kernel)}")
    assert golden.run("losses", kernel, tmp_path / "raw", CPU) == known["losses"]


@pytest.mark.parametrize(("condition", "name"), AGAIN, ids=[condition for condition, _ in AGAIN])
def test_the_condition_changes_no_packet(
    kernel: GuestKernel, first: functools._lru_cache_wrapper[str], tmp_path: Path, condition: str, name: str
) -> None:
    if condition == "memory pressure" and os.geteuid() != 0:
        pytest.skip("only root may have another process' pages taken")
    assert golden.run(name, kernel, tmp_path / "raw", CPU, HOW[condition].execute) == first(name)


def test_every_condition_is_tried() -> None:
    assert {condition for condition, _ in AGAIN} | {"plain"} == HOW.keys()
    assert len(golden.FILES) == 11
