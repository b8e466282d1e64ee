# SPDX-License-Identifier: Apache-2.0
"""Find the kernel and the root image of virtual machines that belong to this checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.errors import WarpbedError
from base.paths import ROOT
from hosts.vm import qemu
from kernels import series as kernel_series


@dataclass(frozen=True)
class Builds:
    """What machines boot: the kernel build's folder, the image's, and their descriptions."""

    kernel: Path
    image: Path
    kernel_facts: dict[str, Any]
    image_facts: dict[str, Any]

    @property
    def key(self) -> str:
        return f"{self.kernel_facts['key']}-{self.image_facts['key']}"

    @property
    def config(self) -> dict[str, str]:
        """The kernel's configuration: option → value, for those that are set."""
        lines = (self.kernel / "config").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if line.startswith("CONFIG_") and "=" in line)

    def module(self, name: str) -> Path:
        return self.kernel / "modules" / f"{name}.ko"

    def problems(self, environment: dict[str, Any]) -> list[str]:
        """Where the kernel that ran, as the agent recorded it, is not the one that was built."""
        kernel = environment.get("kernel", {})
        wrong = []
        if kernel.get("release") != self.kernel_facts["kernel_release"]:
            wrong.append(f"kernel {kernel.get('release')} ran, {self.kernel_facts['kernel_release']} was built")
        built = {module["name"]: module["srcversion"] for module in self.kernel_facts["modules"]}
        for name, version in kernel.get("srcversions", {}).items():
            if name in built and version != built[name]:
                wrong.append(f"module {name} has srcversion {version}, {built[name]} was built")
        return wrong


def find(series: str) -> Builds:
    """The builds for a series (`default` for the default one); raises WarpbedError where they are not there yet.

    WARPBED_TEST_X86_KERNEL names a kernel build's folder to use instead.
    """
    if not qemu.version():
        raise WarpbedError("QEMU is not installed. As root: apt-get install --no-install-recommends qemu-system-x86")
    series = kernel_series.of(series)
    own = os.environ.get("WARPBED_TEST_X86_KERNEL")
    kernel = Path(own).absolute() if own else _ask("kernels.build_key", "--series", series, "--arch", "x86")
    image = _ask("hosts.vm.image", "--key")
    return Builds(kernel, image, _read(kernel / "build.json"), _read(image / "image.json"))


def _ask(module: str, *arguments: str) -> Path:
    completed = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, cwd=ROOT)
    if completed.returncode:
        raise WarpbedError(f"virtual machines: {completed.stderr.strip()}")
    facts = json.loads(completed.stdout)
    if not facts["exists"]:
        raise WarpbedError(
            "the kernel or the root image of virtual machines is not built for this checkout; ./warpbed run builds both, "
            "or ansible-playbook playbooks/build_machines.yml"
        )
    return Path(facts["path"])


def _read(file: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise WarpbedError(f"{file}: not a build: {error}") from error
    return facts
