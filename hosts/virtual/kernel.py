# SPDX-License-Identifier: Apache-2.0
"""Find the kernel build that belongs to this checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from base.cache import used
from base.errors import WarpbedError
from base.paths import ROOT
from hosts.virtual.launch import GuestKernel
from kernels import series as kernel_series


def find(series: str) -> GuestKernel:
    """The build of a series (`default` for the default one) for the patches, config and modules as they are now.

    WARPBED_TEST_KERNEL names a build's folder to use instead. Raises WarpbedError where there is none yet.
    """
    if own := os.environ.get("WARPBED_TEST_KERNEL"):
        return load(Path(own).absolute())
    series = kernel_series.of(series)
    done = subprocess.run(
        [sys.executable, "-m", "kernels.build_key", "--series", series], capture_output=True, text=True, cwd=ROOT
    )
    if done.returncode:
        raise WarpbedError(f"kernel {series}: {done.stderr.strip()}")
    facts = json.loads(done.stdout)
    if not facts["exists"]:
        raise WarpbedError(
            f"kernel {series} is not built for this checkout; ./warpbed build-kernels --series {series} builds it"
        )
    return load(Path(facts["path"]))


def load(folder: Path) -> GuestKernel:
    """The build in a folder."""
    try:
        facts = json.loads((folder / "build.json").read_text())
    except (OSError, ValueError) as error:
        raise WarpbedError(f"{folder}: not a kernel build: {error}") from error
    used(folder)
    used((folder / "build").resolve().parent)
    return GuestKernel(folder / "linux", folder / "modules", facts["key"], facts["kernel_release"], facts)
