# SPDX-License-Identifier: Apache-2.0
"""Keep what another simulator has printed, by its script and the script's arguments, so that no run is asked for twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from analysis.models import simulator
from base.cache import digest, sha256_of
from base.files import replace_text

Ask = Callable[..., Sequence[float]]
"""A script and its arguments → the numbers that the simulator prints."""


def digest_of(script: Path, read: Sequence[Path]) -> str:
    """Of a script with those that it reads."""
    return digest([sha256_of(file) for file in (script, *read)]) if read else sha256_of(script)


class Recorder:
    """Asks the simulator for what the record has not, and adds it; what a changed script has printed goes.

    scripts: each with the scripts that it reads
    """

    def __init__(self, file: Path, scripts: Mapping[Path, Sequence[Path]], ask: Ask) -> None:
        self.file, self._ask, self._lock = file, ask, threading.Lock()
        before = json.loads(file.read_text()) if file.exists() else {}
        self.scripts = {
            script.name: {"digest": own, "runs": known["runs"] if known.get("digest") == own else {}}
            for script, read in scripts.items()
            for own, known in [(digest_of(script, read), before.get(script.name, {}))]
        }

    def __call__(self, script: Path, *arguments: float | str) -> Sequence[float]:
        runs = self.scripts[script.name]["runs"]
        key = simulator.key(*arguments)
        if key not in runs:
            numbers = list(self._ask(script, *arguments))
            with self._lock:
                runs[key] = numbers
                replace_text(self.file, json.dumps(self.scripts, indent=1, sort_keys=True) + "\n")
        known: Sequence[float] = runs[key]
        return known
