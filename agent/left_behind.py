# SPDX-License-Identifier: Apache-2.0
"""A process that takes back what a run changes of a machine that is there after it, however the run ends.

Such changes stay by themselves: a struct_ops map is held by being registered, a sysctl and a module's parameter by being set. The
process is outside of the agent's PID namespace, which ends with the agent, and waits for the end of everybody who can write to its pipe.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

LIBRARY = "libbpf.so.1"
_pipes: list[int] = []
"""Where a watcher listens."""


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Whatever this process and its children `note` in the body is taken back at the end of all of them, also by kill -9.

    Forks: to be entered before there are threads or namespaces.
    """
    reading, writing = os.pipe()
    watcher = os.fork()
    if watcher == 0:
        try:
            os.close(writing)
            _wait(reading)
        finally:
            os._exit(0)
    os.close(reading)
    _pipes.append(writing)
    try:
        yield
    finally:
        _pipes.remove(writing)
        os.close(writing)
        os.waitpid(watcher, 0)


def note_map(map_fd: int) -> None:
    """Say, before it is registered, which struct_ops map it will be."""
    with open(f"/proc/self/fdinfo/{map_fd}") as facts:
        number = next(line.split()[1] for line in facts if line.startswith("map_id:"))
    _note("map", number)


def note_file(path: Path) -> None:
    """Say, before a sysctl or a module's parameter is set, what it is now."""
    if _pipes:
        _note("file", str(path), path.read_text())


def _note(*words: str) -> None:
    for pipe in _pipes:
        os.write(pipe, json.dumps(words).encode() + b"\n")


def _wait(reading: int) -> None:
    os.setsid()
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):  # whoever reads what the agent prints does not wait for this process
        os.dup2(nothing, standard)
    with open(reading) as pipe:
        for line in reversed(pipe.readlines()):
            kind, *words = json.loads(line)
            with contextlib.suppress(OSError):
                if kind == "map":
                    _unregister(int(words[0]))
                else:
                    Path(words[0]).write_text(words[1])


def _unregister(number: int) -> None:
    """A map that is gone, as after a run that came to its end, stays gone."""
    functions = ctypes.CDLL(LIBRARY)
    descriptor = functions.bpf_map_get_fd_by_id(ctypes.c_uint32(number))
    if descriptor >= 0:
        functions.bpf_map_delete_elem(descriptor, ctypes.byref(ctypes.c_uint32(0)))
        os.close(descriptor)
