# SPDX-License-Identifier: Apache-2.0
"""The series of Linux that are built, from kernels/series.json, which the playbooks read too: a new series is one line there.

suite: the Debian suite that has the series; the same on every machine, so that Debian 12 and 13 build the same kernel
version, sha256: the package that the project's results were made with; it is taken while the archive has it, and no other
    file may bear its name
is_default: the series that `kernel: default` means. kernels/README.md has the measurements: the guest of 7.2 is about twice
    as fast as that of 6.12, the LTS.
"""

from __future__ import annotations

import json
from typing import Any

from base.paths import ROOT

_SERIES: dict[str, dict[str, Any]] = json.loads((ROOT / "kernels/series.json").read_text())
NAMES = tuple(_SERIES)
HOME_SUITE: dict[str, str] = {name: entry["suite"] for name, entry in _SERIES.items()}
PINNED: dict[str, tuple[str, str]] = {name: (entry["version"], entry["sha256"]) for name, entry in _SERIES.items()}
"""series → version and SHA-256 of the package"""
(DEFAULT,) = (name for name, entry in _SERIES.items() if entry.get("is_default"))
EXAMPLES = f"{', '.join(NAMES[:-1])} or {NAMES[-1]}"


def of(name: str) -> str:
    """The series that a name means: `default` is the default one, others mean themselves."""
    return DEFAULT if name == "default" else name
