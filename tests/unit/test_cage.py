# SPDX-License-Identifier: Apache-2.0
"""Where the cage cannot be had: what was asked of it is obeyed, and a run without it says so."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from analysis import verdict
from analysis.verdict import Evidence, _cage, _confined
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
    assert done.stderr.startswith("cage: ") and "WARPBED_CAGE=required: nothing was started; let this" in done.stderr


def test_a_run_without_a_cage_is_suspect_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARPBED_CAGE", raising=False)
    done = uncaged(tmp_path)
    assert done.stdout == "started\n" and done.stderr.startswith("cage: ")
    nothing = cast("Any", None)
    [reason] = _cage(Evidence(nothing, {}, tmp_path, done.stderr + done.stdout))
    assert (reason.rule, reason.severity) == ("uncaged", "warning")
    assert list(_cage(Evidence(nothing, {}, tmp_path, "Linux version 7.2\ncagey\n"))) == []


def test_a_service_of_a_campaign_that_lacked_its_read_only_world_makes_the_run_suspect(tmp_path: Path) -> None:
    nothing = cast("Any", None)
    had = {"uid": 61184, "capabilities": 0, "no_new_privs": True, "read_only": True}
    for lacking, words in (
        ({"read_only": False}, "a read-only world of its own"),
        ({"no_new_privs": False}, "a bar to capabilities"),
        ({"uid": 0, "read_only": None}, "a user of its own, a read-only world of its own"),
    ):
        facts = {"confined": {"receiver": {**had, **lacking}}}
        [reason] = _confined(Evidence(nothing, facts, tmp_path, ""))
        assert (reason.rule, reason.severity) == ("unconfined", "warning")
        assert reason.message.startswith(f"the receiver's service ran without {words}; ")
    assert list(_confined(Evidence(nothing, {"confined": {"receiver": had}}, tmp_path, ""))) == []
    assert list(_confined(Evidence(nothing, {}, tmp_path, ""))) == []
    assert _confined in verdict.RULES and _cage in verdict.RULES


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
for address in sys.argv[3:]:
    attempt("connect to " + address, lambda: socket.socket(socket.AF_UNIX).connect(address.replace("@", "\\0")))
    attempt("send to " + address, lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"", address.replace("@", "\\0")))
print(json.dumps({
    "tried": tried, "effective": int(status["CapEff"], 16), "bounding": int(status["CapBnd"], 16), "no_new_privs": status["NoNewPrivs"],
    "devices": sorted(os.listdir("/dev")), "interfaces": [name for _, name in socket.if_nameindex()],
    "namespaces": {name: os.readlink("/proc/self/ns/" + name) for name in ("ipc", "mnt", "net", "pid")},
}))
"""
OPENS_FILES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""


@contextlib.contextmanager
def listening() -> Iterator[list[str]]:
    """Names of Unix sockets that everybody may connect to, where programs have theirs; @ for an abstract one."""
    folders = [Path("/tmp"), Path("/var/tmp"), Path("/run"), Path.home()]
    with contextlib.ExitStack() as stack:
        names = [f"@warpbed-{os.getpid()}"]
        for folder in folders:
            if os.access(folder, os.W_OK):
                place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
                place.chmod(0o755)
                names.append(str(place / "socket"))
        for name in names:
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(name.replace("@", "\0"))
            server.listen()
            if not name.startswith("@"):
                os.chmod(name, 0o777)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(name.replace("@", "\0"))
        assert len(names) >= 3
        yield names


