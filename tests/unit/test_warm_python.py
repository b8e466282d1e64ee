# SPDX-License-Identifier: Apache-2.0
"""The lab machine's interpreter is to do with a program what Python does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests import lab
from tests.lab_machine.warm_python import SentFirst, defines
from tests.waiting import wait_until

SOURCE = lab.ROOT / "tests/lab_machine/warm_python.c"
PYTHON = "/usr/bin/python3"
SERVE = "from tests.lab_machine import warm_python as w; w.SERVER, w.import_all = {socket!r}, lambda: None; w.serve()"
PROGRAMS = {
    "surroundings": "import os, sys; print(sys.argv, os.getcwd(), sorted(os.environ.items())); mask = os.umask(0); print(oct(mask))",
    "output": "import sys; sys.stdout.write('no end of line'); sys.stderr.write('b\\u00e4d')",
    "rest of the input": "import sys; print(repr(sys.stdin.read()))",
    "status": "raise SystemExit(7)",
    "words as status": "raise SystemExit('no')",
    "none": "raise SystemExit",
    "exit handler": "import atexit; atexit.register(print, 'end'); print('begin')",
    "names": "import sys, __main__; x = 1; print(__main__.x, __name__, __file__, sys.path[0] == '')",
    "signals": "import signal; print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGCHLD))",
    "child": "import subprocess; print(subprocess.run(['sh', '-c', 'exit 3']).returncode)",
    "error": "1 / 0",
}

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or not Path(PYTHON).exists(), reason="no C compiler, or no Python of Debian's"
)


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The interpreter, with a server for as long as the tests take."""
    folder = tmp_path_factory.mktemp("warm")
    socket = str(folder / "server")
    program = folder / "warm-python"
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-O2", *defines(socket), "-o", program, SOURCE], check=True)
    command = [PYTHON, "-c", SERVE.format(socket=socket)]
    with subprocess.Popen(command, cwd=lab.ROOT, env={"PYTHONPATH": str(lab.ROOT)}) as server:
        try:
            wait_until(lambda: " 00010000 " in _listening(socket), while_running=server)
            yield program
        finally:
            server.kill()


def _listening(socket: str) -> str:
    """The kernel's line for it: its flags are 00010000 once it is listened to."""
    return next((line for line in Path("/proc/net/unix").read_text().splitlines() if line.endswith(socket)), "")


def run(interpreter: str | Path, program: str, folder: Path, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [interpreter],
        input=program.encode(),
        capture_output=True,
        cwd=folder,
        env={"LC_ALL": "C.UTF-8", **environment},
        umask=0o027,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_it_does_in_python(warm: Path, name: str, tmp_path: Path) -> None:
    ours, pythons = (run(one, PROGRAMS[name], tmp_path, ONE="1", EMPTY="") for one in (warm, PYTHON))
    if name == "error":  # the traceback has the server's own lines, too
        assert (
            ours[:2] == pythons[:2]
            and ours[2].splitlines()[-1] == pythons[2].splitlines()[-1] == "ZeroDivisionError: division by zero"
        )
    else:
        assert ours == pythons


def test_it_is_a_fork_of_the_server_and_what_it_changes_goes_with_it(warm: Path, tmp_path: Path) -> None:
    program = "import os, sys; print(os.getppid(), hasattr(sys, 'changed')); sys.changed = 1"
    first, second = (run(warm, program, tmp_path) for _ in range(2))
    assert first == second and first[1].endswith("False\n") and int(first[1].split()[0]) != os.getpid()


def test_a_program_that_is_killed_is_no_success(warm: Path, tmp_path: Path) -> None:
    assert run(warm, "import os; os.kill(os.getpid(), 9)", tmp_path)[0] == 255


def test_arguments_and_a_missing_server_are_pythons_own_affair(warm: Path, tmp_path: Path) -> None:
    said = subprocess.run([warm, "-c", "import os; print(os.getppid())"], capture_output=True, text=True, check=True)
    assert int(said.stdout) == os.getpid()
    alone = tmp_path / "alone"
    subprocess.run(["cc", *defines(f"{tmp_path}/none"), "-o", alone, SOURCE], check=True)
    assert run(alone, "import os; print(os.getppid())", tmp_path) == (0, f"{os.getpid()}\n", "")


def test_what_ansible_sends_goes_before_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is looked for in the zip file first; what has been imported stays as it is."""
    package = ModuleType("ansible.module_utils")
    package.__path__ = ["/copy/ansible/module_utils"]
    paths = SentFirst(package)
    monkeypatch.setattr(sys, "path", ["", "/usr/lib/python3"])
    assert list(paths) == ["/copy/ansible/module_utils"]
    monkeypatch.setattr(sys, "path", ["/tmp/sent.zip", "/usr/lib/python3"])
    assert list(paths) == ["/tmp/sent.zip/ansible/module_utils", "/copy/ansible/module_utils"]
