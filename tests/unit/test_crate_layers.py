# SPDX-License-Identifier: Apache-2.0
"""The packet collector's crate: its folders have an order, and no two of its modules use each other."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from base.paths import ROOT

SOURCES = ROOT / "collectors/pcap/src"
FOLDERS = ("read", "measure", "write", "connections", "analyze", "compare")
"""From the bottom up. `generate` stands apart: it makes captures."""
USED = re.compile(r"\b(crate|super)::([\w:]*)(\{[^}]*\})?")


def module_of(sources: Path, path: list[str]) -> str | None:
    """The file that a path below `crate` leads to; None where it names something of lib.rs."""
    for length in range(len(path), 0, -1):
        stem = "/".join(path[:length])
        for file in (f"{stem}.rs", f"{stem}/mod.rs"):
            if (sources / file).is_file():
                return file
    return None


def used_modules(sources: Path) -> dict[str, set[str]]:
    """Files below `sources`, and those that each uses. `super` leads to siblings; in a file's own tests to the file itself."""
    graph: dict[str, set[str]] = {}
    for file in sorted(sources.rglob("*.rs")):
        name = str(file.relative_to(sources))
        above = list(file.relative_to(sources).parent.parts)
        uses = graph.setdefault(name, set())
        for root, path, braces in USED.findall(file.read_text()):
            start = [*(above if root == "super" else []), *filter(None, path.split("::"))]
            if root == "super" and module_of(sources, start) == module_of(sources, above):
                continue
            names = re.findall(r"[\w:]+", braces) or [""]
            uses |= {used for part in names if (used := module_of(sources, [*start, *filter(None, part.split("::"))]))}
        uses.discard(name)
        if file.name == "mod.rs":
            uses |= {str(child.relative_to(sources)) for child in file.parent.glob("*.rs") if child != file}
    return graph


def test_no_two_modules_use_each_other() -> None:
    graph = used_modules(SOURCES)
    assert len(graph) > 40 and sum(map(len, graph.values())) > 100
    TopologicalSorter(graph).prepare()


def test_folders_use_only_those_before_them() -> None:
    places = {name: place for place, name in enumerate(FOLDERS)}
    upward = [
        f"{file} uses {used}"
        for file, uses in used_modules(SOURCES).items()
        for used in uses
        if "/" in file and places.get(used.partition("/")[0], 0) > places.get(file.partition("/")[0], len(places))
    ]
    assert upward == []
    assert {file.partition("/")[0] for file in used_modules(SOURCES) if "/" in file} == {*FOLDERS, "generate"}


def test_a_circle_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/one.rs").write_text("use crate::{b, error};\n")
    (tmp_path / "b.rs").write_text("use crate::a::{one::Thing, two};\n")
    with pytest.raises(CycleError):
        TopologicalSorter(used_modules(tmp_path)).prepare()
