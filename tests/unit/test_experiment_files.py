# SPDX-License-Identifier: Apache-2.0
"""Experiment files: good ones are read, bad ones are refused with file, line, value and remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from base.errors import SpecError, UsageError
from schema import patterns
from schema.load import load
from schema.model import Experiment
from testbed.experiments import prepare
from tests import lab

LARGE = "yu2009"
"""Hundreds of runs over hundreds of nodes: tests/long/test_large_experiments.py prepares them."""


def problem(tmp_path: Path, text: str) -> str:
    with pytest.raises(SpecError) as caught:
        prepare(lab.write(tmp_path, text))
    return str(caught.value)


@pytest.mark.parametrize(
    "file",
    [file for file in sorted((lab.ROOT / "experiments").rglob("*.yml")) if file.parent.name != LARGE],
    ids=lambda f: f.stem,
)
def test_every_shipped_experiment_is_valid_and_fit_to_run(file: Path) -> None:
    prepared = prepare(file)
    assert prepared.runs and not prepared.errors


BAD = {
    "unknown key": ("duration: 5s", "durration: 5s", 4, "did you mean duration?"),
    "missing unit": ("duration: 5s", "duration: 5", 4, "48ms"),
    "wrong unit": ("rate: 20mbit", "rate: 20mbyte", 7, "10mbit"),
    "negative": ("duration: 5s", "duration: -5s", 4, "'-5s' is not a time"),
    "zero rate": ("rate: 20mbit", "rate: 0mbit", 7, "must be above 0"),
    "unknown parameter": ("buffer: 40p", "bufer: 40p", 7, "did you mean buffer?"),
    "unknown topology": ("name: dumbbell", "name: dumbell", 6, "did you mean dumbbell?"),
    "unknown algorithm": ("cca: cubic", "cca: cubix", 9, "did you mean cubic?"),
    "unknown node": ("to: d1", "to: d7", 9, "did you mean d1?"),
    "flow to itself": ("to: d1", "to: s1", 9, "its own node"),
    "other version": ("warpbed: 1", "warpbed: 2", 1, "1"),
    "name that leaves the folder": ("name: small", "name: ../small", 2, "must be"),
    "not YAML": ("flows:", "flows: [", 9, "not YAML"),
    "twice": ("title: One short flow", "title: a\ntitle: b", 4, "duplicate key"),
    "stop and size": ("to: d1", "to: d1, stop: 3s, size: 1MB", 9, "not both"),
    "stop before start": ("to: d1", "to: d1, start: 3s, stop: 2s", 9, "not after"),
    "stop after end": ("to: d1", "to: d1, stop: 9s", 1, "after the end"),
    "shell words in a node": ("to: d1", "to: 'd1;reboot'", 9, "must be"),
    "shell words in a sysctl": ("flows:", "hosts: {sysctls: {'net.x;reboot': 1}}\nflows:", 8, "must be"),
    "sysctl that leads out of the network": (
        "flows:",
        "hosts: {sysctls: {net.//.kernel.core_pattern: x}}\nflows:",
        8,
        "must be",
    ),
    "sysctl outside the network": ("flows:", "hosts: {sysctls: {kernel.panic: 1}}\nflows:", 8, "must be"),
    "too many flows in one": ("to: d1", "to: d1, parallel: 1000", 9, "128"),
    "unknown metric": ("flows:", "metrics: [utilisation]\nflows:", 8, "did you mean utilization"),
    "unknown capture": ("flows:", "captures: {at: [s1>d1]}\nflows:", 8, "no link s1>d1"),
    "same seeds": ("flows:", "seeds: [1, 1]\nflows:", 1, "must differ"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_reported_by_line_with_what_is_allowed(tmp_path: Path, case: str) -> None:
    old, new, line, expected = BAD[case]
    assert old in lab.SMALL
    message = problem(tmp_path, lab.SMALL.replace(old, new))
    assert f"experiment.yml:{line}:" in message
    assert expected in message


SWEEP = """\
sweep:
  parameters: {cca: flows.*.cca, buffer: topology.params.buffer}
  factorial: {cca: [reno, cubic], buffer: [10p, 40p]}
  list: [{cca: bbr, buffer: 20p}]
