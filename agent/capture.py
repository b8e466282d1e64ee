# SPDX-License-Identifier: Apache-2.0
"""Captures by tcpdump: nanosecond time stamps, headers only unless the plan says otherwise."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from agent.errors import RunError
from agent.namespaces import entered

RING_KIB = 8192
LIBRARY = "/usr/libexec/coreutils/libstdbuf.so"
BUFFER_BYTES = 1 << 20
"""What tcpdump gathers before it writes. By itself that is the file's st_blksize: 1 KiB in a guest, nine packets.

As coreutils' stdbuf does it, but without the process that it is: one more would draw random numbers, and the kernel may draw the secret of
its ports and sequence numbers after it. Where the library is missing, ld.so says so and tcpdump writes as ever.
"""
LINE_BYTES = 1 << 16
WHOLE_PACKET = 262144
"""tcpdump's own largest snapshot length."""
READY_TIMEOUT_S = 60.0
"""From its start to its word that it listens; a guest's clock stands still while its CPU is busy with that."""
STOP_TIMEOUT_S = 30.0


def large_writes() -> dict[str, str]:
    """This process's environment, but that what it starts writes to its standard output in large pieces."""
    preloaded = [LIBRARY, *filter(None, [os.environ.get("LD_PRELOAD")])]
    return {**os.environ, "LD_PRELOAD": ":".join(preloaded), "_STDBUF_O": str(BUFFER_BYTES)}


class TcpdumpCapture:
    """A running tcpdump.

    expression: a filter; before: runs in the process that becomes tcpdump; virtual: in virtual time, where a write costs more
    than the packets in it
    """

    def __init__(
        self,
        pid: int,
        interface: str,
        snap_bytes: int,
        out_dir: Path,
        packets_at_most: int = 0,
        expression: tuple[str, ...] = (),
        before: Callable[[], None] | None = None,
        *,
        virtual: bool = False,
    ) -> None:
        self.interface, self._packets_at_most = interface, packets_at_most
        # to standard output: given a name, tcpdump wants to change the file's owner, which only a real root can
        command = ["tcpdump", "-i", interface, "-w", "-"]
        command += ["-s", str(snap_bytes or WHOLE_PACKET), "-n", "-Z", "root", "-B", str(RING_KIB)]
        command += ["--time-stamp-precision=nano"]
        command += ["-c", str(packets_at_most)] if packets_at_most else []
        command += expression
        with entered(pid), open(out_dir / f"{interface}.pcap", "wb") as out:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
                env=large_writes() if virtual else None,
                preexec_fn=before,
            )
        self._words: list[str] = []
        if not self._listens():
            self.kill()
            raise self._failure()

    def _listens(self) -> bool:
        """Wait for tcpdump's word that it captures; False where it ends instead. Raises RunError where it does neither."""
        assert self._process.stderr is not None
        said, until_s = b"", time.monotonic() + READY_TIMEOUT_S
        while b"listening on" not in said or not said.endswith(b"\n"):
            if not select.select([self._process.stderr], [], [], max(0.0, until_s - time.monotonic()))[0]:
                self.kill()
                message = f"tcpdump did not say within {READY_TIMEOUT_S:.0f} s that it listens"
                raise RunError("capture", self.interface, message)
            data = os.read(self._process.stderr.fileno(), LINE_BYTES)
            said = (said + data)[-LINE_BYTES:]
            if not data:
                break
        self._words = [line.strip() for line in said.decode(errors="replace").splitlines()]
        return b"listening on" in said

    def check_running(self) -> None:
        if self._process.poll() is not None and not self.is_full():
            raise self._failure()

    def is_full(self) -> bool:
        """Whether the capture has ended by itself because it holds as many packets as it may."""
        return bool(self._packets_at_most) and self._process.poll() == 0

    def stop(self) -> int:
        """End the capture and return how many packets the kernel could not hand to it."""
        if not self.is_full():
            self._process.send_signal(signal.SIGINT)
        try:
            _, output = self._process.communicate(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise RunError("capture", self.interface, "tcpdump did not end when told to") from error
        self._words += output.splitlines()
        if self._process.returncode:
            raise self._failure()
        dropped = [line for line in self._words if "dropped by kernel" in line]
        return int(dropped[0].split()[0]) if dropped else 0

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def _failure(self) -> RunError:
        if self._process.stderr is not None and not self._process.stderr.closed:
            self._words += self._process.stderr.read().splitlines()
        return RunError("capture", self.interface, "tcpdump: " + " / ".join(self._words[-3:]))
