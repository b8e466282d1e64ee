# SPDX-License-Identifier: Apache-2.0
"""A kernel series is one entry of kernels/series.json, and a panel one of its dashboard's file: each is added to a copy and used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import lab
from tests.checkout import copied

SERIES = "6.99"
ENTRY = {"suite": "sid", "version": "6.99.1-1", "sha256": "0" * 64}
PANEL = """\
        rows("Oldest runs", "The three runs that were made first.", Query("SELECT run FROM runs r ORDER BY made_at LIMIT 3")),
"""


def python(root: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """A Python program of the copy."""
    return subprocess.run(
        [sys.executable, "-P", *arguments], cwd=root, env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


def test_a_kernel_series_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPBED_USERLAND", "host")  # the guests' own may not be built yet
    root = copied(tmp_path / "checkout", modules=True)
    file = lab.write(tmp_path, f'{lab.SMALL}kernel: "{SERIES}"\n')
    before = python(root, "-m", "testbed", "execute", file, "--results", tmp_path / "results")
    assert before.returncode == 2 and "6.1, 6.12 or 7.2" in before.stderr.replace("'", "")
    known = json.loads((root / "kernels/series.json").read_text())
    (root / "kernels/series.json").write_text(json.dumps(known | {SERIES: ENTRY}))
    after = python(root, "-m", "testbed", "execute", file, "--results", tmp_path / "results")
    assert after.returncode == 1
    assert f"kernel {SERIES} is not built for this checkout; ./warpbed build-kernels --series {SERIES}" in after.stderr
    schema = json.loads(python(root, "-m", "testbed", "schema").stdout)
    assert SERIES in json.dumps(schema)


def test_a_panel_is_one_entry_of_its_dashboard(tmp_path: Path) -> None:
    root = copied(tmp_path / "checkout", modules=True)
    file = root / "dashboards/compare.py"
    start = '        rows(\n            "Quantiles",'
    text = file.read_text()
    assert text.count(start) == 1
    file.write_text(text.replace(start, PANEL + start))
    stale = python(root, "-m", "dashboards.build", "--check")
    assert stale.returncode == 1 and "compare.json" in stale.stderr
    assert python(root, "-m", "dashboards.build").returncode == 0
    panels = json.loads((root / "dashboards/json/compare.json").read_text())["panels"]
    [panel] = [panel for panel in panels if panel["title"] == "Oldest runs"]
    assert panel["targets"][0]["rawSql"] == "SELECT run FROM runs r ORDER BY made_at LIMIT 3"
    assert python(root, "-m", "dashboards.build", "--check").returncode == 0
