# SPDX-License-Identifier: Apache-2.0
"""Namespaces of many nodes, held by the threads of one process.

A node of plain Mininet is a process (a shell) in namespaces of its own. Starting hundreds of processes takes most of the time
that a large network needs; a thread can hold namespaces as well, and /proc/<its id>/ns is as good for `mnexec -a`, `ip` and
setns as that of a process. The process ends with whoever started it, also after kill -9.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

if __name__ == "__main__":  # started by itself, with an empty path
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from base.linux import CLONE_NEWNET, CLONE_NEWNS, MS_PRIVATE_REC, die_with_parent, mount, unshare

STACK_BYTES = 128 << 10


class Holders:
    """The process, started with the first namespace and ended with the last."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._held: set[int] = set()

    def hold(self) -> int:
        """New network and mount namespaces; returns the id under which /proc has them.

        Raises OSError where the kernel refuses.
        """
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", os.path.abspath(__file__)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                bufsize=1,
            )
        answer = self._ask("new")
        if not answer.isdigit():
            raise OSError(f"no namespaces for a node: {answer or 'the process that holds them ended'}")
        self._held.add(int(answer))
        return int(answer)

    def release(self, held: int) -> None:
        """Let the namespaces go; they end once nobody else is in them."""
        if held in self._held:
            self._held.remove(held)
            self._ask(f"end {held}")
            if not self._held and self._process is not None:
                self._process.communicate()
                self._process = None

    def _ask(self, question: str) -> str:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(question + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            return ""
        return process.stdout.readline().strip()


class _Holder(threading.Thread):
    """Goes into new namespaces and stays there until it is told to end."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ready, self.end = threading.Event(), threading.Event()
        self.error = ""

    def run(self) -> None:
        try:
            unshare(CLONE_NEWNET | CLONE_NEWNS)
            mount("none", "/", "", MS_PRIVATE_REC)
            # /sys/class/net shows the interfaces of the namespace in which it was mounted
            mount("sysfs", "/sys", "sysfs")
        except OSError as error:
            self.error = str(error.strerror)
            self.ready.set()
            return
        self.ready.set()
        self.end.wait()


def main() -> None:
    """Answer questions on standard input: `new` with an id or an error's words, `end ID` with an empty line."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to whoever started it
    threading.stack_size(STACK_BYTES)
    holders: dict[int, _Holder] = {}
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        if word == "new":
            holder = _Holder()
            holder.start()
            holder.ready.wait()
            if not holder.error:
                assert holder.native_id is not None
                holders[holder.native_id] = holder
            print(holder.error or holder.native_id, flush=True)
        else:
            gone = holders.pop(int(number))
            gone.end.set()
            gone.join()
            print(flush=True)


if __name__ == "__main__":
    main()
