# SPDX-License-Identifier: Apache-2.0
"""The cases by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.faults.cases import Broken, Case, Collect, Run, Transfer, Unsynced
from tests.faults.reproducing import Reproduce
from tests.faults.storing import StoreLoad

CASES: dict[str, Callable[[Path], Case]] = {
    "transfer": Transfer,
    "collect": Collect,
    "run": Run,
    "reproduce": Reproduce,
    "store load": StoreLoad,
    "broken": Broken,
    "unsynced": Unsynced,
}
COMMANDS = ("transfer", "collect", "run", "reproduce", "store load")
"""Those that are the project's own; the others have a defect that has to be found."""
ON_SOCKETS = frozenset({"store load"})
"""Cases whose messages to others are calls that can fail, too."""
