# SPDX-License-Identifier: Apache-2.0
"""Run the flows' applications: one file of results per side, and the program's own words when it fails."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

from agent.errors import RunError
from agent.namespaces import entered
from plan.model import FlowPlan

TAIL_CHARACTERS = 400
THREADS_SINCE = (3, 16)
"""iperf3's streams are threads from here on."""


MANY_STREAMS = 100
"""From this number on a sender goes through its streams once after each wake-up."""


def _has_threads(version: str | None) -> bool:
    number = re.match(r"iperf (\d+)\.(\d+)", version or "")
    return number is not None and (int(number[1]), int(number[2])) >= THREADS_SINCE


def rounds(version: str | None, streams: int) -> list[str]:
    """Options by which iperf3 writes to each of many streams once after a `select`, instead of ten times.

    With many streams each has a small window, so that the first write fills its send buffer and those of further rounds are refused.
    With few of them the further rounds write more, and save a `select` each. Streams that are threads wait by themselves.
    """
    return ["-b", "0/1"] if streams >= MANY_STREAMS and not _has_threads(version) else []


def interval_s(version: str | None, size_bytes: int | None) -> str:
    """The interval of iperf3's reports: none, or its shortest, 0.1 s, where it would not notice the end of a number of bytes without.

    version: the first line of `iperf3 --version`. With threads the one that ends a test sleeps until the next report, for ever where
    there are none (tried with 3.18: it hangs in every transfer with -n and -i 0).
    """
    return "0.1" if _has_threads(version) and size_bytes is not None else "0"


class Iperf3Flow:
    """A TCP transfer by unmodified iperf3: a server for one test and its client.

    A side whose node is another machine's has no pid here, and is left to that machine.

    version: what iperf3 here says of itself
    """

    program = "iperf3"

    def __init__(
        self,
        plan: FlowPlan,
        source_pid: int | None,
        destination_pid: int | None,
        address: str,
        out_dir: Path,
        version: str | None = None,
    ) -> None:
        self.plan, self._version = plan, version
        self._pids, self._address = {"client": source_pid, "server": destination_pid}, address
        self._files = {side: out_dir / f"{plan.name}.{side}.json" for side in ("server", "client")}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start_server(self) -> None:
        self._start("server", ["iperf3", "-s", "-1", "-p", str(self.plan.port), "-J", "-i", "0"])

    def start_client(self) -> None:
        plan = self.plan
        amount = ["-t", f"{plan.duration_s:g}"] if plan.size_bytes is None else ["-n", str(plan.size_bytes)]
        # the algorithm is that of the route of its ports: iperf3's own option comes after the first data
        interval = interval_s(self._version, plan.size_bytes)
        command = ["iperf3", "-c", self._address, "-p", str(plan.port), "-J", "-i", interval]
        if plan.client_port is not None:
            command += ["--cport", str(plan.client_port)]
        if plan.pacing_bps is not None:
            command += ["--fq-rate", str(plan.pacing_bps)]
        command += rounds(self._version, plan.parallel)
        self._start("client", [*command, *amount, "-P", str(plan.parallel)])

    def _start(self, side: str, command: list[str]) -> None:
        pid = self._pids[side]
        if pid is None:
            return
        with entered(pid), open(self._files[side], "wb") as out:
            self._processes[side] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )

    def check_running(self) -> None:
        """Raise RunError where a side has ended with an error."""
        for side, process in self._processes.items():
            if process.poll() not in (None, 0):
                raise self._failure(side)

    def has_ended(self) -> bool:
        """Whether both sides have ended, well or not."""
        here = [side for side, pid in self._pids.items() if pid is not None]
        return all(side in self._processes and self._processes[side].poll() is not None for side in here)

    def wait(self, timeout_s: float) -> None:
        """Wait for both sides to end by themselves."""
        for side in ("client", "server"):
            if self._pids[side] is None:
                continue
            if side not in self._processes:
                raise RunError("flow", self.plan.name, "it was never started")
            try:
                self._processes[side].wait(timeout_s)
            except subprocess.TimeoutExpired as error:
                raise RunError("flow", self.plan.name, f"{self.program} {side} did not end in time") from error
            if self._processes[side].returncode or self._error_in(side):
                raise self._failure(side)
        self._check_algorithm()

    def _check_algorithm(self) -> None:
        """The sender's sockets must have had what its route says; iperf3 tells what they ended with."""
        result = self._result("client") if self._pids["client"] is not None else None
        used = (result or {}).get("end", {}).get("sender_tcp_congestion")
        if used is not None and used != self.plan.cca:
            raise RunError("flow", self.plan.name, f"it ran under {used} instead of {self.plan.cca}")

    def kill(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()

    def _result(self, side: str) -> dict[str, Any] | None:
        try:
            result = json.loads(self._files[side].read_text())
        except (OSError, ValueError):
            return None
        return result if isinstance(result, dict) else None

    def _error_in(self, side: str) -> str | None:
        result = self._result(side)
        if result is None:
            return "no result"
        error = result.get("error")
        return None if error is None else str(error)

    def _failure(self, side: str) -> RunError:
        code = self._processes[side].returncode
        ended = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        detail = self._error_in(side)
        if detail in (None, "no result"):
            detail = self._files[side].read_text(errors="replace")[-TAIL_CHARACTERS:].strip() or "it printed nothing"
        return RunError("flow", self.plan.name, f"{self.program} {side}: {ended}: {detail}")
