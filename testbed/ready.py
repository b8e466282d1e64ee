# SPDX-License-Identifier: Apache-2.0
"""Whether the play of `./warpbed run` would change nothing but the results: then it is left out, and with it Ansible's seconds.

Asked is what the roles `bootstrap`, `collector_build` and `kernel_build` ask. Any doubt is a no, and the play says what is missing.
"""

from __future__ import annotations

import subprocess

from ruamel.yaml import YAML

from base.errors import WarpbedError
from base.paths import ROOT
from collectors import native
from hosts.per_kernel import RunHosts, open_hosts
from hosts.registry import Kind
from testbed.experiments import Prepared

PACKAGES = ROOT / "playbooks/roles/bootstrap/defaults/main.yml"


def ready_hosts(kind: Kind, prepared: Prepared) -> RunHosts | None:
    """The hosts of an experiment's runs where all is there that a play makes for the virtual one; None where the play is needed."""
    if kind.builds != "um" or kind.prepares or not native.is_built() or missing_packages(run_packages()):
        return None
    try:
        return open_hosts(kind, prepared.experiment, (run.experiment for run in prepared.runs))
    except WarpbedError:
        return None


def run_packages() -> list[str]:
    """The Debian packages of a run, as the role lists them."""
    packages: list[str] = YAML(typ="safe").load(PACKAGES.read_text())["bootstrap_run_packages"]
    return packages


def missing_packages(wanted: list[str]) -> list[str]:
    """Those that are not installed; all of them where there is no dpkg."""
    question = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package}\\n", *wanted]
    try:
        lines = subprocess.run(question, capture_output=True, text=True).stdout.splitlines()
    except OSError:
        return wanted
    installed = {line.partition(" ")[2] for line in lines if line.startswith("installed ")}
    return [name for name in wanted if name not in installed]
