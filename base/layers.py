# SPDX-License-Identifier: Apache-2.0
"""The order of the packages: each imports from those before it, and from no other.

The picture of the architecture (docs/architecture.md) and tests/unit/test_layers.py are made from it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from base.paths import ROOT

LAYERS: tuple[tuple[str, ...], ...] = (
    ("base",),
    ("kernels", "network"),
    ("plan",),
    ("agent", "collectors", "schema"),
    ("analysis", "topologies", "hosts"),
    ("store", "dashboards"),
    ("testbed",),
    ("benchmarks", "playbooks", "python"),
)
"""From the bottom up. Packages of one layer import each other in one direction only, which the order within it says."""

PACKAGES = tuple(name for layer in LAYERS for name in layer)

RUN_PACKAGES = tuple(name for name in PACKAGES[: PACKAGES.index("testbed") + 1] if name not in ("store", "dashboards"))
"""What making runs and reading results needs: it travels to workers, and a wheel holds it."""


@dataclass(frozen=True)
class Import:
    """One package's file that imports a file of another package. Paths are relative to the checkout."""

    importer: str
    line: int
    imported: str

    @property
    def packages(self) -> tuple[str, str]:
        return self.importer.partition("/")[0], self.imported.partition("/")[0]

    @property
    def is_upward(self) -> bool:
        importer, imported = self.packages
        return imported not in PACKAGES or PACKAGES.index(imported) > PACKAGES.index(importer)


def imports(root: Path = ROOT) -> Iterator[Import]:
    """Every import between two packages, those inside functions as well."""
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            for line, module in _imported(ast.parse(file.read_text())):
                target = _file_of(root, module)
                if target is not None and target.partition("/")[0] != package:
                    yield Import(str(file.relative_to(root)), line, target)


def _imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _file_of(root: Path, module: str) -> str | None:
    """The file of a module, or of the module that holds a name; None where it is not one of the project's."""
    parts = module.split(".")
    if parts[0] not in (*PACKAGES, "tests"):
        return None
    for length in (len(parts), len(parts) - 1):
        path = "/".join(parts[:length])
        for name in (f"{path}.py", f"{path}/__init__.py"):
            if (root / name).is_file():
                return name
    return None
