# SPDX-License-Identifier: Apache-2.0
"""Results that another version of Warpbed made: what is told, and the command that mends them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests import lab


@pytest.fixture
def older(small: Path, tmp_path: Path) -> Path:
    """The small experiment as a collector of records' schema 1 left it: other metadata, and a column less."""
    results = tmp_path / "results"
    shutil.copytree(small.parent, results)
    for file in results.glob("*/*/records/*.parquet"):
        table = pq.read_table(file)
        if file.stem == "tcp_info":
            table = table.drop_columns(["ca_phase"])
        pq.write_table(table.replace_schema_metadata({"warpbed.schema": "1"}), file)
    for file in results.glob("*/*/raw/plan.json"):
        plan = json.loads(file.read_text())
        for link in plan["network"]["links"]:
            del link["area"]  # plans had no areas then
        file.write_text(json.dumps(plan))
    for file in results.glob("*/*/run.json"):
        document = json.loads(file.read_text())
        del document["digests"]  # nor had runs digests of their files
        file.write_text(json.dumps(document))
    return results / small.name


def digests(folder: Path) -> dict[str, list[object]]:
    return {file.stem: pq.read_table(file).to_pylist() for file in sorted(folder.glob("records/*.parquet"))}


def test_older_records_are_reported_and_made_again_from_the_raw_files(older: Path, small: Path) -> None:
    (run,) = older.glob("*/run.json")
    output = lab.warpbed("store", "ask", "runs", "--results", older, code=2)
    assert "records of schema '1', this Warpbed reads 2 and 3; ./warpbed collect " in output
    command = output[output.index("./warpbed collect") :].split(" makes it again")[0].split()[1:]
    lab.warpbed(*command)
    assert digests(run.parent) == digests(small / run.parent.name)
    assert (
        json.loads(run.read_text())["metrics"]
        == json.loads((small / run.parent.name / "run.json").read_text())["metrics"]
    )


def test_collect_tells_its_runs_as_data(older: Path) -> None:
    rows = json.loads(lab.warpbed("collect", older, "--format", "json"))
    assert [(row["run"], row["verdict"], row["reasons"]) for row in rows] == [
        (Path(rows[0]["folder"]).name, "valid", "")
    ]
    text = lab.warpbed("report", "small", "--results", older.parent, "--format", "csv", "--no-figures").splitlines()
    assert text == ["kind,file", f"report,{older / 'report.html'}"]


@pytest.mark.parametrize(
    ("version", "remedy"),
    [(2, "a newer Warpbed made it; update this checkout"), ("1", "delete the folder and run the experiment again")],
)
def test_a_result_of_another_format_says_what_to_do(older: Path, version: object, remedy: str) -> None:
    (run,) = older.glob("*/run.json")
    run.write_text(json.dumps({**json.loads(run.read_text()), "format": version}))
    before = run.read_bytes()
    for command, code in ((("collect", older), 2), (("store", "ask", "runs", "--results", older), 2)):
        output = lab.warpbed(*command, code=code)
        assert f"{run}: result format {version!r}, this Warpbed reads 1: " in output
        assert remedy in output
    assert run.read_bytes() == before


def test_a_plan_that_cannot_be_read_is_reported(older: Path) -> None:
    (run,) = older.glob("*/run.json")
    (run.parent / "raw/plan.json").write_text('{"format": 1}')
    output = lab.warpbed("collect", older, code=2)
    assert f"{run.parent / 'raw/plan.json'}: KeyError('network'); without a plan" in output
