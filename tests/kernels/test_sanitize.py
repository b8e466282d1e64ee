# SPDX-License-Identifier: Apache-2.0
"""No module makes a kernel complain that checks itself; and what a killed test leaves is gone with the next one."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from base.errors import WarpbedError
from hosts.virtual.console import DISASTERS
from hosts.virtual.launch import GuestKernel
from tests import lab
from tests.harness import harness, sanitize
from tests.waiting import wait_until

LONG = """
import sys
from collections.abc import Callable
from pathlib import Path
from tests.harness import harness
from hosts.virtual.kernel import load
harness.MEMORY = sys.argv[2]
harness.run(load(Path(sys.argv[1])), harness.Scenario((harness.Flow("reno", phases=((9000, None),)),), seconds=9000))
"""


@pytest.mark.slow
def test_a_kernel_with_checks_has_nothing_to_say_of_any_module() -> None:
    try:
        sanitize.kernel()
    except WarpbedError as error:
        pytest.skip(str(error))
    assert "no complaint" in sanitize.check(2)


FAULTY = """\
// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>
#include <linux/slab.h>
static int __init faulty_init(void)
{
	char *p = kmalloc(24, GFP_KERNEL);
	int i __maybe_unused;

	if (!p)
		return -ENOMEM;
	OPTIMIZER_HIDE_VAR(p);
	FAULT;
	return 0;
}
static void __exit faulty_exit(void) { }
module_init(faulty_init);
module_exit(faulty_exit);
MODULE_DESCRIPTION("A fault that the kernel's checks have to find");
MODULE_LICENSE("GPL");
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("p[24] = 1; kfree(p)", "KASAN: slab-out-of-bounds"),
        ("kfree(p); p[0] = 1", "use-after-free"),
        ("for (i = 0; i < 50; i++) p = kmalloc(24, GFP_KERNEL)", "kmemleak"),  # one alone may be left on a stack
    ],
)
def test_the_kernel_with_checks_finds_an_overflow_a_use_after_free_and_a_leak(
    fault: str, message: str, tmp_path: Path
) -> None:
    try:
        kernel = sanitize.kernel()
    except WarpbedError as error:
        pytest.skip(str(error))
    (tmp_path / "tcp_faulty.c").write_text(FAULTY.replace("FAULT;", f"{fault};"))
    (tmp_path / "Kbuild").write_text("obj-m += tcp_faulty.o\n")
    tree = kernel.linux.parent / "build"
    command = ["make", "-C", str(tree), "ARCH=um", f"M={tmp_path}", "modules"]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    with pytest.raises(harness.GuestError, match=message):
        harness.run_cycles(dataclasses.replace(kernel, modules=tmp_path), ["faulty"], ["reno"], 2)


@pytest.mark.parametrize(
    "message",
    [
        "BUG: KASAN: slab-use-after-free in medley_cong_avoid+0x1c/0x90 [tcp_medley]",
        "UBSAN: shift-out-of-bounds in tcp_fast.c:99:9",
        "BUG: sleeping function called from invalid context at mm/page_alloc.c:4",
    ],
)
def test_the_words_of_the_checks_end_runs_and_specification_tests(message: str) -> None:
    assert DISASTERS.search(message)
    assert harness.SPLATS.search(message)


def test_a_killed_test_leaves_no_guest_and_its_folder_goes_with_the_next(kernel: GuestKernel, tmp_path: Path) -> None:
    shm = tmp_path / "shm"
    shm.mkdir()
    build = kernel.linux.parent
    maker = subprocess.Popen([sys.executable, "-P", "-c", LONG, str(build), str(shm)], cwd=lab.ROOT)
    folder = _first(shm)
    guests = wait_until(lambda: _using(folder))
    harness.reap(shm)
    assert folder.exists()  # in use
    maker.send_signal(signal.SIGKILL)
    maker.wait()
    assert guests
    wait_until(lambda: not _using(folder))
    os.utime(folder, (0, 0))
    harness.reap(shm)
    assert list(shm.iterdir()) == []


def _first(parent: Path) -> Path:
    wait_until(lambda: list(parent.glob("*/guest/pid")))
    return next(parent.iterdir())


def _using(folder: Path) -> list[str]:
    """Processes that name the folder on their command lines."""
    users = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if f"wb_out={folder}".encode() in line:
                users.append(entry.name)
    return users
