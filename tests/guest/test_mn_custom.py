# SPDX-License-Identifier: Apache-2.0
"""The topologies are plain Mininet ones: `mn --custom` starts them and its tests work in their nodes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import topologies
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
    line = [
        str(kernel.linux),
        "mem=512M",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        "init=/usr/bin/python3",
        "time-travel=inf-cpu",
        "time-travel-start=1",
        "um_seed=1",
        "con=null",
        "con0=null,fd:1",
        "con1=null",
        "loglevel=4",
        "uml_dir=/dev/shm",
        "umid=mn",
        *(["seccomp=on"] if kernel.has_seccomp else []),
        f"WB_SOURCE={lab.ROOT}",
        f"WB_OUT={tmp_path}",
        f"WB_MODULES={kernel.modules}",
        f"WB_TOPOLOGY={name}",
        f"WB_PARAMETERS={SMALLER.get(name, '')}",
        f"WB_TEST={'pingpair' if name in PAIR_ONLY else 'pingall'}",
        "--",
        "-B",
        "-P",
        str(lab.ROOT / "tests/guest_mn.py"),
    ]
    cage = ["/usr/bin/python3", "-I", str(lab.ROOT / "hosts/virtual/cage.py"), "0", str(tmp_path)]
    done = subprocess.run(
        [*cage, *line],
        capture_output=True,
        text=True,
        timeout=100,
        stdin=subprocess.DEVNULL,
        check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": "/dev/shm"},
    )
    assert "Results: 0% dropped" in done.stdout, done.stdout + done.stderr
