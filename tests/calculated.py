# SPDX-License-Identifier: Apache-2.0
"""What the theses' models calculate, remembered by the code and the data that they are made of: half a minute of computing.

WARPBED_FRESH_GUESTS=1 calculates again.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Mapping
from pathlib import PurePath

from analysis.models import REGISTRY
from analysis.models.checks import Check
from base.cache import recall, remember, sha256_of
from base.layers import PACKAGES
from base.paths import cache_dir
from schema.catalogue import Entry
from tests.kept_results import FRESH
from tests.remembered import LOCK, contents

CODE = frozenset(PACKAGES[: PACKAGES.index("analysis") + 1])
"""Packages that a calculation can import a module of: those at or below its own layer, which tests/unit/test_layers.py holds."""
DATA = CODE | {"experiments", "hosts"}


def is_read(file: PurePath) -> bool:
    """Whether a calculation may read a file of the checkout: a module, a catalogue, or a table of constants."""
    place = file.parts[0]
    return (file.suffix == ".py" and place in CODE) or (file.suffix in {".json", ".yaml"} and place in DATA)


def calculated(entries: Mapping[str, Entry]) -> dict[str, list[Check]]:
    """The checks of each entry that a calculation decides, as they come back from JSON. entries: by their names"""
    question = ["calculations", sys.version, sha256_of(LOCK), contents(is_read)]
    known = None if os.environ.get(FRESH) else recall(cache_dir(), question)
    if known is None:
        checks = {name: [dataclasses.asdict(one) for one in decide(entries[name])] for name, decide in REGISTRY.items()}
        known = json.loads(json.dumps(checks))
        remember(cache_dir(), question, known)
    return {name: [Check(**check) for check in checks] for name, checks in known.items()}
