# SPDX-License-Identifier: Apache-2.0
"""One run of an experiment, and its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from analysis import integrity, records, results
from analysis.metrics import find, lookup
from base.errors import UsageError, WarpbedError
from base.nearest import nearest
from base.small_files import small_json
from collectors import timeline
from warpbed.table import Table

TIMELINE = "timeline"


@dataclass(frozen=True, repr=False)
class Run:
    """One run. What it has of records and metrics depends on how it ended: `complete` says whether it has them."""

    found: results.Run

    def __repr__(self) -> str:
        return f"<Run {self.id}: {self.verdict}>"

    @property
    def id(self) -> str:
        """Its name: swept values, seed, and a hash of all that decides its packets."""
        return self.found.run

    @property
    def path(self) -> Path:
        """Its folder (docs/architecture.md has the format)."""
        return self.found.path

    @property
    def params(self) -> Mapping[str, Any]:
        """The sweep's parameters by name, as the experiment file has them ("50p", "48ms")."""
        return self.found.params

    @property
    def seed(self) -> int | None:
        return self.found.seed

    @property
    def complete(self) -> bool:
        """Whether it was done; `valid` says whether its numbers can be used."""
        return self.found.complete

    @property
    def verdict(self) -> str:
        """valid, suspect or invalid; of a run that is not complete: failed, unreadable or missing."""
        return self.found.standing

    @property
    def valid(self) -> bool:
        return self.found.complete and self.found.verdict == "valid"

    @property
    def problems(self) -> list[str]:
        """Why it failed or is not valid, a sentence each."""
        return [*([self.found.error] if self.found.error else []), *(reason.message for reason in self.found.reasons)]

    @property
    def metrics(self) -> Mapping[str, Any]:
        """All metrics by name (`./warpbed list metrics`); None where the records cannot give one."""
        return self.found.metrics

    def metric(self, name: str) -> Any:
        """A metric or a part of one, such as "utilization" or "flows.f1.goodput_mbps".

        Raises WarpbedError for a name that is no metric's.
        """
        find(name)
        return lookup(dict(self.found.metrics), name)

    @property
    def spec(self) -> Mapping[str, Any]:
        """The experiment as it was resolved for this run."""
        return self.found.spec

    @property
    def environment(self) -> Mapping[str, Any]:
        """Kernel, modules, programs, network as built."""
        return self.found.environment

    @property
    def record_names(self) -> list[str]:
        """The records that it has: flows, intervals, acks, sockets, tcp_info, queues, and timeline where there are acks."""
        stored = {file.stem for file in (self.path / "records").glob("*.parquet")}
        return sorted(stored | {TIMELINE} if "acks" in stored else stored)

    def records(self, name: str, columns: Sequence[str] | None = None) -> Table:
        """One of its records, with units in the columns' names (docs/records.md).

        columns: only these. Raises UsageError for a name or column that is not there, WarpbedError for a file that cannot be read.
        """
        if name not in self.record_names:
            raise UsageError(f"{self.path}: no records {name!r}; {nearest(name, self.record_names)}")
        file = self.path / "records" / f"{name}.parquet"
        if name != TIMELINE or file.is_file():
            return Table(records.whole(file, columns))
        try:
            joined = timeline.of_run(self.path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise WarpbedError(
                f"{self.path}: {error!r}; ./warpbed collect {self.path} makes its records again"
            ) from error
        for column in columns or ():
            if column not in joined.column_names:
                raise UsageError(
                    f"{self.path}: {name} has no column {column!r}; {nearest(column, joined.column_names)}"
                )
        return Table(joined if columns is None else joined.select(columns))

    @property
    def flows(self) -> list[dict[str, Any]]:
        """The flows' metrics, a dictionary each."""
        rows = self.found.metrics.get("flows")
        return [dict(row) for row in rows] if isinstance(rows, list) else []

    @property
    def captures(self) -> list[Path]:
        """Its packet captures, where they were kept; *.pcap.zst where they were compressed, which tshark reads as it is."""
        return sorted(file for pattern in ("*.pcap", "*.pcap.zst") for file in (self.path / "raw").glob(pattern))

    def changed_files(self) -> list[str]:
        """What of its raw files and records is not as it was when the run was finished, a sentence per file."""
        document = small_json(self.path / "run.json")
        return integrity.problems(self.path, document)


def joined(runs: Sequence[Run], name: str, columns: Sequence[str] | None = None) -> Table:
    """The same records of several runs below one another, with the columns `run` and `seed` and one per parameter before theirs."""
    parts = []
    for run in runs:
        table = run.records(name, columns).arrow
        head: list[tuple[str, Any]] = [("run", run.id), ("seed", run.seed)]
        head += [(f"param.{key}", results.show(value)) for key, value in run.params.items()]
        for place, (key, value) in enumerate(head):
            kind = pa.int64() if key == "seed" else pa.string()
            table = table.add_column(place, key, pa.array([value] * table.num_rows, kind))
        parts.append(table)
    return Table(pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({}))
