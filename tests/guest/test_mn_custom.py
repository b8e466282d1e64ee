# SPDX-License-Identifier: Apache-2.0
"""The topologies are plain Mininet ones: `mn --custom` starts them and its tests work in their nodes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import topologies
from hosts.virtual import boot
from hosts.virtual.launch import GuestKernel
from tests import lab

SMALLER = {
    "parking_lot": "routers=3,cross=1",
    "star": "clients=2,cross=1",
    "two_stage": "fast=1,slow=1",
    "satellite": "loss=0%",
    "wan": "path=nctu-nctu",
    "transit_stub": "nodes=25",
}
"""Every pair of nodes is two processes of ping: fewer nodes say as much."""
PAIR_ONLY = {"transit_stub"}


@pytest.mark.parametrize("name", topologies.names())
def test_plain_mn_starts_it_and_pings_through_it(kernel: GuestKernel, tmp_path: Path, name: str) -> None:
    line = boot.arguments(
        kernel,
        512,
        boot.SYSTEM_PYTHON,
        "loglevel=4",
        *boot.shares(kernel, tmp_path),
        f"WARPBED_TOPOLOGY={name}",
        f"WARPBED_PARAMETERS={SMALLER.get(name, '')}",
        f"WARPBED_TEST={'pingpair' if name in PAIR_ONLY else 'pingall'}",
        *boot.python(lab.ROOT / "tests/guest_mn.py"),
        start_ns=1,
    )
    done = subprocess.run(
        boot.caged(0, tmp_path, line, boot.places(kernel)),
        capture_output=True,
        text=True,
        timeout=100,
        stdin=subprocess.DEVNULL,
        check=False,
        env=boot.ENVIRONMENT,
    )
    assert "Results: 0% dropped" in done.stdout, done.stdout + done.stderr
