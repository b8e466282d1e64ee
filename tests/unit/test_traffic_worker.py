# SPDX-License-Identifier: Apache-2.0
"""The traffic's programs as hosts without the agent start them: over standard input and output, on the real clock."""

from __future__ import annotations

import dataclasses
import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from plan.model import TrafficPlan
from tests import lab

PYTHON = "/usr/bin/python3"
ADDRESSES = {"a": "127.0.0.1", "b": "127.0.0.1"}


@contextmanager
def worker(plan: TrafficPlan) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [PYTHON, "-m", "agent.traffic.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=lab.ROOT,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps({"traffic": dataclasses.asdict(plan), "addresses": ADDRESSES}) + "\n")
    process.stdin.flush()
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def start(*processes: subprocess.Popen[str]) -> None:
    when = time.time_ns() + 100_000_000
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"at {when}\n")
        process.stdin.flush()


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Close its standard input, which ends a server, and read what it tells."""
    out, errors = process.communicate(timeout=30)
    assert not errors, errors
    last: dict[str, Any] = json.loads(out.splitlines()[-1])
    return last


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def test_transfers_between_two_workers() -> None:
    port = free_port()
    transfers = [{"number": i, "start_s": 0.01 * i, "to": "b", "size_bytes": 100_000 + i} for i in range(20)]
    client_plan = TrafficPlan(
        "t", "transfers", "client", "a", port, {"cca": "reno", "end_s": 20.0, "transfers": transfers}
    )
    with worker(TrafficPlan("t", "transfers", "server", "b", port)) as server, worker(client_plan) as client:
        ready(server)
        ready(client)
        start(server, client)
        assert client.stdout is not None
        sent = json.loads(client.stdout.readline())
        sink = result(server)
    assert sent["error"] is None
    assert [transfer["delivered_bytes"] for transfer in sent["transfers"]] == [100_000 + i for i in range(20)]
    assert all(transfer["completion_s"] > 0 for transfer in sent["transfers"])
    assert sink["bytes"] == sum(100_000 + i for i in range(20))


def test_a_port_that_is_taken_is_reported() -> None:
    with socket.create_server(("", 0)) as taken:
        with worker(TrafficPlan("t", "transfers", "server", "b", taken.getsockname()[1])) as process:
            answer = result(process)
            assert "Address already in use" in answer["error"] and process.returncode == 1


def test_a_transfer_that_nobody_accepts_is_a_failed_one() -> None:
    settings = {"cca": "reno", "end_s": 5.0, "transfers": [{"number": 0, "start_s": 0.0, "to": "b", "size_bytes": 1}]}
    with worker(TrafficPlan("t", "transfers", "client", "a", free_port(), settings)) as client:
        ready(client)
        start(client)
        assert client.stdout is not None
        (transfer,) = json.loads(client.stdout.readline())["transfers"]
    assert transfer["error"] == "Connection refused" and transfer["completion_s"] is None


def test_an_unknown_algorithm_is_reported() -> None:
    settings = {
        "cca": "nonesuch",
        "end_s": 5.0,
        "transfers": [{"number": 0, "start_s": 0.0, "to": "b", "size_bytes": 1}],
    }
    with worker(TrafficPlan("t", "transfers", "client", "a", free_port(), settings)) as client:
        ready(client)
        start(client)
        assert client.stdout is not None
        assert "No such file" in json.loads(client.stdout.readline())["error"]


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_worker_ends_with_who_started_it(side: str) -> None:
    settings = {"cca": "reno", "end_s": 60.0, "transfers": [{"number": 0, "start_s": 50.0, "to": "b", "size_bytes": 1}]}
    with worker(TrafficPlan("t", "transfers", side, "a", free_port(), settings)) as process:
        ready(process)
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        process.wait(timeout=10)
