# SPDX-License-Identifier: Apache-2.0
"""One machine of a cabled network as the controller sees it: its agent's events, and how far its clock is off."""

from __future__ import annotations

import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from base.errors import WarpbedError
from hosts.lines import Lines
from hosts.remote import Remote, agent_command
from hosts.watch import CHUNK_BYTES, ended
from plan.console import OUT, PREFIX

CLOCK_EXCHANGES = 15
ANSWER_S = 30.0
LAST_WORDS_S = 1.0
"""For what an agent that has ended has said; something that it started over there may hold the connection."""
MOST_EVENTS = 1000
"""That wait to be taken; an agent has one a second. Further ones of an agent that floods are left out."""
MOST_GATES, MOST_ERRORS = 20, 100
T = TypeVar("T")


class StationError(WarpbedError):
    """A machine that does not go on; `node` says which."""

    def __init__(self, node: str, text: str) -> None:
        super().__init__(text)
        self.node = node


@dataclass(frozen=True)
class Clock:
    """A machine's CLOCK_REALTIME minus the controller's, ns, and how far from that it can be at most."""

    offset_ns: int
    uncertainty_ns: int


@dataclass
class Station:
    """A machine and its agent. `log` gets what the agent prints."""

    node: str
    remote: Remote
    log: Path
    virtual_s: float = 0.0
    errors: list[str] = field(default_factory=list)
    _events: queue.SimpleQueue[tuple[int, list[str]]] = field(default_factory=queue.SimpleQueue)
    _process: subprocess.Popen[bytes] | None = None
    _reader: threading.Thread | None = None
    _gates: set[str] = field(default_factory=set)
    _ended: bool = False

    def start(self) -> None:
        self._process = self.remote.start(*agent_command(OUT))
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout, open(self.log, "wb") as log:
            said = Lines(log)
            while data := os.read(process.stdout.fileno(), CHUNK_BYTES):
                now = time.time_ns()
                for line in said.take(data):
                    text = line.strip()
                    event = text.removeprefix(PREFIX).split() if text.startswith(PREFIX) else []
                    if event and self._events.qsize() < MOST_EVENTS:
                        self._events.put((now, event))
        self._events.put((time.time_ns(), ["ended"]))

    def has_reached(self, gate: str) -> bool:
        """Whether the agent waits at a gate; raises StationError where it has ended instead."""
        for _ in range(MOST_EVENTS):  # more than wait; whoever asks has a limit of its own
            if gate in self._gates:
                return True
            try:
                _, event = self._events.get_nowait()
            except queue.Empty:
                if self._ended:
                    raise StationError(self.node, "its agent has ended before the others") from None
                return False
            self._take(event)
        return gate in self._gates

    def _take(self, event: list[str]) -> None:
        if event[0] == "at" and len(self._gates) < MOST_GATES:
            self._gates.add(self._value(event, str))
        elif event[0] == "running":
            self.virtual_s = self._value(event, float)
        elif event[0] == "error":
            self.errors = [*self.errors[-MOST_ERRORS:], " ".join(event[1:])]
        elif event[0] == "done":
            self._gates.add("done")
        elif event[0] == "ended":
            self._ended = True

    def _value(self, event: list[str], kind: Callable[[str], T]) -> T:
        try:
            return kind(event[1])
        except (IndexError, ValueError):
            raise StationError(self.node, f"its agent says {' '.join(event)[:100]!r}, which is no message") from None

    def say(self, *order: str) -> None:
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write((" ".join(order) + "\n").encode())
        except OSError as error:
            raise StationError(self.node, f"its agent cannot be reached: {error.strerror}") from error

    def clock(self) -> Clock:
        """Ask for the time several times; the shortest exchange says most. Only while the agent waits at a gate."""
        best: Clock | None = None
        for _ in range(CLOCK_EXCHANGES):
            asked = time.time_ns()
            self.say("time")
            answered, told = self._time()
            half = (answered - asked) // 2
            if best is None or half < best.uncertainty_ns:
                best = Clock(told - (asked + half), half)
        assert best is not None
        return best

    def _time(self) -> tuple[int, int]:
        """When the agent's answer to `time` came, and what it says; other messages are taken meanwhile."""
        until_s = time.monotonic() + ANSWER_S
        while (left_s := until_s - time.monotonic()) > 0:
            try:
                answered, event = self._events.get(timeout=left_s)
            except queue.Empty:
                break
            if event[0] == "time":
                return answered, self._value(event, int)
            self._take(event)
            if self._ended:
                raise StationError(self.node, "its agent has ended")
        raise StationError(self.node, f"did not tell its time within {ANSWER_S:.0f} s")

    def stop(self) -> None:
        """End the agent, and with it all that it has started over there."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            ended(self._process)
        if self._reader is not None:
            self._reader.join(LAST_WORDS_S)
