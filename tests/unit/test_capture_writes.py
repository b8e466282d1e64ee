# SPDX-License-Identifier: Apache-2.0
"""Captures are written in large pieces: each write of a guest's program costs more than the packets in it."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest

from agent.capture import LIBRARY, large_writes

DATA = bytes(range(256)) * 100


def writes(environment: dict[str, str]) -> list[bytes]:
    """What a program that writes as tcpdump does, to standard output by the C library, hands over at once, piece by piece.

    od prints each number by itself; `seq` of coreutils 9.7 gathers its lines in a buffer of its own.
    """
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # each write is a message
    with here, there:
        command = ["od", "-An", "-v", "-tu1"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=there.fileno(), env=environment)
        there.close()
        assert process.stdin is not None
        process.stdin.write(DATA)
        process.stdin.close()
        pieces = list(iter(lambda: here.recv(1 << 20), b""))
        assert process.wait() == 0
    return pieces


def test_a_hundred_kilobytes_are_one_write() -> None:
    (text,) = writes(large_writes())
    assert len(text) > 100_000 and text.split() == [b"%d" % byte for byte in DATA]
    alone = writes(dict(os.environ))
    assert b"".join(alone) == text and len(alone) > 10


def test_what_is_preloaded_already_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/lib/other.so")
    assert large_writes()["LD_PRELOAD"] == f"{LIBRARY}:/lib/other.so"
