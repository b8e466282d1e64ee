# SPDX-License-Identifier: Apache-2.0
"""A guest sees the pinned user land and nothing of this machine's."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from hosts.virtual import boot, pinned
from hosts.virtual.launch import GuestKernel
from plan.console import PREFIX
from tests import lab


def test_a_guest_has_the_programs_that_the_lock_names_and_no_others(kernel: GuestKernel, tmp_path: Path) -> None:
    root = pinned.root()
    assert root is not None
    line = boot.arguments(
        kernel, 256, boot.SYSTEM_PYTHON, "loglevel=4", *boot.shares(kernel, tmp_path),
        *boot.python(lab.ROOT / "tests/guest_root.py", root=root), start_ns=1, root=root,
    )  # fmt: skip
    done = subprocess.run(
        boot.caged(min(os.sched_getaffinity(0)), tmp_path, line, boot.places(kernel, root)),
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=boot.environment(), timeout=200,
    )  # fmt: skip
    (seen,) = [text for text in done.stdout.splitlines() if text.startswith(f"{PREFIX}sees ")] or [
        done.stdout + done.stderr
    ]
    sees = json.loads(seen.removeprefix(f"{PREFIX}sees "))
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
