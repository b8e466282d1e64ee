# SPDX-License-Identifier: Apache-2.0
"""Fuzzing that is guided by what an input reaches: some inputs here, by hand as long as one likes (tests/fuzz/guided.py)."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests import lab

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("atheris") is None, reason="Atheris has no wheel for this architecture"
    ),
]

BREAKS = """
import sys
from tests.fuzz import guided

def read(target, data):
    if len(data) > 3:
        if data[0] == ord("?"):
            if data[1] == ord("!"):
                raise KeyError("both")
    return ""

guided.TARGETS["trace"].read = guided.atheris.instrument_func(read)
sys.exit(guided.main())
"""


def fuzz(
    *arguments: str, script: str = "from tests.fuzz import guided; raise SystemExit(guided.main())"
) -> tuple[int, str]:
    command = [sys.executable, "-P", "-c", script, *arguments]
    done = subprocess.run(command, cwd=lab.ROOT, capture_output=True, text=True, check=False, timeout=600)
    return done.returncode, done.stdout + done.stderr


def test_changes_reach_more_than_the_good_files_and_find_nothing(tmp_path: Path) -> None:
    code, said = fuzz("trace", "--seconds", "500", "--inputs", "400", "--seed", "1", "--found", str(tmp_path))
    assert code == 0, said
    assert "400 inputs" in said
    assert "0 findings" in said
    first, last = (int(word) for word in said.partition("from ")[2].partition(" places")[0].split(" to "))
    assert 0 < first < last


def test_what_reached_more_is_where_the_next_call_begins(tmp_path: Path) -> None:
    arguments = ("trace", "--seconds", "500", "--corpus", str(tmp_path / "corpus"), "--found", str(tmp_path / "found"))
    first, then = (fuzz(*arguments, "--inputs", count, "--seed", "1")[1] for count in ("400", "60"))
    reached = first.partition(" to ")[2].partition(" places")[0]
    assert int(then.partition("from ")[2].partition(" to ")[0]) >= int(reached)


def test_a_reader_that_breaks_behind_two_conditions_is_found_and_its_input_kept(tmp_path: Path) -> None:
    code, said = fuzz(
        "trace", "--seconds", "500", "--inputs", "60000", "--seed", "1", "--found", str(tmp_path), script=BREAKS
    )
    assert code == 1, said
    assert "KeyError at" in said
    (kept,) = (file for file in tmp_path.iterdir() if file.suffix != ".txt")
    assert kept.read_bytes()[:2] == b"?!"
