# SPDX-License-Identifier: Apache-2.0
"""`--only`: choose runs by their parameters."""

from __future__ import annotations

import re

from base.errors import UsageError
from base.nearest import nearest
from testbed.runs import PlannedRun

BETWEEN = re.compile(r",(?![^()]*\))")
"""A comma, but for those within parentheses: `life=pareto(100s, 1.35)` is one choice."""


def select(runs: list[PlannedRun], expression: str) -> list[PlannedRun]:
    """Runs that match every `name=value|value` or `name!=value` of a comma-separated expression; `seed` is a name too.

    Raises UsageError for unknown names and for values that no run has.
    """
    chosen = runs
    for part in filter(None, (text.strip() for text in BETWEEN.split(expression))):
        name, sign, values = part.partition("=")
        if not sign:
            raise UsageError(f"--only {part}: write name=value, name=value|value or name!=value")
        negated = name.endswith("!")
        name = name.removesuffix("!").strip()
        known = {*runs[0].params, "seed"} if runs else {"seed"}
        if name not in known:
            raise UsageError(f"--only {part}: no parameter {name!r}; {nearest(name, known)}")
        allowed = {value.strip() for value in values.split("|")}
        present = {_value(run, name) for run in runs}
        if not allowed <= present:
            missing = sorted(allowed - present)
            raise UsageError(f"--only {part}: no run has {name} {', '.join(missing)}; {nearest(missing[0], present)}")
        chosen = [run for run in chosen if (_value(run, name) in allowed) != negated]
    return chosen


def _value(run: PlannedRun, name: str) -> str:
    return str(run.seed if name == "seed" else run.params[name])
