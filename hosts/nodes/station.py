# SPDX-License-Identifier: Apache-2.0
"""One machine of a cabled network as the controller sees it: its agent's events, and how far its clock is off."""

from __future__ import annotations

import queue
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from base.errors import WarpbedError
from hosts.remote import Remote, agent_command
from plan.console import OUT, PREFIX

CLOCK_EXCHANGES = 15
ANSWER_S = 30.0


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
    _gates: set[str] = field(default_factory=set)
    _ended: bool = False

    def start(self) -> None:
        self._process = self.remote.start(*agent_command(OUT))
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with open(self.log, "wb") as log:
            for line in process.stdout:
                now = time.time_ns()
                log.write(line)
                log.flush()
                text = line.decode(errors="replace").strip()
                if text.startswith(PREFIX):
                    self._events.put((now, text.removeprefix(PREFIX).split()))
        self._events.put((time.time_ns(), ["ended"]))

    def has_reached(self, gate: str) -> bool:
        """Whether the agent waits at a gate; raises StationError where it has ended instead."""
        while gate not in self._gates:
            try:
                _, event = self._events.get_nowait()
            except queue.Empty:
                if self._ended:
                    raise StationError(self.node, "its agent has ended before the others") from None
                return False
            self._take(event)
        return True

    def _take(self, event: list[str]) -> None:
        if event[0] == "at":
            self._gates.add(event[1])
        elif event[0] == "running":
            self.virtual_s = float(event[1])
        elif event[0] == "error":
            self.errors.append(" ".join(event[1:]))
        elif event[0] == "done":
            self._gates.add("done")
        elif event[0] == "ended":
            self._ended = True

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
            while True:
                try:
                    answered, event = self._events.get(timeout=ANSWER_S)
                except queue.Empty:
                    raise StationError(self.node, f"did not tell its time within {ANSWER_S:.0f} s") from None
                if event[0] == "time":
                    break
                self._take(event)
                if self._ended:
                    raise StationError(self.node, "its agent has ended")
            half = (answered - asked) // 2
            if best is None or half < best.uncertainty_ns:
                best = Clock(int(event[1]) - (asked + half), half)
        assert best is not None
        return best

    def stop(self) -> None:
        """End the agent, and with it all that it has started over there."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
