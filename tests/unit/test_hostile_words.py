# SPDX-License-Identifier: Apache-2.0
"""Words of strangers in what commands print: no control character, no forged line, no markup that is taken for one, no formula."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import subprocess
import sys
import unicodedata
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis import agreement, integrity, terminal
from base import screen
from base.errors import UsageError
from base.text import clean, json_text, safe
from benchmarks.make_results import Case, make_results
from testbed import cli
from tests import lab

MARKUP = "[red]x[/red][link=https://192.0.2.1]y[/link]:smile:"
HOSTILE = f"=1\x1b]0;PWNED\x07\x9b2J\u202e\x7f{MARKUP}\nFORGED: line\r\x85FORGED\u2028FORGED"
"""OSC, BEL, C1, a direction of writing, DEL, what rich takes for styles, and each end of a line."""

FILE = json.dumps(
    {
        "warpbed": 1,
        "name": "small",
        "title": HOSTILE,
        "question": HOSTILE,
        "duration": "5s",
        "topology": {"name": "line", "params": {"rate": "10mbit", "delay": "1ms"}},
        "flows": [{"name": "f1", "cca": "reno", "from": "s1", "to": "d1"}],
        "sweep": {"parameters": {"t": "title"}, "factorial": {"t": [HOSTILE, "b"]}},
        "expectations": [
            {"metric": "utilization", "min": 0.1, "where": {"t": HOSTILE}, "source": HOSTILE},
            {"metric": "utilization", "min": 2, "source": HOSTILE},
        ],
        "claims": [
            {"source": HOSTILE, "metric": "utilization", "where": {"t": HOSTILE}, "bounds": {"min": 0.1}},
            {"source": HOSTILE, "metric": "utilization", "bounds": {"min": 2}, "differs": HOSTILE},
        ],
        "published": [
            {
                "source": HOSTILE,
                "metric": "utilization",
                "tolerance": "5%",
                "values": [{"where": {"t": HOSTILE}, "value": 0.5}],
                "differs": HOSTILE,
            },
        ],
    }
)
"""JSON is YAML."""

FORMATS = ("table", "csv", "json")
COMMANDS: dict[str, tuple[str, ...]] = {
    "metrics of a file": ("metrics", "{file}"),
    "metrics of a folder": ("metrics", "small"),
    "metrics of cells": ("metrics", "small", "--cells"),
    "metrics of pairs": ("metrics", "small", "--paired=t=a,b"),
    "metrics of a word": ("metrics", "small", "--paired=other=a,b"),
    "compare": ("compare", "{file}", "--junit={folder}/junit.xml"),
    "compare with a baseline": ("compare", "{file}", "--baseline={baseline}"),
    "status": ("status", "{file}"),
    "check": ("check", "{file}", "--file-only"),
    "report": ("report", "{file}", "--no-figures"),
    "collect": ("collect", "{run}"),
    "store": ("store", "ask", "runs", "--results={results}"),
}
QUIET = ("check", "report")
"""They name files and counts."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An experiment file and results whose every text is a stranger's."""
    folder = tmp_path_factory.mktemp("words")
    file = lab.write(folder, FILE, "small.yml")
    why = ({"rule": HOSTILE, "severity": "suspect", "message": HOSTILE},)
    cases = [
        Case("reno", 50, 1, params={"t": HOSTILE, "other": HOSTILE}, reasons=why),
        Case("reno", 60, 1, params={"t": "a", HOSTILE: HOSTILE}),
        Case("reno", 60, 1, flows=2, params={"t": "b", HOSTILE: HOSTILE}),
        Case("reno", 80, 1, kind="failed"),
        Case("reno", 90, 1, verdict=HOSTILE, params={"t": HOSTILE}),
    ]
    results = make_results(folder / "results", cases, experiment="small", duration_s=1.0)
    for run in results.glob("*/run.json"):
        document = json.loads(run.read_text())
        if document["status"] == "failed":
            document["error"] = HOSTILE
        run.write_text(json.dumps(document))
    odd = results / HOSTILE.replace("/", "")
    (results / cases[-1].name).rename(odd)
    baseline = {"metric": "utilization", "n": 1, "mean": 9.0, "low": None, "high": None}
    kept = folder / "baseline.json"
    rows = [{**baseline, "params": {HOSTILE: HOSTILE}}]
    kept.write_text(json.dumps({"warpbed_baseline": 1, "experiment": "small", "means": rows}))
    return {"folder": folder, "file": file, "results": folder / "results", "run": odd, "baseline": kept}


def harmless(text: str) -> None:
    """Only ends of lines that the program wrote."""
    odd = {character for character in text if not character.isprintable() and unicodedata.category(character) != "Zs"}
    assert odd <= {"\n"}
    assert [line for line in text.split("\n") if line.startswith("FORGED")] == []


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_prints_words_that_do_something(
    made: dict[str, Path], name: str, form: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "3000")
    words = [made[word[1:-1]] if word[1:-1] in made else word.format(**made) for word in COMMANDS[name]]
    results = [] if name in ("collect", "check", "store") else [f"--results={made['results']}"]
    cli.main([*map(str, words), *results, f"--format={form}"])
    said = capsys.readouterr()
    harmless(said.out)
    harmless(said.err)
    assert name in QUIET or "PWNED" in said.out + said.err, "the words are there"
    if form == "table" and "]0;PWNED" in said.out:
        assert "[red]x[" in said.out, "rich takes no part of it for a style"
    if form == "csv":
        cells = [cell for row in csv.reader(io.StringIO(said.out)) for cell in row]
        assert [cell for cell in cells if cell.lstrip().startswith(("=", "+", "@"))] == []
    if form == "json" and "]0;PWNED" in said.out:
        assert any({*"\x1b\x9b\u202e\x7f\n"} <= {*text} for text in texts(json.loads(said.out))), "JSON loses nothing"


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for part in value:
            yield from texts(part)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("named", ["title", "version"])
