# SPDX-License-Identifier: Apache-2.0
"""Verdict rules for a transfer between real hosts: they concern its ends only, since the path is not emulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def service_reasons(confined: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Where the service that the peer's packets reach lacked some of what keeps it from its host (agent.confined)."""
    for side, had in sorted(confined.items()):
        lacks = [
            what
            for what, is_there in (
                ("a user of its own", had.get("uid") != 0),
                ("a bar to capabilities", had.get("capabilities") == 0 and had.get("no_new_privs") is True),
                ("a read-only world of its own", had.get("read_only") is True),
            )
            if not is_there
        ]
        if lacks:
            yield f"the {side}'s service ran without {', '.join(lacks)}; its host may forbid mounts, as containers do"


def clock_reasons(circumstances: Mapping[str, Any]) -> Iterator[str]:
    """Where an end's clock differs by more than the campaign allows from the controlling host's (docs/wan.md).

    The ends answer within the time that asking takes, so half of that belongs to no clock and counts for the end.
    """
    limit_s = float(circumstances["clock_limit_s"])
    for side, seen in sorted(circumstances["home_clock"].items()):
        if abs(seen["offset_s"]) - seen["bound_s"] > limit_s:
            yield f"the {side}'s clock is {seen['offset_s']:+.3f} s off this host's (at most {limit_s:g} s)"
        clock = circumstances["ends"][side]["clock"]
        if clock["source"] is not None and abs(clock["offset_s"]) > limit_s:
            yield f"the {side}'s clock is {clock['offset_s']:+.3f} s off, says its chrony (at most {limit_s:g} s)"
