# SPDX-License-Identifier: Apache-2.0
"""What of a guest's user land decides its packets: the programs that run in it, by their packages' versions.

Which other packages there are, and how long a guest takes to boot with them, decides nothing (agent.beginning).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from base.cache import digest
from base.paths import ROOT, SENT_PACKAGES
from hosts.virtual import pinned
from hosts.virtual.boot import SYSTEM_PYTHON

STATUS = Path("/var/lib/dpkg/status")
PACKAGES = ("iperf3", "iproute2", "kmod", "libc6", "libiperf0", "libpcap0.8", "mininet", "nginx", "tcpdump")
TRANSITION = "t64"
"""Debian 13 calls libraries so whose time_t has changed on other architectures."""


def userland() -> Mapping[str, str]:
    """Package → version, of those whose programs take part in runs; without those that are not installed.

    Raises WarpbedError where the guests' own user land is wanted and not there.
    """
    root = pinned.root()
    if root is None:
        return installed()
    python = (root / "usr/bin/python3").readlink().name
    wanted = {*PACKAGES, f"{python}-minimal"}
    return {name: version for name, version in sorted(pinned.versions(root).items()) if name in wanted}


@functools.cache
def installed() -> Mapping[str, str]:
    """The same of this machine."""
    try:
        text = STATUS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return versions(text, f"{Path(SYSTEM_PYTHON).resolve().name}-minimal")


def versions(status: str, *more: str) -> dict[str, str]:
    """Versions of the packages above and of more, from the text of dpkg's status file."""
    wanted, installed = {*PACKAGES, *more}, dict[str, str]()
    for paragraph in status.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        name = fields.get("Package", "").removesuffix(TRANSITION)
        if name in wanted and fields.get("Status", "").endswith(" installed"):
            installed[name] = fields.get("Version", "")
    return dict(sorted(installed.items()))


@functools.cache
def agent_digest() -> str:
    """Identifies the project's own programs in the guest."""
    files = sorted(file for package in SENT_PACKAGES for file in (ROOT / package).rglob("*.py"))
    return digest([[str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")] for file in files])[:20]
