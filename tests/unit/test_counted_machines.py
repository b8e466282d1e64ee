# SPDX-License-Identifier: Apache-2.0
"""Machines whose clock counts instructions: the archive of their root, which clock is chosen, what the verdict says of it."""

from __future__ import annotations

import io
import itertools
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from analysis import realtime
from base.errors import UsageError
from hosts.vm import counted, initramfs
from hosts.vm.qemu import Accelerator

KVM, TCG = Accelerator("kvm", "a guest starts under it"), Accelerator("tcg", "none")


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio, which the archive is read with, is not installed")
def test_cpio_reads_the_archive_as_it_was_written(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/odd").write_bytes(b"12345")  # a size that needs padding
    (tree / "usr/bin/odd").chmod(0o4755)
    (tree / "usr/bin/empty").touch()
    (tree / "bin").symlink_to("usr/bin")
    (tree / "left").mkdir()
    (tree / "left/out").write_text("not this")
    stream = io.BytesIO()
    archive = initramfs.Archive(stream)
    archive.tree(tree, ("left",))
    archive.device("dev/console", 5, 1)
    archive.end()
    initramfs.write(stream, {"/run/deep/er": b"given", "/run/deep/as": tree / "usr/bin/odd"})
    data = stream.getvalue()
    assert len(data) % 512 == 0
    listed = subprocess.run(["cpio", "-itv", "--quiet"], input=data, capture_output=True, check=True).stdout.decode()
    assert "crw-------" in listed and "5,   1" in listed and "bin -> usr/bin" in listed and "left" not in listed
    out = tmp_path / "out"
    out.mkdir()
    first = data.index(b"TRAILER!!!") + 512  # cpio ends at the first archive's end, a kernel goes on
    for part in (data, data[first - first % 512 :]):
        subprocess.run(["cpio", "-i", "--quiet"], input=part, cwd=out, capture_output=True)
    assert (out / "usr/bin/odd").read_bytes() == b"12345" and stat.S_IMODE(
        (out / "usr/bin/odd").stat().st_mode
    ) == 0o4755
    assert (out / "usr/bin/empty").read_bytes() == b"" and (out / "run/deep/er").read_text() == "given"
    assert (out / "run/deep/as").read_bytes() == b"12345"


def test_the_archive_does_not_depend_on_who_made_the_files_or_when(tmp_path: Path) -> None:
    archives = []
    for name, order in (("a", ("x", "y")), ("b", ("y", "x"))):
        (tmp_path / name).mkdir()
        for file in order:
            (tmp_path / name / file).write_text(file)
        stream = io.BytesIO()
        archive = initramfs.Archive(stream)
        archive.tree(tmp_path / name)
        archive.end()
        archives.append(stream.getvalue())
    assert archives[0] == archives[1]


def test_an_emulated_machine_counts_and_one_under_kvm_has_the_computers_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARPBED_VM_CLOCK", raising=False)
    assert (counted.clock(TCG), counted.clock(KVM)) == ("counted", "real")
    for chosen in counted.CHOICES:
        monkeypatch.setenv("WARPBED_VM_CLOCK", chosen)
        assert counted.clock(TCG) == counted.clock(KVM) == chosen
    monkeypatch.setenv("WARPBED_VM_CLOCK", "sundial")
    with pytest.raises(UsageError, match=r"WARPBED_VM_CLOCK is 'sundial'; it can be counted or real"):
        counted.clock(TCG)


def test_nothing_of_the_command_line_follows_the_computers_time() -> None:
    line = counted.command(Path("linux"), Path("initrd"), Path("disk"), 700, 5)
    after = dict(itertools.pairwise(line))
    assert after["-icount"] == "shift=0,align=off,sleep=off,rr=record,rrfile=/dev/null"
    assert after["-rtc"].endswith("clock=vm")
    assert line[-1].endswith(",write-cache=off")  # a QEMU that records answers a flush of nothing never
    assert after["-accel"] == "tcg,thread=single" and after["-seed"] == "5" and after["-smp"] == "1"
    assert not {"-netdev", "-object"} & set(line) and not any(
        "rng" in word for word in line if word.startswith("virtio")
    )


def test_only_an_emulated_cpu_on_a_real_clock_is_held_against_a_run() -> None:
    quiet = {
        "cpu_busy_max": 0.1,
        "softnet_dropped": 0,
        "timer_late_p99_us": 20.0,
        "timer_late_max_us": 100.0,
        "timers": 9,
    }
    facts = {"realtime": quiet, "host": {"accelerator": "tcg", "clock": "counted"}}
    assert realtime.clock_of(facts) == "counted" and list(realtime.judge(facts)) == []
    facts = {"realtime": quiet, "host": {"accelerator": "tcg"}}
    assert realtime.clock_of(facts) == "real" and [rule for rule, _, _ in realtime.judge(facts)] == ["emulated-cpu"]
    # a CPU that has no time left is the run's own matter with either clock
    busy = {"realtime": {**quiet, "cpu_busy_max": 0.95}, "host": {"accelerator": "tcg", "clock": "counted"}}
    assert [rule for rule, _, _ in realtime.judge(busy)] == ["cpu-headroom"]
