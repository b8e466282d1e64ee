# SPDX-License-Identifier: Apache-2.0
"""Traffic processes as the agent sees them: forked into a node's namespace, started together, their results kept."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from agent.errors import RunError
from agent.namespaces import entered
from agent.traffic.control import Control
from agent.traffic.worker import work
from plan.model import TrafficPlan

READY_TIMEOUT_S = 30.0
WAIT_S = 0.05
MAX_FILES = 65536


class TrafficProcess:
    """One process; a fork of the agent, which costs far less than an interpreter of its own."""

    def __init__(self, plan: TrafficPlan, pid_of_node: int, addresses: dict[str, str], out_dir: Path) -> None:
        self.plan = plan
        self.file = out_dir / f"{plan.name}.{plan.side}.{plan.node}.json"
        read_fd, self._control_fd = os.pipe2(os.O_CLOEXEC)
        self._status_fd, status_fd = os.pipe2(os.O_CLOEXEC)
        sys.stdout.flush()
        sys.stderr.flush()
        with entered(pid_of_node):
            self._pid = os.fork()
            if not self._pid:
                self._child(read_fd, status_fd, addresses)  # does not return
        os.close(read_fd)
        os.close(status_fd)
        self._code: int | None = None

    def _child(self, read_fd: int, status_fd: int, addresses: dict[str, str]) -> None:
        code = 1
        try:
            low, high = sorted((read_fd, status_fd))
            for first, last in ((3, low), (low + 1, high), (high + 1, MAX_FILES)):
                os.closerange(first, last)  # the other processes' control lines above all: they must be able to end
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            result = work(self.plan, addresses, Control(read_fd, status_fd))
            self.file.write_text(json.dumps(result) + "\n")
            code = 1 if result["error"] else 0
        except BaseException:  # noqa: BLE001 — whatever it is, the agent must hear of it
            self.file.write_text(json.dumps({"error": traceback.format_exc(limit=-4)}) + "\n")
        finally:
            os._exit(code)

    def wait_ready(self) -> None:
        """Until it could be started."""
        answered = bool(select.select([self._status_fd], [], [], READY_TIMEOUT_S)[0])
        if not answered or not os.read(self._status_fd, 64):
            self._code = self._reap(block=answered)  # told nothing: it has closed the line, so it is ending
            raise self._failure("it did not get ready")

    def start(self, start_ns: int) -> None:
        """Tell when the run starts, ns of CLOCK_MONOTONIC."""
        try:
            os.write(self._control_fd, f"start {start_ns}\n".encode())
        except BrokenPipeError as error:
            raise self._failure("it ended before the start") from error

    def finish(self) -> None:
        """Tell it to end and to write its result."""
        if self._control_fd >= 0:
            os.close(self._control_fd)
            self._control_fd = -1

    def check_running(self) -> None:
        """Raise RunError where it has ended with an error."""
        if self._code is None:
            self._code = self._reap(block=False)
        if self._code not in (None, 0):
            raise self._failure("")

    def wait(self, timeout_s: float) -> None:
        """Wait for it to end by itself.

        Raises RunError where it does not, or failed.
        """
        end_s = time.monotonic() + timeout_s
        while self._code is None and time.monotonic() < end_s:
            self._code = self._reap(block=False)
            if self._code is None:
                time.sleep(WAIT_S)
        if self._code is None:
            raise RunError("traffic", self.plan.name, f"the {self.plan.side} on {self.plan.node} did not end in time")
        self.check_running()

    def kill(self) -> None:
        self.finish()
        if self._code is None:
            os.kill(self._pid, signal.SIGKILL)
            self._code = self._reap(block=True)
        if self._status_fd >= 0:
            os.close(self._status_fd)
            self._status_fd = -1

    def _reap(self, block: bool) -> int | None:
        pid, status = os.waitpid(self._pid, 0 if block else os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None

    def _failure(self, reason: str) -> RunError:
        try:
            result: dict[str, Any] = json.loads(self.file.read_text())
        except (OSError, ValueError):
            result = {}
        ended = reason if self._code is None or self._code >= 0 else f"killed by signal {-self._code}"
        said = ": ".join(part for part in (ended, str(result.get("error") or "")) if part)
        return RunError("traffic", self.plan.name, f"the {self.plan.side} on {self.plan.node}: {said}")
