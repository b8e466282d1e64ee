# SPDX-License-Identifier: Apache-2.0
"""A guest sees the pinned user land and nothing of this machine's."""

from __future__ import annotations

from pathlib import Path

from hosts.virtual import pinned
from hosts.virtual.launch import GuestKernel
from tests import lab
from tests.guest_programs import said


def test_a_guest_has_the_programs_that_the_lock_names_and_no_others(kernel: GuestKernel, tmp_path: Path) -> None:
    root = pinned.root()
    assert root is not None
    sees = said(kernel, root, tmp_path, "guest_root.py", "sees")
    versions = pinned.versions(root)
    assert versions["iperf3"].startswith(f"{sees['iperf3']}-") and versions["python3.11-minimal"].startswith(
        f"{sees['python']}-"
    )
    assert set(sees["folders"]) == {place.name for place in root.iterdir()}


def test_a_run_records_the_user_land_that_it_had(small: Path) -> None:
    (run,) = lab.runs(small)
    names = {package.name: package.version for package in pinned.pinned()}
    assert run["inputs"]["userland"] == {name: names[name] for name in run["inputs"]["userland"]}
    assert {"iperf3", "libc6", "python3.11-minimal"} <= run["inputs"]["userland"].keys()
