# SPDX-License-Identifier: Apache-2.0
"""Understand the guest's console: messages of the agent, and the kernel's panics, oopses and warnings."""

from __future__ import annotations

import contextlib
import re
from collections import deque
from dataclasses import dataclass, field

from plan.console import PREFIX

DISASTERS = re.compile(
    r"Kernel panic - not syncing|\bBUG: |\bOops\b|general protection fault|kernel BUG at|UBSAN: |"
    r"Out of memory: Killed process|Segfault with no mm|time-travel: time goes backwards"
)
KEEP = 15
BEFORE = 25
"""Lines before a disaster that belong to it: the registers, which say in which function it happened."""
KERNEL = re.compile(r"\[ *\d+\.\d+\] ")


@dataclass
class Console:
    """What has been seen so far. `disaster` holds the kernel's words around the first disaster."""

    built: bool = False
    done: bool = False
    virtual_s: float = 0.0
    errors: list[str] = field(default_factory=list)
    disaster: list[str] = field(default_factory=list)
    _latest: deque[str] = field(default_factory=lambda: deque(maxlen=BEFORE))

    def line(self, text: str) -> bool:
        """Take one line; True where it shows that the guest moves on."""
        if text.startswith(PREFIX):
            return self._message(text.removeprefix(PREFIX))
        if self.disaster:
            if len(self.disaster) < BEFORE + KEEP:
                self.disaster.append(text)
        elif DISASTERS.search(text):
            self.disaster += [*self._latest, text]
        elif KERNEL.match(text):
            self._latest.append(text)
        return False

    def _message(self, message: str) -> bool:
        word, _, rest = message.partition(" ")
        if word == "running":
            with contextlib.suppress(ValueError):
                self.virtual_s = float(rest)
        elif word == "built":
            self.built = True
        elif word == "done":
            self.done = True
        elif word == "error":
            self.errors = [*self.errors[-KEEP:], rest]
        return True
