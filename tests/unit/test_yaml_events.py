# SPDX-License-Identifier: Apache-2.0
"""libyaml's events give the values and the lines that ruamel.yaml alone gives, or none."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from base.paths import ROOT
from schema import load, yaml_events
from tests.fuzz.mutate import changed

FILES = sorted(file for folder in ("experiments", "campaigns", "docs") for file in (ROOT / folder).rglob("*.yml"))


def by_ruamel(text: str) -> Any:
    yaml = YAML(typ="rt", pure=True)
    yaml.allow_duplicate_keys = False
    return yaml.load(text)


def told(node: Any) -> Any:
    """Values with their kinds, and each one's line."""
    if isinstance(node, CommentedMap):
        return [(str(key), type(key).__name__, node.lc.key(key)[0], told(value)) for key, value in node.items()]
    if isinstance(node, CommentedSeq):
        return [(node.lc.item(i)[0], told(value)) for i, value in enumerate(node)]
    return type(node).__name__, str(node)


def test_of_every_file_of_the_repository_both_say_the_same() -> None:
    """Long ones are of the same make as others, and ruamel.yaml alone would take seconds for all."""
    short = [text for file in FILES if len(text := file.read_text()) < 1500]
    assert len(short) > 20
    for text in short:
        assert told(yaml_events.read(text)) == told(by_ruamel(text))


def test_of_changed_files_both_say_the_same_where_the_quick_one_says_anything() -> None:
    draw, read = random.Random("events"), 0
    seeds = [data for file in FILES if len(data := file.read_bytes()) < 1500]
    for _ in range(150):
        text = changed(draw.choice(seeds), seeds, draw).decode(errors="replace")
        try:
            quick = yaml_events.read(text)
        except yaml_events.NotAlikeError:
            continue
        read += 1
        assert told(quick) == told(by_ruamel(text)), text
    assert read > 50


@pytest.mark.parametrize(
    "text",
    [
        "a: &x 1\nb: *x\n",
        "a: !!str 1\n",
        "%YAML 1.1\n---\na: yes\n",
        'a: "\\u0041"\n',
        "a:\t1\n",
        "a: 1\u2028b: 2\n",
        "a: 1\r\nb: 2\n",
        "a: 1\na: 2\n",
        "a: [1\n",
        "a: 1\n---\nb: 2\n",
    ],
)
def test_what_may_mean_something_else_and_what_is_wrong_is_left_to_ruamel(text: str) -> None:
    with pytest.raises(yaml_events.NotAlikeError):
        yaml_events.read(text)


def test_words_and_numbers_are_those_of_yaml_1_2() -> None:
    data = load.Document("file", "a: on\nb: 010\nc: 1:30\nd: 0o10\ne: 1_000\nf: 2026-11-25\ng: ~\n").data
    assert data == {"a": "on", "b": 10, "c": "1:30", "d": 8, "e": 1000, "f": "2026-11-25", "g": None}


def test_without_libyaml_files_are_read_all_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(yaml_events, "CParser", None)
    document = load.Document("file", "without: libyaml\nlist:\n  - {x: 1}\n")
    assert document.data == {"without": "libyaml", "list": [{"x": 1}]} and document.line(("list", 0, "x")) == 3
