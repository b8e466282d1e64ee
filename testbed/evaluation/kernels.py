# SPDX-License-Identifier: Apache-2.0
"""The kernel of an evaluation: a series that files can name, or a tree, a tarball or a build of the user's own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from base.errors import UsageError, WarpbedError
from base.paths import ROOT
from kernels import series
from kernels.build_key import find_build

BUILD = "WARPBED_TEST_KERNEL"
"""Names a build's folder, which then stands for every series."""
FACTS = "build.json"


def is_series(name: str) -> bool:
    """Whether a file can name it. Raises UsageError for what is neither that nor a place."""
    if name == "default" or name in series.NAMES:
        return True
    if not Path(name).exists():
        raise UsageError(
            f"--kernel {name}: neither a series ({', '.join(series.NAMES)}) nor a kernel's tree, tarball or build; name one of them"
        )
    return False


def build_of(place: Path, run: Callable[..., subprocess.CompletedProcess[Any]] = subprocess.run) -> Path:
    """The folder of a build: `place` itself, or what `./warpbed build-kernels --source` makes of it.

    Raises WarpbedError where it does not build; the command has said why.
    """
    if (place / FACTS).is_file():
        return place.resolve()
    source = str(place.resolve())
    if run(["./warpbed", "build-kernels", "--source", source], cwd=ROOT, env=plain(), check=False).returncode:
        raise WarpbedError(f"--kernel {place}: it does not build")
    found = find_build(source)
    if found.path is None or not found.exists:
        raise WarpbedError(f"--kernel {place}: its build is not in the cache; has the tree changed meanwhile?")
    return Path(found.path)


def facts_of(build: Path) -> dict[str, Any]:
    """What a build says of itself; raises UsageError where it says nothing."""
    try:
        facts: dict[str, Any] = json.loads((build / FACTS).read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"--kernel {build}: not a kernel's build: {error}") from error
    if facts.get("arch") != "um":
        raise UsageError(
            f"--kernel {build}: a build for {facts.get('arch')}; evaluations run on the virtual host, which takes um"
        )
    return facts


def words(name: str) -> str:
    """What a report calls the kernel."""
    if own := os.environ.get(BUILD):
        facts = facts_of(Path(own))
        return f"{facts['kernel_release']} (build {facts['key']})"
    return series.of(name)


def plain() -> Mapping[str, str]:
    """This environment, without what makes `./warpbed` another checkout's."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