def test_a_bundle_says_nothing_that_does_something(
    named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case("cubic", 40, 1)
    run = make_results(tmp_path / "results", [case], experiment="small", duration_s=1.0) / case.name / "run.json"
    document = json.loads(run.read_text())
    document.pop(integrity.KEY, None)
    files = {
        "experiments/small.yml": lab.SMALL.encode(),
        f"results/small/{case.name}/run.json": json.dumps(document).encode(),
    }
    manifest = {
        "warpbed_bundle": 1,
        "title": "t",
        "version": "1",
        "commit": "",
        "captures": False,
        "experiments": [
            {"name": "small", "file": "experiments/small.yml", "host": "virtual", "runs": [case.name], "missing": 0}
        ],
        "files": {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()
        },
        named: HOSTILE.replace("FORGED\u2028", "")[:400] if named == "title" else "\x1b\x9b\x07\nFORGED [red]",
    }
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        for name, data in {"bundle.json": json.dumps(manifest).encode(), **files}.items():
            archive.writestr(name, data)
    assert cli.main(["rerun", "--no-run", str(tmp_path / "b.zip")]) == 0
    said = capsys.readouterr()
    harmless(said.out)
    harmless(said.err)
    assert "FORGED" in said.out and "[red]" in said.out


def test_junit_holds_nothing_that_does_something(made: dict[str, Path], tmp_path: Path) -> None:
    cli.main(["compare", str(made["file"]), f"--results={made['results']}", f"--junit={tmp_path / 'junit.xml'}"])
    cases = list(ET.parse(tmp_path / "junit.xml").iter())
    assert sum("PWNED" in value for case in cases for value in case.attrib.values()) > 3
    for case in cases:
        for value in case.attrib.values():
            harmless(value)
            assert "\n" not in value


def test_what_a_forgotten_place_prints_is_cleaned(capfd: pytest.CaptureFixture[str]) -> None:
    with screen.installed():
        with screen.installed():  # a command that calls another
            print(HOSTILE)
            print(HOSTILE, file=sys.stderr)
            sys.stdout.writelines([HOSTILE])
            screen.print_table(HOSTILE.replace("\x1b", "") + "\x1b[31mred\x1b[0m\x1b[2J")
        print("\x1b[31mno table\x1b[0m")
    print("\x1b as it is")
    out, err = capfd.readouterr()
    coloured, _, plain = out.rpartition("no table")
    assert coloured.count("\x1b") == 2 and "\x1b[31mred\x1b[0m�[2J" in coloured
    assert plain == "�[0m\n\x1b as it is\n"
    assert "\x1b" not in err and "\x9b" not in out + err and "\u202e" not in out + err
    assert out.count(MARKUP) == 3


def test_the_program_itself_prints_through_it(tmp_path: Path) -> None:
    """A traceback too, which is printed after the command."""
    words = lab.warpbed("metrics", "\x1b[2Jx", f"--results={tmp_path}", code=2)
    assert "�[2Jx: no results" in words and "\x1b" not in words
    program = """
from testbed import cli
def fails(_):
    raise RuntimeError("\\x1b[2J")
cli.parser = fails
cli.main()
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=lab.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "RuntimeError: �[2J" in done.stderr and "\x1b" not in done.stderr


def test_an_error_of_several_lines_cannot_say_another(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> int:
        raise UsageError(f"x: {HOSTILE}", "y: second thing")

    assert cli.ended(fails) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and lines[1].startswith("  FORGED") and lines[2] == "y: second thing"


@pytest.mark.parametrize("colour", [True, False])
def test_a_table_takes_no_cell_for_markup(colour: bool) -> None:
    table = terminal.table(["a"], [[HOSTILE]], terminal.Style(400, colour), colours={})
    assert MARKUP in table
    harmless(table)


def test_words_of_comparisons_between_hosts_are_cleaned() -> None:
    one = agreement.Difference(HOSTILE, HOSTILE, HOSTILE, HOSTILE, 1.0, 1.0, HOSTILE)
    for form in ("table", "markdown", "json"):
        harmless(agreement.render([one], form))


def test_texts_are_told_apart_from_what_moves_a_cursor() -> None:
    assert clean("a\u00a0b\u3000c é 漢 👍") == "a\u00a0b\u3000c é 漢 👍"
    assert clean("\x00\x1b\x7f\x85\x9b\u00ad\u200b\u200e\u202e\u2028\u2066\ufeff\ud800\ue000") == "�" * 14
    for text in ("=1", "+1", "-1", "@x", " =1", "\t=1", "＝1"):
        assert safe(text).startswith("'")
    value = {"k\x9b": ["\u202e\U000e0001\x7f", "é"]}
    assert json.loads(json_text(value)) == value and json_text(value, indent=None).isprintable()
    assert "é" in json_text(value)
