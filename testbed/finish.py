# SPDX-License-Identifier: Apache-2.0
"""Raw files → records, metrics and verdict of one run folder; can be done again at any time.

python -m testbed.finish FOLDER [--fetched]    of a run that has just been made here, or by others (testbed.collecting)
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis import integrity, metrics
from analysis.arrays import without_pandas
from analysis.errors import AnalysisError
from analysis.records import MOST_KEPT
from analysis.verdict import Evidence, judge
from base import quantities, screen
from base.errors import UsageError, WarpbedError
from base.files import exchange_folders, folder_aside, replace_text, sync_folder, sync_tree
from base.small_files import read_small, small_json, small_text
from base.text import clean
from collectors import pcap
from collectors.collect import collect
from collectors.errors import CollectError
from collectors.wire import INTERVAL_S
from plan.model import Plan, from_json
from testbed import captures
from testbed.packets import SAME_PACKETS, packets_of
from testbed.picture import bottleneck
from testbed.results import read_run

IMPORTED_LATER = ("collectors.reading", "numpy.ma", "pyarrow.dataset")
MOST_INTERVALS = MOST_KEPT
"""A plan that asks for more was not made here."""
MOST_CONSOLE_BYTES = 1 << 28
"""A kernel that complains of every packet for minutes."""


def finish(folder: Path, is_new: bool = False) -> None:
    """Make the records of a run and put metrics and verdict into its run.json.

    is_new: the run has just been made here, and its captures go where the experiment file does not keep them

    The new records replace the old ones only when all of them are there. Raises CollectError, AnalysisError, UsageError.
    """
    try:
        _finish(folder, is_new)
    except (LookupError, StopIteration, TypeError, AttributeError, ValueError, ArithmeticError, RuntimeError) as error:
        if is_new:  # what was written here a moment ago is right, so this is a defect, to be told as one
            raise
        raise UsageError(
            f"{folder}: its raw files hold what no run writes ({clean(f'{type(error).__name__}: {error}')}); were they changed? "
            "They cannot be collected again"
        ) from error


def _finish(folder: Path, is_new: bool) -> None:
    document = read_run(folder / "run.json")
    captures.require(document, folder)
    if wrong := integrity.problems(folder, document, ["raw"]):
        remedy = f"put it back, or remove {integrity.KEY} from run.json if the change is meant"
        raise UsageError(integrity.said(folder, wrong, remedy))
    try:
        integrity.require_plain(folder, ["raw"])
    except OSError as error:
        raise UsageError(str(error)) from error
    try:
        plan = from_json(small_text(folder / "raw/plan.json"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{folder / 'raw/plan.json'}: {error!r}; without a plan that this Warpbed reads the run cannot be collected again"
        ) from error
    try:
        facts = small_json(folder / "raw/guest.json")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{folder / 'raw/guest.json'}: {error}; without it the run cannot be collected again"
        ) from error
    intervals = plan.duration_s / INTERVAL_S * sum(flow.parallel for flow in plan.flows)
    if not 0 <= intervals <= MOST_INTERVALS:  # nor is it no number
        raise UsageError(
            f"{folder / 'raw/plan.json'}: {plan.duration_s:g} s of its flows are {intervals:.3g} intervals, "
            f"at most {MOST_INTERVALS:.0e} fit in memory; no run of this Warpbed is so long: the file was changed"
        )
    with folder_aside(folder, "records") as fresh:
        with captures.readable(folder, document) as readable:
            collected = collect(readable, fresh, plan, facts)
        if (folder / "records").is_dir():
            sync_tree(fresh)
            exchange_folders(fresh, folder / "records")  # at no moment is the run without records
            sync_folder(folder)  # before the old ones go
        else:
            fresh.rename(folder / "records")
    document["clocks"] = collected.clocks
    document["sources"] = collected.sources
    document["metrics"] = metrics.compute(folder, context(plan, document["spec"]) | {"sources": collected.sources})
    console = read_small(folder / "raw/console.log", MOST_CONSOLE_BYTES).decode(errors="replace")
    document["verdict"] = judge(
        Evidence(plan, facts, folder / "records", console, tuple(map(str, collected.damage)), tuple(collected.clocks))
    )
    wanted = document["spec"]["captures"] if is_new else {}  # what has been kept once stays as it lies
    rule = captures.Rule(wanted.get("keep"), bool(wanted.get("compress")))
    raw = integrity.digests(folder, ["raw"])
    if is_new and document["host"] == SAME_PACKETS:
        document["packets"] = packets_of(raw)
    document[captures.KEY] = captures.settle(
        folder, rule, document["verdict"]["value"], collected.packets, raw, document
    )
    there = {name: digest for name, digest in raw.items() if os.path.lexists(folder / name)}
    stored = [entry["stored"] for entry in document[captures.KEY] if "stored" in entry]
    there |= {name: integrity.digest(folder / name) for name in stored if name not in there}
    document[integrity.KEY] = dict(sorted(there.items())) | integrity.digests(folder, ["records"])
    replace_text(folder / "run.json", json.dumps(document, indent=1) + "\n")


def context(plan: Plan, spec: dict[str, Any]) -> dict[str, Any]:
    """What the metrics need to know besides the records."""
    warmup_s = quantities.seconds(spec["warmup"])
    return {
        "duration_s": plan.duration_s,
        "warmup_s": warmup_s,
        "bottleneck": bottleneck(plan, warmup_s),
        "changes_s": _changes_s(plan),
    }


def _changes_s(plan: Plan) -> list[float]:
    """When traffic of a constant rate begins and ends: the bandwidth that is left for the flows changes."""
    constant = (part.settings for part in plan.traffic if part.kind == "cbr" and part.side == "client")
    return sorted({edge for settings in constant for period in settings["periods"] for edge in period})


def ready() -> None:
    """Import what finishing a run would import later, for a process that finishes many (testbed.forks)."""
    without_pandas()
    for name in IMPORTED_LATER:
        importlib.import_module(name)
    with contextlib.suppress(WarpbedError, OSError):  # where it cannot be built, each call says so
        pcap.make_ready()


def main(words: Sequence[str]) -> int:
    """Finish the run of that folder; returns the exit code. words: FOLDER [--fetched]"""
    without_pandas()
    folder, *options = words
    try:
        finish(Path(folder), is_new="--fetched" not in options)
    except OSError as error:
        print(error, file=sys.stderr)
        return 1 if error.errno == errno.ENOMEM else os.EX_IOERR
    except (CollectError, AnalysisError, WarpbedError) as error:
        print(error, file=sys.stderr)
        return 1
    except MemoryError:
        print("its raw files take more memory than there is", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    screen.install()
    sys.exit(main(sys.argv[1:]))
