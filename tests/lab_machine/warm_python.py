# SPDX-License-Identifier: Apache-2.0
"""A Python that has imported what Ansible's modules import, and runs each program that `warm_python.c` brings in a fork of itself.

An emulated CPU takes seconds to start Python and to import that much anew in each task. What a program sees is what Python has for
one on standard input: a fresh `__main__`, its own files, folder, mask, environment and session. What Ansible sends along, a zip file
with the module and all that it imports, goes before the copy here, but for what has been imported: the same files (`disk.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import socket
import sys
import traceback
from collections.abc import Iterator
from types import ModuleType

SERVER = "/run/warm-python"
MOST_BYTES = 65536
IMPORTED = (
    "ast", "base64", "bz2", "copy", "ctypes", "dataclasses", "datetime", "filecmp", "fnmatch", "glob", "grp",
    "gzip", "hashlib", "importlib.util", "inspect", "json", "locale", "logging", "lzma", "pathlib", "pkgutil",
    "platform", "pwd", "random", "runpy", "selectors", "shlex", "shutil", "string", "subprocess", "syslog",
    "tempfile", "textwrap", "threading", "typing", "urllib.parse", "uuid", "zipfile", "zlib",
)  # fmt: skip
"""Of the standard library."""
COPY = "/usr/lib/warm-python"
"""Of Ansible's `module_utils`, as they are on the machine that conducts."""
ANSIBLE = ("_internal._ansiballz._loader", "basic", "common.file", "common.respawn")
"""Of those."""


class SentFirst(list[str]):
    """Where a package's modules are looked for: in the zip files of `sys.path`, then where it was found."""

    def __init__(self, package: ModuleType) -> None:
        super().__init__(package.__path__)
        self._within = package.__name__.replace(".", "/")

    def __iter__(self) -> Iterator[str]:
        yield from [f"{place}/{self._within}" for place in sys.path if place.endswith(".zip")]
        yield from super().__iter__()


def defines(server: str = SERVER) -> list[str]:
    """What the C compiler is to be told for `warm_python.c`."""
    return [f'-DSERVER="{server}"', f"-DMOST_BYTES={MOST_BYTES}"]


def import_all() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    sys.path.insert(0, COPY)
    for name in ANSIBLE:
        importlib.import_module(f"ansible.module_utils.{name}")
    sys.path.remove(COPY)
    for name in ("ansible", "ansible.module_utils"):
        sys.modules[name].__path__ = SentFirst(sys.modules[name])


def program(surroundings: list[bytes]) -> None:
    """Run what standard input has, as Python does."""
    folder, mask, *variables = surroundings
    os.setsid()
    os.umask(int(mask, 2))
    os.chdir(folder)
    os.environb.clear()
    os.environb.update(dict(one.split(b"=", 1) for one in variables if b"=" in one))
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.argv, sys.path[0] = [""], ""
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__file__ = "<stdin>"
    main.__dict__["__builtins__"] = __builtins__
    exec(compile(sys.stdin.buffer.read(), "<stdin>", "exec"), main.__dict__)  # noqa: S102 (this is what it is for)


def status_of(surroundings: list[bytes]) -> int:
    """What the process of that program would end with."""
    status = 0
    try:
        program(surroundings)
    except SystemExit as end:
        if isinstance(end.code, int):
            status = end.code & 255
        elif end.code is not None:
            print(end.code, file=sys.stderr)
            status = 1
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return status


def serve() -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(SERVER)
    os.umask(0o077)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(SERVER)
    import_all()
    server.listen(16)
    while True:
        link, _ = server.accept()
        if os.fork() == 0:
            server.close()
            data, files, _, _ = socket.recv_fds(link, MOST_BYTES, 3)
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            status = status_of(data.split(b"\0")[:-1])
            with contextlib.suppress(OSError):
                link.send(bytes([status]))
            os._exit(status)
        link.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


if __name__ == "__main__":
    serve()
