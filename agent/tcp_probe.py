# SPDX-License-Identifier: Apache-2.0
"""The tcp:tcp_probe trace event: congestion window, threshold and smoothed RTT at every ACK of the senders.

The kernel's ring buffer is copied page by page as it is; `collectors.tcp_probe` decodes it with the event's format,
which is stored beside it.
"""

from __future__ import annotations

import os
from pathlib import Path

from agent.errors import RunError

EVENTS, FORMAT = "tcp_probe.bin", "tcp_probe.format"
TRACING = Path("/sys/kernel/tracing")
BUFFER_KB = 16384
PAGE_BYTES = 65536
"""Larger than any ring buffer page: one read returns one page."""


class TcpProbe:
    """Record the event for sockets whose peer's port is one of the flows' server ports."""

    def __init__(self, out_dir: Path, first_port: int, last_port: int, tracing: Path = TRACING) -> None:
        self._tracing, self._event = tracing, tracing / "events/tcp/tcp_probe"
        if not self._event.exists():
            raise RunError("tcp_probe", str(self._event), "this kernel has no tcp:tcp_probe trace event")
        _write(self._tracing / "trace_clock", "mono")
        _write(self._tracing / "buffer_size_kb", str(BUFFER_KB))
        _write(self._event / "filter", f"dport >= {first_port} && dport <= {last_port}")
        (out_dir / FORMAT).write_text(
            (self._event / "format").read_text() + "\n" + (self._tracing / "events/header_page").read_text()
        )
        self._out = open(out_dir / EVENTS, "wb", buffering=1 << 20)
        self._pipes = [
            os.open(path / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
            for path in sorted((self._tracing / "per_cpu").glob("cpu*"))
        ]
        _write(self._event / "enable", "1")

    def drain(self) -> None:
        """Copy what the kernel has gathered; call it often enough that the ring does not overrun."""
        for pipe in self._pipes:
            while True:
                try:
                    page = os.read(pipe, PAGE_BYTES)
                except BlockingIOError:
                    break
                if not page:
                    break
                self._out.write(page)

    def close(self) -> int:
        """Stop and return how many events were lost because the ring overran."""
        _write(self._event / "enable", "0")
        self.drain()
        self._out.close()
        for pipe in self._pipes:
            os.close(pipe)
        lost = 0
        for path in sorted((self._tracing / "per_cpu").glob("cpu*/stats")):
            for line in path.read_text().splitlines():
                name, _, value = line.partition(":")
                if name in ("overrun", "dropped events"):
                    lost += int(value)
        return lost


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise RunError("tcp_probe", str(path), f"writing {text!r}: {error.strerror}") from error
