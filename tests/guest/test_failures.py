# SPDX-License-Identifier: Apache-2.0
"""Runs that cannot give a result say which, at what, and why; nothing else is lost and nothing is left behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hosts.virtual.console import Console
from hosts.virtual.launch import GuestKernel
from tests import lab


def failed(tmp_path: Path, text: str, environment: dict[str, str] | None = None) -> tuple[str, dict[str, object]]:
    """Execute a text that must fail; returns what was printed and the run.json of the failed run."""
    file = lab.write(tmp_path, text)
    output = lab.warpbed("execute", file, "--results", tmp_path / "results", code=1, environment=environment)
    assert not (tmp_path / "results/.aside").exists()
    (document,) = (tmp_path / "results").glob("*/*.failed-1/run.json")
    return output, json.loads(document.read_text())


def test_a_module_that_does_not_load(kernel: GuestKernel, tmp_path: Path) -> None:
    text = lab.SMALL.replace("cca: cubic", "cca: {name: medley, params: {init_cwnd: 1000000}}")
    output, run = failed(tmp_path, text)
    assert "module tcp_medley.ko" in output
    assert "Invalid" in output or "out of range" in output
    assert run["status"] == "failed"


def test_an_unknown_parameter_of_the_kernels_own_algorithm(kernel: GuestKernel, tmp_path: Path) -> None:
    output, _ = failed(tmp_path, lab.SMALL.replace("cca: cubic", "cca: {name: cubic, params: {betta: 5}}"))
    assert "parameter cubic.betta: cubic has no such parameter; it has beta" in output


def test_an_iperf3_that_dies(kernel: GuestKernel, tmp_path: Path) -> None:
    """One local port, the first of data connections: iperf3's control connection takes it, and the data connection has none."""
    only = "hosts: {only: {s1: {sysctls: {net.ipv4.ip_local_port_range: 10001 10001}}}}\nflows:"
    output, run = failed(tmp_path, lab.SMALL.replace("flows:", only))
    assert "flow f1: iperf3 client: " in output
    assert "Address already in use" in output
    assert run["error"]["stage"] == "flow"  # type: ignore[index]


def test_a_path_that_loses_everything(kernel: GuestKernel, tmp_path: Path) -> None:
    output, _ = failed(tmp_path, lab.SMALL.replace("buffer: 40p", "buffer: 40p, loss: 100%"))
    assert "no answer to" in output


def test_a_sysctl_that_the_kernel_refuses(kernel: GuestKernel, tmp_path: Path) -> None:
    output, _ = failed(tmp_path, lab.SMALL.replace("flows:", "hosts: {sysctls: {net.ipv4.tcp_nonsense: 1}}\nflows:"))
    assert "tcp_nonsense" in output


def test_one_failed_run_does_not_lose_the_others(kernel: GuestKernel, tmp_path: Path) -> None:
    sweep = "sweep: {parameters: {loss: topology.params.loss}, factorial: {loss: [0%, 100%]}}\n"
    file = lab.write(tmp_path, lab.SMALL.replace("buffer: 40p", "buffer: 40p, loss: 0%") + sweep)
    output = lab.warpbed("execute", file, "--results", tmp_path / "results", code=1)
    assert len(lab.runs(tmp_path / "results/small")) == 1
    assert "failed" in output


def fake_kernel(folder: Path, script: str) -> dict[str, str]:
    """A `guest` that is a shell script: for disasters that a sound kernel does not have."""
    (folder / "build/modules").mkdir(parents=True)
    (folder / "build/linux").write_text("#!/bin/sh\n" + script)
    (folder / "build/linux").chmod(0o755)
    (folder / "build/build.json").write_text('{"key": "fake", "kernel_release": "7.2.0"}')
    return {"WARPBED_TEST_KERNEL": str(folder / "build")}


def test_a_busy_looping_guest_is_stopped(tmp_path: Path) -> None:
    environment = fake_kernel(tmp_path, "echo 'WARPBED running 1.0'; while :; do :; done\n")
    output, run = failed(tmp_path, lab.SMALL, {**environment, "WARPBED_STALL_S": "2"})
    assert "busy-loops" in output and "at 1 virtual seconds" in output
    assert run["error"]["stage"] == "watchdog"  # type: ignore[index]


@pytest.mark.parametrize(
    "line",
    ["Kernel panic - not syncing: Attempted to kill init!", "BUG: unable to handle page fault", "Oops: 0000 [#1]"],
)
def test_a_panic_is_recognised(tmp_path: Path, line: str) -> None:
    environment = fake_kernel(tmp_path, f"echo 'WARPBED done'; echo '[ 1.0] {line}'; echo '[ 1.0] Call Trace:'\n")
    output, run = failed(tmp_path, lab.SMALL, environment)
    assert line in output
    assert run["error"]["stage"] == "kernel"  # type: ignore[index]


def test_a_guest_that_does_not_boot(tmp_path: Path) -> None:
    output, _ = failed(tmp_path, lab.SMALL, fake_kernel(tmp_path, "echo no such root; exit 3\n"))
    assert "ended (code 3) without a result" in output and "no such root" in output


def test_a_guest_cannot_write_outside_its_folder(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    script = f"touch {victim} && echo escaped; echo stayed >&2\n"
    output, _ = failed(tmp_path, lab.SMALL, {**fake_kernel(tmp_path, script), "WARPBED_CAGE": "required"})
    assert not victim.exists()
    assert "escaped" not in output and "stayed" in output


def test_a_full_disk(kernel: GuestKernel, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("a small file system for the results needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=True)
    try:
        file = lab.write(tmp_path, lab.SMALL)
        output = lab.warpbed("execute", file, "--results", disk / "results", code=1)
        assert "No space left" in output
        assert not list(disk.glob("results/small/*[0-9a-f]"))
        assert not (disk / "results/.aside").exists()
        shutil.rmtree(disk / "results", ignore_errors=True)
    finally:
        subprocess.run(["umount", disk], check=True)


def test_the_console_knows_messages_from_disasters() -> None:
    console = Console()
    assert console.line("WARPBED running 3.0")
    assert not console.line("[    3.0] reboot: Power down")
    assert console.virtual_s == 3.0 and not console.disaster
    assert not console.line("[    3.0] general protection fault: 0000")
    assert console.disaster


def test_a_folder_with_blanks_is_a_folder_like_any_other(kernel: GuestKernel, tmp_path: Path) -> None:
    folder = tmp_path / "two words"
    folder.mkdir()
    file = lab.write(folder, lab.SMALL.replace("duration: 5s", "duration: 1s"), "an experiment.yml")
    lab.warpbed("execute", file, "--results", folder / "my results")
    assert [run["status"] for run in lab.runs(folder / "my results/small")] == ["complete"]
