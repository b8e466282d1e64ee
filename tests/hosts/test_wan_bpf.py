# SPDX-License-Identifier: Apache-2.0
"""Algorithms of a campaign that are BPF programs: they come to the sender with an attempt, and go with it."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import bpf
from base.cache import sha256_of
from base.files import replace_text
from kernels import bpf_objects
from tests import alone, lab
from tests.plays import end
from tests.sshhosts import SshHosts, needs_ssh_hosts
from tests.waiting import wait_until
from tests.wan_lab import CAMPAIGN, Prepared, assert_nothing_left, events, start

pytestmark = [
    pytest.mark.real_host,
    needs_ssh_hosts,
    pytest.mark.root,
    pytest.mark.usefixtures("this_machine"),
    pytest.mark.skipif(
        shutil.which(bpf_objects.COMPILER) is None, reason="clang, which makes BPF objects, is not installed"
    ),
    pytest.mark.skipif(
        not bpf.KERNELS_OWN.exists(), reason="this kernel does not describe itself (CONFIG_DEBUG_INFO_BTF)"
    ),
]
SMALL = CAMPAIGN.replace("receivers: {b: {}, c: {}}", "receivers: {b: {}}").replace("[106KB, 1MB]", "[106KB]")


def available() -> set[str]:
    return set(bpf.AVAILABLE.read_text().split())


def source_of(name: str, folder: Path) -> Path:
    """A copy of the project's own algorithm under another name, beside a campaign's file."""
    text = bpf_objects.own()["bpf_lbc"].read_text()
    file = folder / f"{name}.bpf.c"
    folder.mkdir(exist_ok=True)
    replace_text(file, text.replace('"bpf_lbc"', f'"{name}"'))
    return file


@pytest.fixture(scope="module", autouse=True)
def read_and_trusted() -> Iterator[None]:
    """The user's word that a kernel in use may execute the files' own programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(bpf_objects.TRUST, "1")
        yield


@pytest.fixture(scope="module")
def prepared(hosts: SshHosts, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """A play conducts one campaign with the project's own algorithm and one of a user's; the others need no play.

    A module's fixture comes before a test's, so that it waits for this machine's kernel itself.
    """
    folder = tmp_path_factory.mktemp("prepared")
    source_of("mine", folder)
    text = SMALL.replace("algorithms: [cubic]", "algorithms: [cubic, bpf_lbc, mine]\nbpf: {mine: mine.bpf.c}")
    with alone.with_this_machine():
        return Prepared(hosts, folder, end(start(hosts, folder, text)))


def test_each_transfer_has_the_algorithm_that_its_object_is_and_none_stays(prepared: Prepared) -> None:
    runs = {run["params"]["cca"]: run for run in lab.runs(prepared.folder / "results/short")}
    assert set(runs) == {"cubic", "bpf_lbc", "mine"}
    for cca, run in runs.items():
        said = json.loads((run["path"] / "raw/t.client.json").read_text())
        assert (said["cca"], said["bytes"]) == (cca, 106_000)
    objects = {
        "bpf_lbc": bpf_objects.object_of(bpf_objects.own()["bpf_lbc"]),
        "mine": bpf_objects.object_of(prepared.folder / "mine.bpf.c"),
    }
    assert {cca: run["facts"].get("bpf") for cca, run in runs.items()} == {
        "cubic": None,
        **{cca: {cca: sha256_of(path)} for cca, path in objects.items()},
    }
    assert not available() & set(objects)
    assert_nothing_left(prepared.hosts, prepared.folder)


def test_another_source_is_another_transfer(prepared: Prepared, tmp_path: Path) -> None:
    """The same name, and one number in the program changed."""
    text = SMALL.replace("algorithms: [cubic]", "algorithms: [mine]\nbpf: {mine: mine.bpf.c}")
    file = source_of("mine", tmp_path)
    assert "#define LIMIT 2" in file.read_text()
    replace_text(file, file.read_text().replace("#define LIMIT 2", "#define LIMIT 3"))
    end(prepared.conduct(tmp_path, text))
    (first,) = [name for name in ids(prepared.folder) if "-mine-" in name]
    (second,) = ids(tmp_path)
    assert first.rsplit("-", 1)[0] == second.rsplit("-", 1)[0] and first != second


def ids(folder: Path) -> list[str]:
    return [run["run"] for run in lab.runs(folder / "results/short")]


def test_an_algorithm_goes_with_a_sender_that_is_killed_and_the_attempt_is_made_again(
    prepared: Prepared, tmp_path: Path
) -> None:
    """A registered algorithm stays with the kernel by itself, as its map is held by being registered."""
    source_of("mine", tmp_path)
    text = SMALL.replace("algorithms: [cubic]", "algorithms: [mine]\nbpf: {mine: mine.bpf.c}").replace("106KB", "3MB")
    process = prepared.conduct(tmp_path, text)
    wait_until(lambda: "mine" in available(), while_running=process)
    (status,) = prepared.hosts.root("a").glob("transfers/*/status.json")
    os.kill(json.loads(status.read_text())["pid"], signal.SIGKILL)
    wait_until(lambda: "mine" not in available(), 30)
    end(process)
    assert len(events(tmp_path, "failed")) == 1 and len(ids(tmp_path)) == 1
    assert "mine" not in available()
    assert_nothing_left(prepared.hosts, tmp_path)


def test_what_the_kernel_does_not_take_is_said_with_its_reason(prepared: Prepared, tmp_path: Path) -> None:
    file = source_of("other", tmp_path)
    file.rename(tmp_path / "mine.bpf.c")
    text = SMALL.replace("algorithms: [cubic]", "algorithms: [mine]\nbpf: {mine: mine.bpf.c}").replace(
        "attempts: 3", "attempts: 1"
    )
    output = end(prepared.conduct(tmp_path, text), code=1)
    assert "registers another name" in output
    assert not available() & {"mine", "other"}
    assert_nothing_left(prepared.hosts, tmp_path)
