# SPDX-License-Identifier: Apache-2.0
"""A function's calls, each in a process of its own that has imported everything before it begins.

One process imports a module once and forks itself for each call: a call costs what it does, and not the imports. It ends with the
process that started it, however that ends, and so do the calls.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

from base import screen
from base.linux import die_with_parent
from base.paths import ROOT

MESSAGE_BYTES = 1 << 16
"""Of the words of one call, NUL between them."""


@dataclass
class Call:
    """One call that has begun. It is killed at the end of a `with` where it has not ended."""

    _status: socket.socket
    _output: int

    def wait(self, timeout_s: float) -> tuple[int, str] | None:
        """Exit code (negative: ended by that signal) and what was printed; None where it has not ended after that time.

        Raises ChildProcessError where the process that forks has ended, and the call with it.
        """
        self._status.settimeout(max(timeout_s, 1e-3))  # 0 would be another mode, in which nothing is waited for
        try:
            status = self._status.recv(16)
        except TimeoutError:
            return None
        except ConnectionError:
            status = b""
        if not status:
            raise ChildProcessError("the process that it was forked from has been ended")
        with open(self._output, "rb", closefd=False) as printed:
            printed.seek(0)
            return os.waitstatus_to_exitcode(int(status)), printed.read().decode(errors="replace")

    def __enter__(self) -> Call:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.close()
        os.close(self._output)


class Forks:
    """Calls of `main(words)` of a module, which returns an exit code, and has `ready()` to import what it would import later.

    module: its name. It is not imported here
    A terminal's Ctrl-C reaches neither the process that forks nor the calls. Threads may share this object.
    """

    def __init__(self, module: str) -> None:
        self._module, self._lock = module, threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def start(self) -> None:
        """Begin to import, where that has not begun; `call` does so, too."""
        with self._lock:
            self._running()

    def call(self, words: Sequence[str], cpu: int | None = None) -> Call:
        """Begin a call. cpu: the only one that it uses"""
        message = "\0".join(("" if cpu is None else str(cpu), *words)).encode(errors="surrogateescape")
        if len(message) > MESSAGE_BYTES:
            raise ValueError(f"{len(message)} bytes of words, at most {MESSAGE_BYTES}")
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        output = os.memfd_create("output")
        call = Call(mine, output)
        try:
            with self._lock, theirs:
                try:
                    socket.send_fds(self._running(), [message], [output, theirs.fileno()])
                except ConnectionError:  # somebody has ended it since the last call
                    self._end()
                    socket.send_fds(self._running(), [message], [output, theirs.fileno()])
        except BaseException:
            call.__exit__(None, None, None)
            raise
        return call

    def end(self) -> None:
        """End the process that forks, and all calls."""
        with self._lock:
            self._end()

    def _running(self) -> socket.socket:
        if self._channel is None:
            mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs, without_interrupts():
                self._server = subprocess.Popen(
                    [sys.executable, "-m", "testbed.forks", str(theirs.fileno()), self._module],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    cwd=ROOT,
                    pass_fds=[theirs.fileno()],
                )
            self._channel = mine
            atexit.register(self.end)
        return self._channel

    def _end(self) -> None:
        if self._channel is not None and self._server is not None:
            self._channel.close()
            self._server.wait()
        self._channel = self._server = None
        atexit.unregister(self.end)


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """What is started in the body does not hear of a terminal's Ctrl-C from its first moment on; this process does, afterwards."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class _Server:
    """Forks for each message of a channel until that ends, and tells each caller how its call has ended."""

    def __init__(self, channel: socket.socket, function: Callable[[list[str]], int]) -> None:
        self._channel, self._function = channel, function
        self._selector = selectors.DefaultSelector()
        self._pids: list[int] = []
        self._open = True

    def serve(self) -> None:
        self._selector.register(self._channel, selectors.EVENT_READ, self._begin)
        while self._open:
            for key, _ in self._selector.select():
                key.data()

    def _begin(self) -> None:
        message, descriptors, _, _ = socket.recv_fds(self._channel, MESSAGE_BYTES, 2)
        if not message:
            self._open = False
            return
        output, caller = descriptors[0], socket.socket(fileno=descriptors[1])
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._called(message, output, server)
        os.close(output)
        self._pids.append(pid)
        handle = os.pidfd_open(pid)
        self._selector.register(caller, selectors.EVENT_READ, lambda: self._left(caller, pid))
        self._selector.register(handle, selectors.EVENT_READ, lambda: self._ended(handle, caller, pid))

    def _left(self, caller: socket.socket, pid: int) -> None:
        """Nothing is ever sent by a caller, so this is its end."""
        self._selector.unregister(caller)
        if pid in self._pids:  # so its number is still its own
            os.kill(pid, signal.SIGKILL)

    def _ended(self, handle: int, caller: socket.socket, pid: int) -> None:
        _, status = os.waitpid(pid, 0)
        self._pids.remove(pid)
        self._selector.unregister(handle)
        os.close(handle)
        with contextlib.suppress(KeyError):  # it has left
            self._selector.unregister(caller)
        with contextlib.suppress(ConnectionError):
            caller.send(b"%d" % status)
        caller.close()

    def _called(self, message: bytes, output: int, server: int) -> None:
        """The forked process, to its end."""
        code = 1
        try:
            die_with_parent(server)
            os.dup2(output, 1)
            os.dup2(output, 2)
            self._selector.close()
            self._channel.close()
            cpu, *words = message.decode(errors="surrogateescape").split("\0")
            if cpu:
                os.sched_setaffinity(0, {int(cpu)})
            screen.install()
            code = self._function(words)
        except BaseException:  # noqa: BLE001 — as the interpreter ends
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)


def main(descriptor: str, module: str) -> None:
    """Import, then fork for each message of the socket of that number."""
    with socket.socket(fileno=int(descriptor)) as channel:
        functions = importlib.import_module(module)
        functions.ready()
        gc.collect()
        gc.freeze()  # what is there stays, and the collector does not write into the pages that all share
        _Server(channel, functions.main).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
