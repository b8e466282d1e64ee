# SPDX-License-Identifier: Apache-2.0
"""Do a case's work in a child, so that this process, which forks again and again, never has threads of its own."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import IO, Any

LONGEST_S = 900
"""Every wait has an end; a busy machine has none the sooner."""
_noted: list[int] = []
"""The file that takes the names of imported modules, while `warm` looks for them."""


@dataclass(frozen=True)
class Work:
    """Work that was begun in a child."""

    _child: int
    _words: IO[bytes]

    def ended(self) -> tuple[int, str]:
        """Wait for its exit code (minus the signal that ended it), and for what it printed."""
        with self._words:
            _, status = os.waitpid(self._child, 0)
            self._words.seek(0)
            return os.waitstatus_to_exitcode(status), self._words.read().decode(errors="replace")

    def kill(self) -> None:
        os.kill(self._child, signal.SIGKILL)


def forked(work: Callable[[], int]) -> tuple[int, str]:
    """Do the work in a child; its exit code, and what it printed."""
    return started(work).ended()


def started(work: Callable[[], int]) -> Work:
    """Begin the work in a child."""
    words = tempfile.TemporaryFile()
    child = os.fork()
    if child:
        return Work(child, words)
    os.dup2(words.fileno(), 1)
    os.dup2(words.fileno(), 2)
    signal.alarm(LONGEST_S)  # every wait has an end
    try:
        code = work()
    except BaseException:  # noqa: BLE001 — what a command would have printed
        traceback.print_exc()
        code = 99
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def unclear(code: int, words: str) -> list[str]:
    """What is wrong with how a command ended, whatever it did."""
    if "Traceback" in words:
        return [f"a traceback instead of an error: {words[-900:]}"]
    return [f"exit code {code} without a word"] if code and not words.strip() else []


def warm(work: Callable[[], int]) -> None:
    """Do the work once in a child, and import here what it imported: each further child has it from the start. That is most of the
    time that a command takes."""
    with tempfile.TemporaryFile() as names:
        _noted.append(names.fileno())
        forked(lambda: note_imports(work()))
        _noted.clear()
        names.seek(0)
        for name in dict.fromkeys(names.read().decode().split()):
            with contextlib.suppress(ImportError):  # what is only there inside another module
                importlib.import_module(name)


def note_imports(code: int = 0) -> int:
    """Called at the end of a child; the exit code that was given."""
    for file in _noted:
        os.write(file, "".join(f"{name}\n" for name in sys.modules if name != "__main__").encode())
    return code


def imitate(module: ModuleType, name: str, instead: Any) -> None:
    """Put something in the place of a module's name, in a process that ends after its work. A name that the module no longer has is
    an error: the case would do without what it imitates."""
    if not hasattr(module, name):
        raise AttributeError(f"{module.__name__} has no {name} any more, which the case imitates")
    setattr(module, name, instead)
