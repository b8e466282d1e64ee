# SPDX-License-Identifier: Apache-2.0
"""Find the kernel build that belongs to this checkout."""

from __future__ import annotations

import json
import os
from pathlib import Path

from base.cache import used
from base.errors import WarpbedError
from hosts.virtual.launch import GuestKernel
from kernels import series as kernel_series
from kernels.build_key import find_build


def find(series: str) -> GuestKernel:
    """The build of a series (`default` for the default one) for the patches, config and modules as they are now.

    WARPBED_TEST_KERNEL names a build's folder to use instead. Raises WarpbedError where there is none yet.
    """
    if own := os.environ.get("WARPBED_TEST_KERNEL"):
        return load(Path(own).absolute())
    series = kernel_series.of(series)
    try:
        build = find_build(series)
    except WarpbedError as error:
        raise WarpbedError(f"kernel {series}: {error}") from error
    if build.path is None or not build.exists:
        raise WarpbedError(
            f"kernel {series} is not built for this checkout; ./warpbed build-kernels --series {series} builds it"
        )
    return load(Path(build.path))


def load(folder: Path) -> GuestKernel:
    """The build in a folder."""
    try:
        facts = json.loads((folder / "build.json").read_text())
    except (OSError, ValueError) as error:
        raise WarpbedError(f"{folder}: not a kernel build: {error}") from error
    used(folder)
    used((folder / "build").resolve().parent)
    return GuestKernel(folder / "linux", folder / "modules", facts["key"], facts["kernel_release"], facts)
