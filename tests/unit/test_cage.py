# SPDX-License-Identifier: Apache-2.0
"""Where the cage cannot be had: what was asked of it is obeyed, and a run without it says so."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest

from analysis.verdict import Evidence, _cage
from base.errors import WarpbedError
from hosts.base import Execution
from hosts.virtual import boot, cage
from hosts.virtual.host import VirtualHost
from hosts.virtual.launch import GuestKernel
from tests import lab

# a user namespace of its own whose limit on mount namespaces is zero: unshare(2) fails in it, whoever asks
NO_NAMESPACES = [
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    'echo 0 >/proc/sys/user/max_mnt_namespaces && exec "$@"',
    "sh",
]
NO_CAGE = 3


def uncaged(folder: Path) -> subprocess.CompletedProcess[str]:
    line = [*NO_NAMESPACES, *boot.caged(0, folder, ["/bin/echo", "started"])]
    return subprocess.run(line, capture_output=True, text=True, env=boot.environment(), timeout=60, check=False)


def test_a_cage_that_is_required_and_cannot_be_had_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPBED_CAGE", "required")
    done = uncaged(tmp_path)
    assert (done.returncode, done.stdout) == (NO_CAGE, ""), done.stderr


def test_a_run_without_a_cage_is_suspect_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARPBED_CAGE", raising=False)
    done = uncaged(tmp_path)
    assert done.stdout == "started\n" and done.stderr.startswith("cage: ")
    nothing = cast("Any", None)
    [reason] = _cage(Evidence(nothing, {}, tmp_path, done.stderr + done.stdout))
    assert (reason.rule, reason.severity) == ("uncaged", "warning")
    assert list(_cage(Evidence(nothing, {}, tmp_path, "Linux version 7.2\ncagey\n"))) == []


def test_no_other_variable_of_the_caller_reaches_the_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPBED_CAGE", "required")
    monkeypatch.setenv("LD_PRELOAD_OF_THE_USER", "x")
    assert set(boot.environment()) == {*boot.ENVIRONMENT, "WARPBED_CAGE", "WARPBED_STARTER"}


def test_the_program_sees_no_more_than_the_fixed_variables(tmp_path: Path) -> None:
    done = subprocess.run(
        boot.caged(0, tmp_path, ["/usr/bin/env"]),
        capture_output=True,
        text=True,
        env=boot.environment(),
        timeout=60,
        check=False,
    )
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert names - {"LC_CTYPE"} == set(boot.ENVIRONMENT), done.stderr


def test_a_cage_whose_starter_was_killed_before_it_could_look_starts_nothing(tmp_path: Path) -> None:
    """Python takes its time to start: a command that is killed meanwhile would leave its guest running for ever."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    done = subprocess.run(
        boot.caged(0, tmp_path, ["/bin/echo", "started"]),
        capture_output=True,
        text=True,
        env={**boot.environment(), boot.STARTER: str(gone.pid)},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, ""), done.stderr


ESCAPES = """
import json, os, socket, sys
sys.path.insert(0, sys.argv[1])
from base.linux import read_only
tried = {}
def attempt(name, action):
    try:
        action()
        tried[name] = "done"
    except OSError as error:
        tried[name] = os.strerror(error.errno)
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
attempt("make / writable", lambda: read_only("/", recursive=False, on=False))
attempt("write a setting of the kernel", lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)))
attempt("make a device", lambda: os.mknod(sys.argv[2] + "/sda", 0o060600, os.makedev(8, 0)))
attempt("write beside the folder", lambda: os.close(os.open(sys.argv[2] + "/../beside", os.O_WRONLY | os.O_CREAT)))
attempt("write in the folder", lambda: os.close(os.open(sys.argv[2] + "/inside", os.O_WRONLY | os.O_CREAT)))
print(json.dumps({
    "tried": tried, "effective": int(status["CapEff"], 16), "bounding": int(status["CapBnd"], 16), "no_new_privs": status["NoNewPrivs"],
    "devices": sorted(os.listdir("/dev")), "interfaces": [name for _, name in socket.if_nameindex()],
}))
"""
OPENS_FILES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""


@pytest.mark.parametrize("root", [True, False], ids=["as root", "as a user"])
def test_the_caged_program_cannot_open_its_cage(tmp_path: Path, root: bool) -> None:
    if os.getuid() != 0 and root:
        pytest.skip("these tests run as a user")
    with tempfile.TemporaryDirectory(
        dir="/var/tmp"
    ) as place:  # of which a user may see the way there; the cage hides /dev/shm
        os.chmod(place, 0o755)
        folder, checkout = Path(place) / "run", Path(place) / "checkout"
        folder.mkdir()
        for part in ("base", "hosts"):
            shutil.copytree(lab.ROOT / part, checkout / part, ignore=shutil.ignore_patterns("__pycache__"))
        user: list[str] = []
        if os.getuid() == 0 and not root:
            os.chown(folder, 65534, 65534)
            user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        line = boot.caged(0, folder, [boot.SYSTEM_PYTHON, "-I", "-c", ESCAPES, str(checkout), str(folder)])
        line[line.index(str(boot.CAGE))] = str(checkout / boot.CAGE.relative_to(lab.ROOT))
        done = subprocess.run(
            [*user, *line], capture_output=True, text=True, env=boot.environment(), timeout=60, check=False
        )
        assert done.returncode == 0 and done.stderr == "", done.stderr
        assert not (Path(place) / "beside").exists()
    seen = json.loads(done.stdout)
    assert seen["tried"].pop("write in the folder") == "done"
    assert set(seen["tried"].values()) <= {"Operation not permitted", "Read-only file system", "Permission denied"}, (
        seen
    )
    assert seen["effective"] == seen["bounding"] == (OPENS_FILES if root else 0)
    assert seen["no_new_privs"] == "1"
    assert seen["devices"] == ["fd", "full", "null", "random", "shm", "urandom", "zero"]
    assert seen["interfaces"] == ["lo"]


def test_without_a_cage_memory_goes_where_it_may_be_executed(tmp_path: Path) -> None:
    """Containers have a /dev/shm from which nothing may be executed; a guest's memory has to be."""
    (tmp_path / "forbids").mkdir()
    places = (str(tmp_path / "forbids"), str(tmp_path))
    code = f"import sys; sys.path.insert(0, {str(lab.ROOT)!r}); from hosts.virtual import cage; print(cage.memory_place({places!r}))"
    mounted = (
        f"mount -t tmpfs -o noexec tmpfs {places[0]} && exec {sys.executable} -I -c '{code.replace(chr(39), chr(34))}'"
    )
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == places[1]
    assert cage.memory_place(places) == places[0], "without that mount"
    assert cage.memory_place(("/nosuch", "/nosuch2")) == "/nosuch", "the guest says what is wrong"
    line = [*NO_NAMESPACES, *boot.caged(0, tmp_path, ["/bin/sh", "-c", "echo $TMPDIR"])]
    done = subprocess.run(line, capture_output=True, text=True, env=boot.environment(), timeout=60, check=True)
    assert done.stdout.strip() == cage.memory_place()


def test_results_where_a_guest_cannot_see_them_are_refused_with_the_remedy() -> None:
    kernel = GuestKernel(Path("/nowhere/linux"), Path("/nowhere"), "key", "7.2", {})
    run = Execution(cast(Any, None), Path("/dev/shm/results/raw"), 0, 1, lambda seconds: None, lambda: False)
    with pytest.raises(WarpbedError, match=r"^/dev/shm/results/raw: .*; use --results with a folder elsewhere$"):
        VirtualHost(kernel).execute(run)
