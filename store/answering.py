# SPDX-License-Identifier: Apache-2.0
"""A server that is stopped, or hangs, keeps its connections open and says nothing: who waits for its answer is woken then.

libpq has a timeout for connecting only, and those of TCP (NETWORK) end a connection to a machine that has gone, not to a process.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

LOOK_S = 30.0
PATIENCE_S = 60
"""For a server under load to take one more connection."""
NETWORK: Mapping[str, Any] = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 6,
    "tcp_user_timeout": 90_000,
}
"""Settings of libpq: a machine that does not answer for 90 s has gone."""


@contextmanager
def watched(connection: psycopg.Connection[Any], settings: Mapping[str, Any]) -> Iterator[threading.Event]:
    """Look now and then whether the server takes connections; where it does not, end this one. The event says that it was so.

    settings: of libpq, as for the connection
    """
    over, gone = threading.Event(), threading.Event()
    conninfo = make_conninfo("", **{**settings, "connect_timeout": PATIENCE_S})

    def look() -> None:
        while not over.wait(LOOK_S):
            try:
                psycopg.connect(conninfo).close()
            except psycopg.errors.ConnectionTimeout:
                gone.set()
                with contextlib.suppress(OSError):
                    own.shutdown(socket.SHUT_RDWR)
                return
            except psycopg.Error:  # it answers, if only that there are too many; or the connection itself ends
                continue

    with socket.socket(fileno=os.dup(connection.fileno())) as own:
        thread = threading.Thread(target=look, name="warpbed-store-answering", daemon=True)
        thread.start()
        try:
            yield gone
        finally:
            over.set()
            thread.join(1.0)
