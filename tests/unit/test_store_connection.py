# SPDX-License-Identifier: Apache-2.0
"""A database that says nothing any more is not waited for without end."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from store import answering
from store.connect import connected
from store.errors import StoreError

READY = b"Z" + struct.pack("!ic", 5, b"I")
DONE = b"C" + struct.pack("!i", 8) + b"SET\0" + READY
GREETING = b"R" + struct.pack("!ii", 8, 0) + READY


class Server:
    """Takes every connection and says that every statement is done; once it is stopped, it neither takes nor answers anything."""

    def __init__(self, folder: Path) -> None:
        self.stopped, self.ended = threading.Event(), threading.Event()
        self.statements: list[bytes] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self._listener.settimeout(0.05)
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while not self.ended.is_set():
            with suppress(TimeoutError):
                if not self.stopped.wait(0.01):
                    client, _ = self._listener.accept()
                    self._threads.append(threading.Thread(target=self._serve, args=(client,)))
                    self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as words:
            words.read(struct.unpack("!i", words.read(4))[0] - 4)
            client.sendall(GREETING)
            while kind := words.read(1):
                text = words.read(struct.unpack("!i", words.read(4))[0] - 4)
                if self.stopped.is_set():
                    self.ended.wait(60.0)
                    return
                if kind == b"Q":
                    self.statements.append(text)
                    client.sendall(DONE)

    def close(self) -> None:
        self.ended.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.close()


@pytest.mark.timeout(60)
def test_a_server_that_is_stopped_ends_the_command_that_waits_for_it(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "LOOK_S", 0.05)
    monkeypatch.setattr(answering, "PATIENCE_S", 2)

    def ask() -> None:
        with connected("reader", f"postgresql:///w?host={tmp_path}", autocommit=True) as connection:
            connection.execute("SET application_name = 'x'")
            server.stopped.set()
            connection.execute("SELECT 1")

    with pytest.raises(StoreError, match="no answer for 2 s, nor to a new connection: is it stopped"):
        ask()


def test_connections_have_an_end_where_the_other_machine_or_a_lock_has_none(server: Server, tmp_path: Path) -> None:
    url = f"postgresql:///w?host={tmp_path}&tcp_user_timeout=5000"
    with connected("reader", url, autocommit=True) as connection:
        settings = conninfo_to_dict(connection.info.dsn)
    assert settings["keepalives_idle"] == "30" and settings["connect_timeout"] == "10"
    assert settings["tcp_user_timeout"] == "5000", "what the user's URL says holds"
    assert b"SET lock_timeout = 600000\0" in server.statements
    assert not [thread for thread in threading.enumerate() if thread.name == "warpbed-store-answering"]


def test_a_connection_that_ends_by_itself_says_so(server: Server, tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match="the database went away or refused"),
        connected("reader", f"postgresql:///w?host={tmp_path}", autocommit=True),
    ):
        raise psycopg.OperationalError("server closed the connection unexpectedly")
