# SPDX-License-Identifier: Apache-2.0
"""Whatever lies in a results folder, the commands come to an end, tell of it, and go on with the other runs."""

from __future__ import annotations

import json
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis import integrity, records
from analysis.errors import RecordsError
from analysis.report import static
from store import folder as store_folder
from store.errors import StoreUsageError
from testbed import cli
from testbed.results import Results
from tests.faults.cases import Run
from tests.faults.forks import forked

MEMORY_BYTES = 3 << 30
"""That a command may have: what reads a device fails at that, and takes nothing from the machine."""
pytestmark = pytest.mark.timeout(300)  # what waits for a pipe waits for ever


def text(content: str) -> Callable[[Path], object]:
    return lambda file: file.write_text(content)


def hole(file: Path) -> None:
    file.touch()
    os.truncate(file, 8 << 30)


def device(file: Path) -> None:
    file.symlink_to("/dev/zero")


def damaged_page(file: Path) -> None:
    """Zeros in the middle of the compressed rows; the footer is as it was."""
    content = bytearray(file.read_bytes())
    content[8 : len(content) // 3] = bytes(len(content) // 3 - 8)
    file.write_bytes(content)


def unknown_encoding(file: Path) -> None:
    """A Parquet file with a column whose type this program has no number for."""
    table = pq.read_table(file)
    place = table.schema.get_field_index("flow")
    pq.write_table(table.set_column(place, "flow", pa.array([[1]] * len(table))), file)


def many_rows(file: Path) -> None:
    """A few kilobytes that say they are more rows than any memory holds."""
    rows = records.MOST_KEPT // 1000 + 1
    table = pa.table({"flow": pa.array(["f1"] * rows).dictionary_encode()})
    with pq.ParquetWriter(file, table.schema) as out:
        for _ in range(1000):
            out.write_table(table)


RUN_JSON: dict[str, Callable[[Path], object]] = {
    "empty": text(""),
    "cut": text("{"),
    "list": text("[]"),
    "deep": text("[" * 100_000),
    "wide": lambda file: file.write_text("[" + "0," * 5_000_000 + "0]"),
    "params": text('{"format": 1, "params": []}'),
    "pipe": os.mkfifo,
    "device": device,
    "hole": hole,
    "folder": Path.mkdir,
    "latin1": lambda file: file.write_bytes(b'{"format": 1, "title": "\xe9"}'),
}
RECORDS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "device": device,
    "hole": hole,
    "text": text("PAR1"),
    "page": damaged_page,
    "encoding": unknown_encoding,
    "rows": many_rows,
}
REPLACED = (os.mkfifo, device, hole)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an experiment's file and one whole run of it."""
    case = Run(tmp_path_factory.mktemp("good") / "made")
    case.prepare()
    code, words = forked(case.work)
    assert code == 0, words
    return case.folder


