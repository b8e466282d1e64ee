# SPDX-License-Identifier: Apache-2.0
"""A flow of an exact size by agent.filetransfer: one process per side in its node's namespace."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from agent import filetransfer
from agent.errors import RunError
from agent.flows import Iperf3Flow
from agent.namespaces import entered
from plan.model import FlowPlan

SILENCE_S = 600.0


class FileFlow(Iperf3Flow):
    """As an iperf3 flow: a server first, then a client, results in <flow>.server.json and <flow>.client.json."""

    program = "the transfer's"

    def __init__(
        self,
        plan: FlowPlan,
        source_pid: int | None,
        destination_pid: int | None,
        address: str,
        out_dir: Path,
        source_address: str,
    ) -> None:
        super().__init__(plan, source_pid, destination_pid, address, out_dir)
        self._own = source_address
        self._key = hashlib.sha256(plan.name.encode()).hexdigest()

    def start_server(self) -> None:
        self._run("server", "receive", {"own": self._address, "peer": self._own})

    def start_client(self) -> None:
        plan = self.plan
        request = {
            "own": self._own,
            "peer": self._address,
            "cca": plan.cca,
            "size": plan.size_bytes,
            "pacing_bps": plan.pacing_bps,
            "own_port": plan.client_port or 0,
        }
        self._run("client", "send", request)

    def _run(self, side: str, verb: str, request: Mapping[str, object]) -> None:
        pid = self._pids[side]
        if pid is None:
            return
        body = json.dumps({**request, "port": self.plan.port, "key": self._key, "silence_s": SILENCE_S}).encode()
        command = [sys.executable, "-B", "-I", "-S", str(Path(filetransfer.__file__)), verb]
        with entered(pid), open(self._files[side], "wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT)
        assert process.stdin is not None
        process.stdin.write(body)
        process.stdin.close()
        self._processes[side] = process

    def wait(self, timeout_s: float) -> None:
        if self.plan.size_bytes is None:
            raise RunError("flow", self.plan.name, "a transfer needs a size")
        super().wait(timeout_s)
