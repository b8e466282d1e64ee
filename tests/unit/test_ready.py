# SPDX-License-Identifier: Apache-2.0
"""`./warpbed run` leaves the play out only where all is there that it would make."""

from __future__ import annotations

from pathlib import Path

import pytest

from base.errors import WarpbedError
from collectors import native
from hosts.registry import HOST_KINDS, Kind
from testbed import ready
from testbed.experiments import prepare
from tests import lab

HOST = object()


@pytest.fixture
def all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "is_built", lambda: True)
    monkeypatch.setattr(ready, "missing_packages", lambda _: [])
    monkeypatch.setattr(Kind, "open", lambda *_: HOST)


def answer(folder: Path, kind: str = "virtual") -> object:
    hosts = ready.ready_hosts(HOST_KINDS[kind], prepare(lab.write(folder, lab.SMALL)))
    return None if hosts is None else hosts.common


@pytest.mark.usefixtures("all_there")
def test_where_all_is_there_the_virtual_host_needs_no_play_and_others_do(tmp_path: Path) -> None:
    assert {kind: answer(tmp_path, kind) for kind in HOST_KINDS} == {
        kind: HOST if kind == "virtual" else None for kind in HOST_KINDS
    }


@pytest.mark.usefixtures("all_there")
@pytest.mark.parametrize("missing", ["collector", "package", "kernel"])
def test_one_thing_that_is_missing_needs_the_play(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    def no_kernel(*_: object) -> object:
        raise WarpbedError("kernel 7.2 is not built for this checkout")

    match missing:
        case "collector":
            monkeypatch.setattr(native, "is_built", lambda: False)
        case "package":
            monkeypatch.setattr(ready, "missing_packages", lambda wanted: wanted[:1])
        case "kernel":
            monkeypatch.setattr(Kind, "open", no_kernel)
    assert answer(tmp_path) is None


def test_an_empty_cache_has_neither_collector_nor_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPBED_CACHE", str(tmp_path))
    monkeypatch.delenv("WARPBED_TEST_KERNEL", raising=False)
    monkeypatch.setattr(ready, "missing_packages", lambda _: [])
    assert not native.is_built() and answer(tmp_path) is None
    monkeypatch.setattr(native, "is_built", lambda: True)
    assert answer(tmp_path) is None


def test_the_packages_are_those_of_the_role_and_dpkg_is_asked_for_them() -> None:
    assert {"iperf3", "mininet", "tcpdump", "build-essential"} <= set(ready.run_packages())
    assert ready.missing_packages(["dpkg", "no-such-package"]) == ["no-such-package"]


def test_without_dpkg_all_packages_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert ready.missing_packages(["dpkg"]) == ["dpkg"]
