# SPDX-License-Identifier: Apache-2.0
"""A process that outlives its caller just long enough to clean up after it, however the caller ends, also by kill -9.

It runs in a session of its own, ignores what a terminal sends, and waits for the end of its standard input, which comes with
the caller's end at the latest, or for the caller's end itself, where a child of the caller holds the pipe open. Then it calls
a function of the project.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from base.paths import ROOT

START = "import sys; sys.path.insert(0, sys.argv[1]); from base.watcher import main; main(*sys.argv[2:])"
ATTEMPTS, PAUSE_S = 100, 0.2
BY_ITSELF = "by itself"
"""What a function is told as its last argument where the caller came to its end."""


def start(
    function: Callable[..., None],
    *arguments: str,
    pass_fds: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
    quiet: bool = False,
    told: bool = False,
) -> subprocess.Popen[bytes]:
    """Call a function of a module with these arguments when this process ends, or the watcher's standard input does.

    pass_fds: what the watcher holds open as long as it lives, such as a lock
    quiet: errors go nowhere, and nobody who reads this process's standard error to its end waits for the watcher
    told: the function has a last argument more, which is BY_ITSELF where something was written to the watcher before the end
    """
    place = (str(os.getpid()), function.__module__, function.__name__)
    return subprocess.Popen(
        [sys.executable, "-I", "-c", START, str(ROOT), *place, "told" if told else "", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if quiet else None,
        cwd="/",
        start_new_session=True,
        pass_fds=pass_fds,
        env=environment,
    )


@contextlib.contextmanager
def watching(
    function: Callable[..., None],
    *arguments: str,
    pass_fds: Sequence[int] = (),
    quiet: bool = False,
    told: bool = False,
) -> Iterator[None]:
    """Have a function called at the end of the body, or of this process. told: and tell it which of them it was (BY_ITSELF, or "")"""
    watcher = start(function, *arguments, pass_fds=pass_fds, quiet=quiet, told=told)
    assert watcher.stdin is not None
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):  # somebody has ended the watcher
            watcher.stdin.write(b"." if told else b"")
            watcher.stdin.flush()
        watcher.stdin.close()
        watcher.wait()


@contextlib.contextmanager
def watched_folder(prefix: str, within: Path | None = None) -> Iterator[Path]:
    """A folder for the body that is gone after it, also where this process is killed.

    within: the folder that it lies in; default: the machine's for temporary files
    """
    with tempfile.TemporaryDirectory(prefix=prefix, dir=within) as name, watching(remove_folder, name):
        yield Path(name)


def remove_folder(folder: str) -> None:
    """What a watcher mostly does. Processes die with their parent, but not in the same instant: what they write meanwhile goes too."""
    for _ in range(ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
        time.sleep(PAUSE_S)


def _wait_for_end(caller: int) -> None:
    """Until the standard input or the process that started this one has ended."""
    poll = select.poll()
    poll.register(sys.stdin.fileno(), select.POLLIN)
    with contextlib.suppress(ProcessLookupError):  # it has ended already, and with it the standard input
        poll.register(os.pidfd_open(caller), select.POLLIN)
    poll.poll()


def _was_told() -> bool:
    """Whether there is a word in the standard input."""
    os.set_blocking(sys.stdin.fileno(), False)  # a child of the caller may hold the other end open
    try:
        return bool(os.read(sys.stdin.fileno(), 1))
    except BlockingIOError:
        return False


def main(caller: str, module: str, function: str, told: str, *arguments: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    clean_up = getattr(importlib.import_module(module), function)
    _wait_for_end(int(caller))
    clean_up(*arguments, *([BY_ITSELF if _was_told() else ""] if told else []))
