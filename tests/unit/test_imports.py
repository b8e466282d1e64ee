# SPDX-License-Identifier: Apache-2.0
"""A command imports what it needs and not more: what takes long to import is left to those that use it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from base.paths import ROOT

HEAVY = ("ansible", "duckdb", "jinja2", "matplotlib", "numpy", "psycopg", "pyarrow", "rich")
LOADED = "import sys; from testbed import cli; cli.main(sys.argv[1:]); print(*sorted(sys.modules))"


@pytest.mark.parametrize(
    "command",
    [("check", "experiments/quickstart.yml"), ("list", "metrics"), ("list", "topologies")],
    ids=" ".join,
)
def test_a_command_that_computes_nothing_imports_nothing_heavy(command: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-P", "-c", LOADED, *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    modules = done.stdout.splitlines()[-1].split()
    assert "testbed.cli" in modules
    assert [name for name in HEAVY if name in modules] == []
