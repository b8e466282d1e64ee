# SPDX-License-Identifier: Apache-2.0
"""The one reader of the modules' sources: the names that a module registers, and its parameters with range and default.

python -m kernels.module_source --json    prints them for programs, such as the play that installs modules
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from base.errors import UsageError, WarpbedError
from base.paths import ROOT

MODULES = ROOT / "kernels/modules"
PREFIX = "tcp_"

_ALIAS = re.compile(r'MODULE_ALIAS\("tcp_(\w+)"\)')
_REGISTERED = re.compile(r'\.name\s*=\s*"(\w+)"|_OPS\("(\w+)"')
_SHARED = re.compile(r'^#include "(cc_\w+)\.h"', re.MULTILINE)
_PARAMETER = re.compile(r"^\s*module_param(?:_cb|_named)?\((\w+),\s*(?:&(\w+))?", re.MULTILINE)
_DESCRIPTION = re.compile(r'MODULE_PARM_DESC\((\w+),\s*((?:"[^"]*"\s*)+)\)')
_RANGE = re.compile(r"CC_PARAM_RANGE\((\w+), (\d+), (\d+)\)")
_RANGED = re.compile(r"(?P<what>.*?),? (?P<low>\d+)-(?P<high>\d+)(?P<more>.*) \((?P<default>\d+)\)")
_CHOICE = re.compile(r"(?P<what>.*) \((?P<default>\d+)\)")


@dataclass(frozen=True)
class Description:
    """What a parameter's MODULE_PARM_DESC says: meaning with unit, range (None: it lists single values), default."""

    meaning: str
    range: tuple[int, int] | None
    default: int


@dataclass(frozen=True)
class Parameter:
    """A module's parameter.

    text: its MODULE_PARM_DESC, empty where it has none
    bounds: the least and greatest value that a write may have; None where they are not from CC_PARAM_RANGE
    """

    name: str
    text: str
    bounds: tuple[int, int] | None

    @property
    def description(self) -> Description:
        """The text in its parts; raises UsageError where it does not have them."""
        if match := _RANGED.fullmatch(self.text):
            stated = (int(match["low"]), int(match["high"]))
            return Description(match["what"] + match["more"], stated, int(match["default"]))
        if match := _CHOICE.fullmatch(self.text):
            return Description(match["what"], None, int(match["default"]))
        raise UsageError(f"parameter {self.name}: {self.text!r} does not end in its default in parentheses")


@dataclass(frozen=True)
class ModuleSource:
    """A congestion control module of kernels/modules.

    names: by which it can be asked for: its file's, and one alias for each further algorithm
    registered: the algorithms that it registers, in the source's order
    """

    source: Path
    names: tuple[str, ...]
    registered: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    @property
    def stem(self) -> str:
        return self.source.stem.removeprefix(PREFIX)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)


def read(source: Path) -> ModuleSource:
    """One module's source, with what it shares with others (cc_*.h, and cc_*.c where there is one)."""
    return _read(source, source.stat().st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _read(source: Path, _changed_ns: int) -> ModuleSource:
    text = source.read_text(errors="replace")
    shared = [source.parent / f"{name}{suffix}" for name in _SHARED.findall(text) for suffix in (".h", ".c")]
    whole = text + "".join(file.read_text(errors="replace") for file in shared if file.is_file())
    return ModuleSource(
        source=source,
        names=tuple(dict.fromkeys([source.stem.removeprefix(PREFIX), *_ALIAS.findall(text)])),
        registered=tuple(dict.fromkeys(a or b for a, b in _REGISTERED.findall(text))),
        parameters=_parameters(whole),
    )


def _parameters(text: str) -> tuple[Parameter, ...]:
    descriptions = {name: "".join(re.findall(r'"([^"]*)"', parts)) for name, parts in _DESCRIPTION.findall(text)}
    ranges = {ops: (int(low), int(high)) for ops, low, high in _RANGE.findall(text)}
    declared = dict(_PARAMETER.findall(text))
    return tuple(Parameter(name, descriptions.get(name, ""), ranges.get(ops)) for name, ops in declared.items())


def sources(folder: Path = MODULES) -> list[ModuleSource]:
    """All congestion control modules, by their files' names."""
    return [_read(folder / name, changed_ns) for name, changed_ns in _files(folder)]


def by_name(folder: Path = MODULES) -> dict[str, ModuleSource]:
    """The algorithms: name → the module that has it."""
    return dict(_by_name(folder, _files(folder)))


def _files(folder: Path) -> tuple[tuple[str, int], ...]:
    """The modules' files, and when each was changed. Asked for with every algorithm that an experiment names."""
    if not folder.is_dir():
        return ()
    with os.scandir(folder) as entries:
        modules = (one for one in entries if one.name.startswith(PREFIX) and one.name.endswith(".c"))
        return tuple(sorted((one.name, one.stat().st_mtime_ns) for one in modules if not one.name.endswith(".mod.c")))


@functools.lru_cache(maxsize=16)
def _by_name(folder: Path, files: tuple[tuple[str, int], ...]) -> dict[str, ModuleSource]:
    modules = (_read(folder / file, changed_ns) for file, changed_ns in files)
    return {name: module for module in modules for name in module.names}


def as_json(folder: Path = MODULES) -> str:
    """What other programs need: for each module its file, names and parameters, and the module of each algorithm."""
    modules = {
        module.source.stem: {
            "file": module.source.name,
            "names": module.names,
            "parameters": [_plain(parameter) for parameter in module.parameters],
        }
        for module in sources(folder)
    }
    algorithms = {name: module.source.stem for name, module in sorted(by_name(folder).items())}
    return json.dumps({"modules": modules, "algorithms": algorithms}, indent=2)


def _plain(parameter: Parameter) -> dict[str, object]:
    description = parameter.description
    low, high = parameter.bounds or (None, None)
    return {
        "name": parameter.name,
        "meaning": description.meaning,
        "low": low,
        "high": high,
        "default": description.default,
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Names and parameters of the modules in kernels/modules.")
    parser.add_argument("--json", action="store_true", help="all of it, for programs; otherwise one name per line")
    options = parser.parse_args(argv)
    try:
        print(as_json() if options.json else "\n".join(sorted(by_name())))
    except WarpbedError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
