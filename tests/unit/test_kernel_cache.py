# SPDX-License-Identifier: Apache-2.0
"""What a kernel build leaves in the cache when it is interrupted, and what it says when it fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from base.cache import aside
from base.errors import UsageError
from base.paths import ROOT
from kernels.build import _check_config
from kernels.errors import BuildError
from kernels.steps import Steps, telling_lines
from tests.waiting import wait_until

OWNER = """
import sys
from pathlib import Path
from base.cache import aside
from kernels.steps import Steps, end_with_caller
end_with_caller()
with aside(Path(sys.argv[1]), marker="done") as (work, lock):
    (work / "half").touch()
    Steps(work / "log", lock).run("sleeping", "sh", "-c", f"echo $$ > {work}/pid; exec sleep 600", cwd=work)
"""


def start_owner(final: Path) -> tuple[subprocess.Popen[bytes], int]:
    """A process in the middle of filling an aside folder, and the process it waits for."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(final)], env={**os.environ, "PYTHONPATH": str(ROOT)})
    pid = final.parent / f".aside-{final.name}" / "pid"
    return owner, int(wait_until(lambda: pid.exists() and pid.read_text(), 20, while_running=owner))


def gone(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def test_a_folder_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    final = tmp_path / "key"
    with aside(final, marker="done") as place:
        assert place
        (place[0] / "done").touch()
        assert not final.exists()
    assert (final / "done").exists()
    assert not list(tmp_path.glob(".aside-*"))
    with aside(final, marker="done") as place:
        assert place is None


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), aside(tmp_path / "key", marker="done"):
        raise ZeroDivisionError
    assert {path.name for path in tmp_path.iterdir()} == {".locks"}


def test_a_terminated_build_leaves_no_folder_and_no_process(tmp_path: Path) -> None:
    owner, child = start_owner(tmp_path / "key")
    owner.send_signal(signal.SIGTERM)
    assert owner.wait(10) == 128 + signal.SIGTERM
    wait_until(lambda: gone(child), 10)
    assert {path.name for path in tmp_path.iterdir()} == {".locks"}


def test_what_a_killed_build_leaves_is_removed_by_the_next_one(tmp_path: Path) -> None:
    owner, child = start_owner(tmp_path / "key")
    owner.kill()
    owner.wait(10)
    wait_until(lambda: gone(child), 10, say=lambda: "make must not outlive the build")
    assert (tmp_path / ".aside-key/half").exists()
    with aside(tmp_path / "another", marker="done") as place:
        assert place
        assert not (tmp_path / ".aside-key").exists()
        (place[0] / "done").touch()


def test_the_folder_of_a_living_build_stays(tmp_path: Path) -> None:
    owner, _child = start_owner(tmp_path / "key")
    try:
        with aside(tmp_path / "another", marker="done") as place:
            assert place
        assert (tmp_path / ".aside-key/half").exists()
    finally:
        owner.terminate()
        owner.wait(10)


def test_a_compiler_error_is_shown_without_the_rest_of_the_log() -> None:
    log = "\n".join(
        [
            *(f"  CC      net/core/file{number}.o" for number in range(500)),
            "  CC      net/ipv4/tcp_x.o",
            "net/ipv4/tcp_x.c: In function 'f':",
            "net/ipv4/tcp_x.c:3:1: error: expected ';' before '}' token",
            "make[4]: *** [scripts/Makefile.build:250: net/ipv4/tcp_x.o] Error 1",
            "  CC      net/ipv4/tcp_y.o",
            "make[3]: *** [scripts/Makefile.build:480: net/ipv4] Error 2",
        ]
    )
    assert telling_lines(log).splitlines() == log.splitlines()[501:504]


def test_a_failed_step_shows_its_name_and_the_program_s_message(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock, pytest.raises(BuildError) as raised:
        Steps(tmp_path / "log", lock.fileno()).run("greeting", "sh", "-c", "echo no room; exit 3", cwd=tmp_path)
    assert str(raised.value).splitlines()[:2] == ["greeting failed (exit status 3):", "no room"]


def test_an_option_that_kconfig_dropped_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".config").write_text('CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_S="x y"\n')
    required = tmp_path / "um.required"
    required.write_text('CONFIG_A=y\nCONFIG_B=n\nCONFIG_S="x y"\nCONFIG_C=y >=7.0\n')
    _check_config(tmp_path / ".config", [required], "6.12")
    with pytest.raises(BuildError, match=r"um\.required:4: CONFIG_C is n, must be y"):
        _check_config(tmp_path / ".config", [required], "7.2")


def test_an_unwritable_cache_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Exception, match="WARPBED_CACHE") as raised, aside(tmp_path / "file/key", marker="done"):
        pass
    assert not isinstance(raised.value, UsageError)