@pytest.fixture
def results(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the results, where commands that take too much memory fail."""
    shutil.copytree(made / "results", tmp_path / "results")
    shutil.copy(made.with_name("experiment.yml"), tmp_path)
    monkeypatch.setattr(static, "KINDS", ())  # figures, which take seconds to draw, are no matter here
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, hard))
    yield tmp_path / "results"
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def good_run(results: Path) -> Path:
    (run,) = (file.parent for file in results.glob("faulty/s*-*/run.json"))
    return run


def replaced(file: Path, change: Callable[[Path], object]) -> None:
    if change in REPLACED:
        file.unlink()
    change(file)


COMMANDS = {
    "report of a file": ["report", "{file}", "--no-figures"],
    "report of a name": ["report", "faulty", "--no-figures"],
    "metrics of a file": ["metrics", "{file}"],
    "metrics of a name": ["metrics", "faulty"],
    "cells": ["metrics", "faulty", "--cells", "--format", "csv"],
    "status": ["status", "{file}"],
    "compare": ["compare", "{file}"],
    "bundle": ["bundle", "{file}", "--out", "{place}/b.zip"],
    "ask": ["store", "ask", "runs"],
    "ask of records": ["store", "ask", "rows", "--set", "experiment=faulty", "--set", "run={run}"],
    "collect": ["collect", "{results}/faulty"],
}
FAILS = {"collect": 1}
"""Commands that say in the end that something was left out."""
SHOWN = dict.fromkeys(("status", "ask", "collect"), "{run}") | dict.fromkeys(
    ("metrics of a file", "metrics of a name"), "1     valid "
)
"""What they print of the good run."""


def call(name: str, results: Path) -> int:
    words = {"file": results.with_name("experiment.yml"), "place": results.parent, "results": results}
    words["run"] = Path(good_run(results).name)
    arguments = [part.format(**words) for part in COMMANDS[name]]
    if name != "collect":
        arguments += ["--results", str(results)]
    return cli.main(arguments)


@pytest.mark.parametrize("name", COMMANDS)
def test_run_json_of_any_kind_beside_a_good_run_keeps_no_command_from_it(
    name: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = good_run(results)
    for kind, make in RUN_JSON.items():
        folder = good.parent / f"broken-{kind}"
        folder.mkdir()
        make(folder / "run.json")
    assert call(name, results) == FAILS.get(name, 0)
    said = capsys.readouterr()
    assert SHOWN.get(name, "").format(run=good.name) in said.out
    if name == "collect":
        assert all(f"broken-{kind}" in said.err for kind in RUN_JSON)
    if name.startswith("ask"):
        assert all(f"broken-{kind}" in said.err for kind in RUN_JSON)


@pytest.mark.parametrize("name", COMMANDS)
def test_records_of_any_kind_keep_no_command_from_the_good_run(
    name: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = good_run(results)
    document = json.loads((good / "run.json").read_text())
    del document[integrity.KEY]  # somebody who changes files leaves them out, or writes new ones
    for kind, change in RECORDS.items():
        folder = good.parent / f"broken-{kind}"
        shutil.copytree(good, folder)
        (folder / "run.json").write_text(json.dumps(document))
        replaced(folder / "records/intervals.parquet", change)
        if change in REPLACED:
            replaced(folder / "raw/guest.json", change)  # the rest can be collected again
    assert call(name, results) == FAILS.get(name, 0)
    said = capsys.readouterr()
    assert SHOWN.get(name, "").format(run=good.name) in said.out
    if name == "collect":
        assert "3 of 8 runs could not be collected" in said.err
    if name == "ask of records":  # whose rows are counted only where the question is asked
        assert "broken-page" in said.err and "intervals" in said.out
    if name == "report of a name":
        page = (results / "faulty/report.html").read_text()
        assert page.count("not a readable Parquet file") >= 4


@pytest.mark.parametrize("part", ["raw/plan.json", "raw/f1.server.json", "raw/s1-eth0.pcap", "raw/sockets.bin"])
@pytest.mark.parametrize("change", [os.mkfifo, device], ids=lambda change: change.__name__)
def test_raw_files_that_are_none_are_refused_before_something_opens_them(
    part: str, change: Callable[[Path], object], results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = good_run(results)
    document = json.loads((run / "run.json").read_text())
    del document[integrity.KEY]
    (run / "run.json").write_text(json.dumps(document))
    replaced(run / part, change)
    assert cli.main(["collect", str(run)]) == 2
    assert f"{run / part}: is a " in capsys.readouterr().err


@pytest.mark.parametrize(
    "plan",
    [
        {"flows": "abc"},
        {"flows": [{"start_s": "x"}]},
        {"flows": [{"start_s": 1e300}]},
        {"network": {"links": [{"forward": {"varying_rate": {"at_ns": [0, 1], "values": [1, "y"]}}}]}},
        {"network": [1]},
        [],
    ],
)
def test_a_plan_that_no_run_has_keeps_one_run_out_of_the_store(
    plan: object, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = good_run(results)
    other = good.parent / "other"
    shutil.copytree(good, other)
    document = json.loads((other / "run.json").read_text())
    del document[integrity.KEY]
    (other / "run.json").write_text(json.dumps(document))
    (other / "raw/plan.json").write_text(json.dumps(plan))
    with pytest.raises(StoreUsageError, match="what no run writes"):
        store_folder.read(other)
    assert call("ask", results) == 0
    said = capsys.readouterr()
    assert good.name in said.out and f"{other}: " in said.err


@pytest.mark.parametrize("ended", [1e20, -1e20, "x", True])
def test_a_time_that_is_none_is_left_out(ended: object, results: Path) -> None:
    run = good_run(results)
    document = json.loads((run / "run.json").read_text())
    document["timing"]["ended"] = ended
    (run / "run.json").write_text(json.dumps(document))
    assert store_folder.read(run).row.made_at is None or ended is True


def test_only_unreadable_runs_answer_nothing(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (good_run(results) / "run.json").write_text("{")
    assert cli.main(["store", "ask", "runs", "--results", str(results)]) == 2
    assert "none of its 1 run folders can be read" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["*", "?", "[a-z]*", "x=y", "it's"])
def test_a_folder_s_name_is_no_pattern(name: str, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = good_run(results)
    shutil.copytree(good, good.parent / name)
    whole = len(records.rows(good / "records/intervals.parquet"))
    arguments = ["store", "ask", "rows", "--results", str(results), "--format", "json"]
    assert cli.main([*arguments, "--set", "experiment=faulty", "--set", f"run={name}"]) == 0
    counted = {row["record"]: row["row_count"] for row in json.loads(capsys.readouterr().out)}
    assert counted["intervals"] == whole > 0


def test_a_long_name_in_every_row_takes_no_memory(results: Path) -> None:
    """A megabyte of a flow's name once is some kilobytes of a file; in each of its rows it would be 300 GB."""
    file = good_run(results) / "records/intervals.parquet"
    rows = 300_000
    name = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * 1_000_000]))
    pq.write_table(pa.table({"flow": name, "t_s": pa.array([0.0] * rows)}), file)
    for read in (
        lambda: list(records.grouped(file, ("flow",), ("t_s",))),
        lambda: records.rows(file),
        lambda: records.whole(file),
    ):
        with pytest.raises(RecordsError, match="texts of more than 1000 bytes"):
            read()


def test_a_broken_run_counts_as_not_done(results: Path) -> None:
    """`run` in such a folder ended with a traceback."""
    for kind, make in RUN_JSON.items():
        (results / f"faulty/broken-{kind}").mkdir()
        make(results / f"faulty/broken-{kind}/run.json")
    done = {kind for kind in RUN_JSON if Results(results, "faulty").is_complete(f"broken-{kind}")}
    assert done == {"params"}