repeats: 2
"""


def test_a_sweep_is_the_product_and_the_list_times_the_seeds(tmp_path: Path) -> None:
    prepared = prepare(lab.write(tmp_path, lab.SMALL + SWEEP))
    assert len(prepared.runs) == (2 * 2 + 1) * 2
    ids = {run.run_id("virtual", "k") for run in prepared.runs}
    assert len(ids) == len(prepared.runs)
    assert {run.experiment.flows[0].cca.name for run in prepared.runs} == {"reno", "cubic", "bbr"}


def test_a_sweep_of_a_list_alone_is_that_list(tmp_path: Path) -> None:
    only = SWEEP.replace("  factorial: {cca: [reno, cubic], buffer: [10p, 40p]}\n", "")
    assert [run.params for run in prepare(lab.write(tmp_path, lab.SMALL + only)).runs] == [
        {"cca": "bbr", "buffer": "20p"}
    ] * 2


def test_a_wrong_swept_value_is_reported_at_the_value(tmp_path: Path) -> None:
    message = problem(tmp_path, lab.SMALL + SWEEP.replace("[10p, 40p]", "\n      [10p,\n       40q]"))
    assert "experiment.yml:14: topology.params.buffer: '40q'" in message


def test_a_sweep_over_a_place_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "no such place" in problem(tmp_path, lab.SMALL + SWEEP.replace("flows.*.cca", "flowz.*.cca"))


def test_run_ids_depend_on_what_decides_the_packets_and_on_nothing_else(tmp_path: Path) -> None:
    def run_id(text: str, build: str = "k") -> str:
        return prepare(lab.write(tmp_path, text)).runs[0].run_id("virtual", build)

    first = run_id(lab.SMALL)
    assert run_id(lab.SMALL.replace("One short flow", "Another title")) == first
    assert run_id(lab.SMALL.replace("40p", "41p")) != first
    assert run_id(lab.SMALL, build="other") != first


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load(tmp_path / "missing.yml")
    for text in ("", "- a\n", "warpbed: 1\n" + "x" * (1 << 20)):
        with pytest.raises(SpecError):
            load(lab.write(tmp_path, text))
    (tmp_path / "latin.yml").write_bytes(b"warpbed: 1\ntitle: \xff\n")
    with pytest.raises(SpecError, match=r"latin.yml:2: not UTF-8"):
        load(tmp_path / "latin.yml")


def test_a_bomb_of_aliases_is_refused(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))
    assert "values or" in problem(tmp_path, bomb)


def test_exit_code_2_and_nothing_started(tmp_path: Path) -> None:
    file = lab.write(tmp_path, lab.SMALL.replace("cubic", "cubix"))
    for name in ("check", "run", "execute"):
        extra: list[str | Path] = [] if name == "check" else ["--results", tmp_path / "results"]
        assert "experiment.yml:9" in lab.warpbed(name, file, *extra, code=2)
    assert not (tmp_path / "results").exists()


def test_the_exported_schema_is_up_to_date() -> None:
    lab.inside("schema", "--check")


def test_every_form_of_a_name_is_told_in_words() -> None:
    forms = set(_forms(Experiment.model_json_schema()))
    assert len(forms) >= 6 and forms <= patterns.WORDS.keys()
    for form, description in patterns.WORDS.items():
        example = description.split(", such as ")[1].split(" or ")[0]
        assert re.match(form, example), f"{example} is no {description}"


def _forms(schema: Any) -> Iterator[str]:
    """All patterns of a JSON schema, those of keys too."""
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        yield from schema.get("patternProperties", {})
        schema = list(schema.values())
    for part in schema if isinstance(schema, list) else ():
        yield from _forms(part)