@pytest.mark.parametrize("root", [True, False], ids=["as root", "as a user"])
def test_the_caged_program_cannot_open_its_cage(tmp_path: Path, root: bool) -> None:
    if os.getuid() != 0 and root:
        pytest.skip("these tests run as a user")
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as place,  # a user may see the way there; the cage hides /dev/shm
        listening() as sockets,
    ):
        os.chmod(place, 0o755)
        folder, checkout = Path(place) / "run", Path(place) / "checkout"
        folder.mkdir()
        for part in ("base", "hosts"):
            shutil.copytree(lab.ROOT / part, checkout / part, ignore=shutil.ignore_patterns("__pycache__"))
        user: list[str] = []
        if os.getuid() == 0 and not root:
            os.chown(folder, 65534, 65534)
            user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        line = boot.caged(
            0, folder, [boot.SYSTEM_PYTHON, "-I", "-c", ESCAPES, str(checkout), str(folder), *sockets], [checkout]
        )
        line[line.index(str(boot.CAGE))] = str(checkout / boot.CAGE.relative_to(lab.ROOT))
        done = subprocess.run(
            [*user, *line], capture_output=True, text=True, env=boot.environment(), timeout=60, check=False
        )
        assert done.returncode == 0 and done.stderr == "", done.stderr
        assert not (Path(place) / "beside").exists()
    seen = json.loads(done.stdout)
    assert seen["tried"].pop("write in the folder") == "done"
    reached = {name: seen["tried"].pop(f"{how} {name}") for name in sockets for how in ("connect to", "send to")}
    assert set(reached.values()) <= {"No such file or directory", "Connection refused"}, reached
    assert all(os.readlink(f"/proc/self/ns/{name}") != its for name, its in seen["namespaces"].items()), seen
    assert set(seen["tried"].values()) <= {"Operation not permitted", "Read-only file system", "Permission denied"}, (
        seen
    )
    assert seen["effective"] == seen["bounding"] == (OPENS_FILES if root else 0)
    assert seen["no_new_privs"] == "1"
    assert seen["devices"] == ["fd", "full", "null", "random", "shm", "urandom", "zero"]
    assert seen["interfaces"] == ["lo"]


@pytest.fixture
def outside_memory() -> Iterator[Path]:
    """A folder that the cage does not hide, as it does /dev/shm, where `--quick` has its temporary files."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        yield Path(place)


def test_the_folder_may_be_reached_by_links_and_hold_the_programs_of_the_guest(outside_memory: Path) -> None:
    checkout, data = outside_memory / "checkout", outside_memory / "data"
    (checkout / "kernel").mkdir(parents=True)
    (data / "run").mkdir(parents=True)
    (checkout / "results").symlink_to(data)
    shutil.copy("/bin/sh", checkout / "kernel/linux")
    places, folder = [checkout / "kernel/linux", checkout, checkout / "kernel"], checkout / "results/run"
    script = f"echo here >{folder}/file; echo there >{checkout}/file; ls {outside_memory} {outside_memory}/data"
    done = subprocess.run(
        boot.caged(0, folder, [str(checkout / "kernel/linux"), "-c", script], places),
        capture_output=True,
        text=True,
        env=boot.environment(),
        timeout=60,
        check=False,
    )
    assert (data / "run/file").read_text() == "here\n", done.stderr
    assert not (checkout / "file").exists() and "Read-only file system" in done.stderr
    assert done.stdout.split() == [f"{outside_memory}:", "checkout", "data", f"{outside_memory}/data:", "run"]


def test_a_cage_that_cannot_be_finished_leaves_the_program_where_it_was(tmp_path: Path) -> None:
    """A half-made one has everything read-only, and the guest could not write its results."""
    script = f"echo here >{tmp_path}/file; echo started"
    done = subprocess.run(
        boot.caged(0, tmp_path, ["/bin/sh", "-c", script], [tmp_path / "nowhere"]),
        capture_output=True,
        text=True,
        env=boot.environment(),
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("started\n", f"cage: {tmp_path}/nowhere: No such file or directory\n")
    assert (tmp_path / "file").exists()


def test_without_a_cage_there_is_no_capability_either(tmp_path: Path) -> None:
    line = [
        *NO_NAMESPACES,
        *boot.caged(0, tmp_path, ["/bin/grep", "-E", "^(CapEff|CapBnd|NoNewPrivs)", "/proc/self/status"]),
    ]
    done = subprocess.run(line, capture_output=True, text=True, env=boot.environment(), timeout=60, check=True)
    status = dict(row.split(":\t") for row in done.stdout.splitlines())
    assert {int(status[name], 16) for name in ("CapEff", "CapBnd")} == {OPENS_FILES}, (
        "that shell is root, of its namespace"
    )
    assert status["NoNewPrivs"] == "1"


def test_a_user_without_capabilities_starts_without_a_cage_as_well(tmp_path: Path) -> None:
    """A container's root of which all capabilities were taken cannot keep one."""
    dropped = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    line = [*NO_NAMESPACES, *dropped, *boot.caged(0, tmp_path, ["/bin/grep", "CapEff", "/proc/self/status"])]
    done = subprocess.run(line, capture_output=True, text=True, env=boot.environment(), timeout=60, check=False)
    assert done.stdout.split()[1:] == ["0" * 16], done.stderr


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
