# SPDX-License-Identifier: Apache-2.0
"""Two run folders: which inputs, which packet and which record differ first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.differences import packets, records
from analysis.differences.capture import captures
from analysis.differences.names import End, Names
from analysis.differences.packets import Parting
from analysis.errors import ResultsError
from analysis.records import rows
from analysis.results import Run, load_run
from base.small_files import small_json

PROGRAMS = {"iperf3": "iperf3", "file": "the program that sends the file"}
"""A flow's `app`, for people."""


def inputs(ours: Run, theirs: Run) -> list[str]:
    """What of the recorded inputs differs, a line each."""
    return list(_different("", dict(ours.inputs), dict(theirs.inputs)))


def _different(place: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*one, *other}):
        mine, yours = one.get(name), other.get(name)
        if isinstance(mine, Mapping) and isinstance(yours, Mapping):
            yield from _different(f"{place}{name} ", mine, yours)
        elif mine != yours:
            yield f"{place}{name}: {_shown(mine)}, {_shown(yours)}"


def _shown(value: Any) -> str:
    return "not recorded" if value in (None, "", {}) else str(value)


def report(ours: Path, theirs: Path) -> list[str]:
    """Lines that say what differs between two run folders; empty where packets and records are the same.

    Raises ResultsError where one is no run's folder.
    """
    one, other = _run(ours), _run(theirs)
    parted, record = packets.first(ours / "raw", theirs / "raw"), records.first(ours / "records", theirs / "records")
    missing = sorted(_files(ours) ^ _files(theirs))
    if parted is None and record is None and not missing:
        return []
    lines = [f"input {line}" for line in inputs(one, other)]
    lines += [f"only one of the runs has {name}" for name in missing]
    if parted is not None:
        lines += _shown_parting(parted, ours)
    if record is not None:
        lines.append(record.words())
    return lines


def _shown_parting(parted: Parting, folder: Path) -> list[str]:
    start_ns = _start_ns(folder)
    lines = [parted.words(_names(folder))]
    lines += [f"  both    {packet.words(start_ns)}" for packet in parted.before]
    for side, shown in (("first", parted.ours), ("second", parted.theirs)):
        lines += [f"  {side:7} {packet.words(start_ns)}" for packet in shown]
    return lines


def _run(folder: Path) -> Run:
    run = load_run(folder)
    if not run.complete:
        raise ResultsError(f"{folder}: not the folder of a complete run{f': {run.error}' if run.error else ''}")
    return run


def _files(folder: Path) -> set[str]:
    captured = {f"raw/{interface}.pcap" for interface in captures(folder / "raw")}
    return captured | {f"records/{file.name}" for file in (folder / "records").glob("*.parquet")}


def _start_ns(folder: Path) -> int:
    facts = _json(folder / "run.json").get("facts")
    start = facts.get("start_realtime_ns") if isinstance(facts, dict) else None
    return start if isinstance(start, int) else 0


def _names(folder: Path) -> Names:
    """Of the flows' ends, as the records have them; their programs from the experiment."""
    spec = _json(folder / "run.json").get("spec")
    asked = spec.get("flows") if isinstance(spec, dict) else None
    programs = {str(flow.get("name")): flow.get("app") for flow in asked or () if isinstance(flow, dict)}
    nodes, flows = dict[str, str](), dict[tuple[End, End], tuple[str, str]]()
    for flow in rows(folder / "records/flows.parquet"):
        nodes |= {str(flow.get(f"{end}_addr")): str(flow.get(end)) for end in ("src", "dst")}
        source, destination = ((str(flow.get(f"{end}_addr")), flow.get(f"{end}_port") or 0) for end in ("src", "dst"))
        name = str(flow.get("flow"))
        program = programs.get(name.partition(".")[0])
        flows[source, destination] = name, PROGRAMS.get(str(program), "its program")
    return Names(nodes, flows)


def _json(file: Path) -> dict[str, Any]:
    try:
        data = small_json(file)
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
