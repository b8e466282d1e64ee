# SPDX-License-Identifier: Apache-2.0
"""Seconds that a record's file leaves out are those that would stand there, to the bit, for everybody who reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import records as read
from analysis.errors import RecordsError
from benchmarks.make_results import Case, make_results
from collectors import reading, records
from store import files, folder
from store.errors import StoreUsageError

START_NS = 1_767_229_200_000_000_000
HOUR_NS = 3600 * 10**9


def acks(times: list[int], start_ns: int = START_NS) -> pa.Table:
    at = np.array(times, dtype=np.int64)
    values: dict[str, Any] = {"time_ns": at, "t_s": (at - start_ns) / 1e9, "flow": ["f1"] * len(at)}
    blank: dict[str, Any] = {"bool": False, "double": 0.5}
    return pa.table(
        {
            name: pa.array(values.get(name, [blank.get(str(kind), 7)] * len(at)), kind)
            for name, kind in records.SCHEMAS["acks"]
        }
    )


def write(place: Path, table: pa.Table) -> Path:
    records.write(place, "acks", {name: table[name] for name in table.column_names})
    return place / "acks.parquet"


@settings(max_examples=25, deadline=None)
@given(times=st.lists(st.integers(-HOUR_NS, 10**6 * HOUR_NS), min_size=1, max_size=50), start=st.integers(0, 2**61))
def test_what_is_left_out_comes_back_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], start: int
) -> None:
    place = tmp_path_factory.mktemp("records")
    table = acks([start + t for t in times if start + t < 2**63], start)
    if not table.num_rows:
        return
    file = write(place, table)
    restored = reading.table(file)
    assert restored.column_names == table.column_names
    assert restored["t_s"].to_numpy().tobytes() == table["t_s"].to_numpy().tobytes()
    assert restored.equals(table)


def test_files_of_this_collector_hold_no_seconds(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    table = acks((START_NS + np.cumsum(random.integers(80_000, 160_000, 20_000))).tolist())
    file = write(tmp_path, table)
    assert "t_s" not in pq.read_schema(file).names
    whole = tmp_path / "whole.parquet"
    records.write_table(table, whole)
    assert file.stat().st_size < 0.5 * whole.stat().st_size


@pytest.mark.parametrize("wrong", [1e-9, float("nan"), float("inf")])
def test_seconds_that_are_another_number_stay(tmp_path: Path, wrong: float) -> None:
    table = acks([START_NS + 10**9 * i for i in range(5)])
    for row in (0, 3):
        seconds = table["t_s"].to_numpy().copy()
        seconds[row] += wrong
        file = write(tmp_path, table.set_column(1, "t_s", pa.array(seconds)))
        assert "t_s" in pq.read_schema(file).names
        np.testing.assert_array_equal(reading.table(file)["t_s"].to_numpy(), seconds)


def test_all_readers_see_the_same_of_old_and_new_files(tmp_path: Path) -> None:
    """The older file is one of schema 2, as every collector before this one wrote it."""
    folders = [make_results(tmp_path / name, [Case("reno", 50, 1)], duration_s=3.0) for name in ("old", "new")]
    old, new = (next(place.iterdir()) for place in folders)
    for kind in ("acks", "sockets"):
        table = pq.read_table(old / f"records/{kind}.parquet")
        pq.write_table(table.replace_schema_metadata({"warpbed.schema": "2"}), old / f"records/{kind}.parquet")
        records.write(new / "records", kind, {name: table[name] for name in table.column_names})
        assert "t_s" not in pq.read_schema(new / f"records/{kind}.parquet").names
        first, second = (run / f"records/{kind}.parquet" for run in (old, new))
        assert list(read.in_turn(first)) == list(read.in_turn(second))
        assert read.whole(first).equals(read.whole(second))
        for columns in (["t_s"], ["flow", "t_s"], ["time_ns"]):
            assert read.whole(first, columns).equals(read.whole(second, columns))
            assert read.whole(second, columns).column_names == [n for n, _ in records.SCHEMAS[kind] if n in columns]
        parts = [read.collect(file, ["flow"], ["t_s", "time_ns"]) for file in (first, second)]
        assert parts[0].keys() == parts[1].keys()
        for key, columns_of in parts[0].items():
            np.testing.assert_array_equal(columns_of["t_s"], parts[1][key]["t_s"])
    spans = [folder.read(run).row for run in (old, new)]
    assert (spans[0].started_at, spans[0].duration_s) == (spans[1].started_at, spans[1].duration_s)
    rows = []
    for run in (old, new):
        with files.opened([folder.read(run)]) as database:
            rows.append(
                [database.execute(f"SELECT * FROM {kind} ORDER BY ALL").fetchall() for kind in ("acks", "sockets")]
            )
    assert rows[0] == rows[1] and rows[0][0][0][2] is not None


@pytest.mark.parametrize("text", ["soon", "", str(2**63), "1e9", "\xff"])
def test_a_start_that_is_no_time_is_refused_with_the_file_and_the_remedy(tmp_path: Path, text: str) -> None:
    (run,) = make_results(tmp_path, [Case("reno", 50, 1)], duration_s=3.0).iterdir()
    file = run / "records/acks.parquet"
    table = pq.read_table(file).drop_columns(["t_s"])
    pq.write_table(
        table.replace_schema_metadata({"warpbed.schema": "3", "warpbed.start_ns": text.encode("latin-1")}), file
    )
    with pytest.raises(RecordsError, match=r"acks\.parquet: the run's start .* makes it again"):
        read.whole(file)
    with pytest.raises(StoreUsageError, match=r"acks\.parquet: the run's start .* makes it again"):
        folder.read(run)
