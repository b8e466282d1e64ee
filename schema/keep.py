# SPDX-License-Identifier: Apache-2.0
"""`captures.keep`: whether a run's captures and raw samples stay once they have been read."""

from __future__ import annotations

from base import quantities

ALWAYS, FAILED, NEVER, BUDGET = "always", "failed", "never", "budget"


def check(keep: str) -> None:
    """Raise ValueError for a rule that is none."""
    if keep not in (ALWAYS, FAILED, NEVER):
        _budget_bytes(keep)


def is_kept(keep: str | None, verdict: str, size_bytes: int) -> bool:
    """Whether files of so many bytes together stay; None: always. verdict: of the run."""
    if keep in (None, ALWAYS, NEVER):
        return keep != NEVER
    return verdict != "valid" if keep == FAILED else size_bytes <= _budget_bytes(str(keep))


def _budget_bytes(keep: str) -> int:
    word, _, size = keep.partition(" ")
    if word != BUDGET or not size:
        raise ValueError(f"{keep!r}: write always, failed, never, or a budget of each run such as budget 200MB")
    return quantities.size_bytes(size.strip())
