# SPDX-License-Identifier: Apache-2.0
"""What attempts have left at the ends: which of it nobody will ask for again, and which is still to be fetched.

An attempt is over when the journal says that it failed or was given up before it had begun, or when its run is here. Its
files go at once, but for a crash between the two or an end that cannot be reached just then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from base.errors import WarpbedError
from testbed.campaign import remote
from testbed.campaign.ends import End
from testbed.results import Results

Events = Sequence[Mapping[str, Any]]


def begun(events: Events) -> set[str]:
    """Ids of this campaign's attempts; an end may have another's, too."""
    return _ids(_attempts(events, "started"))


def over(events: Events, results: Results) -> set[str]:
    """Ids of attempts of which nothing at an end is needed any more."""
    started, ended = _attempts(events, "started"), _attempts(events, "failed", "abandoned")
    return _ids(started & ended) | _ids({one for one in started if results.is_complete(one[0])})


def kept(events: Events, results: Results) -> set[str]:
    """Ids of attempts that were measured and could not be fetched yet."""
    return _ids(_attempts(events, "kept")) - over(events, results)


def not_noted(events: Events, results: Results) -> dict[str, int]:
    """Transfers whose run is here and that the journal does not call done, with their bytes."""
    done = {e["transfer"] for e in events if e["event"] == "done"}
    return {
        e["transfer"]: e["bytes"]
        for e in events
        if e["event"] == "started" and e["transfer"] not in done and results.is_complete(e["transfer"])
    }


def clear(ends: Mapping[str, End], attempts: set[str]) -> Iterator[str]:
    """Remove attempts wherever their files are; yields what could not be asked or removed."""
    for name, end in ends.items():
        try:
            there = remote.ask(name, end, "list")["transfers"]
            for attempt in sorted(attempts.intersection(there)):
                remote.ask(name, end, "remove", id=attempt)
        except WarpbedError as error:
            yield str(error)
        except Exception as error:  # noqa: BLE001 — its answer may be anything
            yield f"{name}: answers what no agent of ours does ({type(error).__name__}: {error})"


def _attempts(events: Events, *kinds: str) -> set[tuple[str, int]]:
    return {(e["transfer"], e["attempt"]) for e in events if e["event"] in kinds}


def _ids(attempts: set[tuple[str, int]]) -> set[str]:
    return {f"{transfer}.a{number}" for transfer, number in attempts}
