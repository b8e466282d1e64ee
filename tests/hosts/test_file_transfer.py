# SPDX-License-Identifier: Apache-2.0
"""The receiving service of campaigns: one transfer, of the announced sender, who knows the attempt's key; then it is gone."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent import filetransfer
from agent.filetransfer import TransferError, receive, send
from tests.waiting import wait_until

pytestmark = pytest.mark.real_host
OWN, PEER, STRANGER = "127.0.0.2", "127.0.0.3", "127.0.0.4"
KEY = bytes(range(32))
SIZE = 300_000


class Service:
    """A receiver on a thread, with its outcome after `ended`."""

    def __init__(self, port: int, at_most: int) -> None:
        self.port, self.at_most, self.outcome = port, at_most, {}
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            self.outcome = receive(OWN, PEER, self.port, KEY, 10.0, self.at_most)
        except (TransferError, OSError) as error:
            self.outcome = {"error": str(error)}

    outcome: dict[str, Any]

    def ended(self) -> dict[str, Any]:
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self.outcome


@pytest.fixture
def service() -> Iterator[Service]:
    with socket.create_server((OWN, 0)) as probe:
        port = probe.getsockname()[1]
    service = Service(port, SIZE)
    listening = f"{socket.inet_aton(OWN)[::-1].hex().upper()}:{port:04X}"
    wait_until(lambda: listening in Path("/proc/net/tcp").read_text(), 10, every_s=0.01)
    yield service
    if not service.outcome:
        with contextlib.suppress(OSError, TransferError):
            sent(service)


def sent(service: Service, key: bytes = KEY, own: str = PEER, size: int = SIZE) -> dict[str, Any]:
    return send(own, OWN, service.port, key, "reno", size, None, 10.0)


def test_exactly_the_announced_bytes_arrive_and_the_service_is_gone(service: Service) -> None:
    assert sent(service)["bytes"] == SIZE == service.ended()["bytes"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((OWN, service.port), 1)


def test_it_listens_on_its_own_address_only(service: Service) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", service.port), 1)


def test_who_does_not_know_the_key_sends_nothing_and_the_next_one_is_served(service: Service) -> None:
    with pytest.raises((TransferError, OSError)):
        sent(service, key=bytes(32))
    assert sent(service)["bytes"] == service.ended()["bytes"]


def test_another_address_is_not_listened_to_even_with_the_key(service: Service) -> None:
    with pytest.raises((TransferError, OSError)):
        sent(service, own=STRANGER)
    assert service.outcome == {}
    assert sent(service)["bytes"] == service.ended()["bytes"]


def test_a_size_above_what_was_agreed_is_refused(service: Service) -> None:
    with pytest.raises((TransferError, OSError)):
        sent(service, size=SIZE + 1)
    assert service.ended() == {"error": f"{SIZE + 1} bytes announced, at most {SIZE} are to come"}


def test_no_more_is_read_than_was_announced(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    hello = filetransfer.HELLO
    monkeypatch.setattr(
        filetransfer,
        "HELLO",
        SimpleNamespace(pack=lambda size, port: hello.pack(1000, port), unpack=hello.unpack, size=hello.size),
    )
    with pytest.raises((TransferError, OSError)):
        sent(service)
    assert service.ended() == {"error": "more than the 1000 bytes announced have come"}


def test_who_says_a_byte_at_a_time_holds_the_service_for_one_timeout(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filetransfer, "CONTROL_TIMEOUT_S", 0.5)
    with socket.create_connection((OWN, service.port), 5, (PEER, 0)) as slow:
        slow.settimeout(10)
        assert len(slow.recv(64)) == 32
        given = 0
        with contextlib.suppress(OSError):
            while given < 64:
                slow.sendall(b"x")
                given += 1
                time.sleep(0.1)
    assert given < 32, "the deadline is for all of it, not for each byte"
    monkeypatch.undo()
    assert sent(service)["bytes"] == service.ended()["bytes"]


def test_a_sender_trusts_no_receiver_that_does_not_know_the_key() -> None:
    with socket.create_server((OWN, 0)) as other:

        def pretend() -> None:
            control, _ = other.accept()
            with control:
                control.sendall(bytes(64))
                control.recv(4096)
                time.sleep(0.1)

        thread = threading.Thread(target=pretend, daemon=True)
        thread.start()
        with pytest.raises(TransferError, match="does not know the key"):
            send(PEER, OWN, other.getsockname()[1], KEY, "reno", SIZE, None, 5.0)
        thread.join(10)
