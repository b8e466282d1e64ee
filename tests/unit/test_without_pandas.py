# SPDX-License-Identifier: Apache-2.0
"""Arrow is kept from importing pandas in the processes of a run, and only from that."""

import subprocess
import sys

import pytest

pytest.importorskip("pandas")

PROGRAM = """
import sys
import pyarrow
from analysis.arrays import without_pandas

{call}
pyarrow.array([1.0]).to_numpy(zero_copy_only=False)
print("pandas" in sys.modules)
print(pyarrow.table({{"a": [1, 2]}}).to_pandas().shape)
"""


def _printed(call: str) -> list[str]:
    program = [sys.executable, "-c", PROGRAM.format(call=call)]
    return subprocess.run(program, check=True, capture_output=True, text=True).stdout.splitlines()


def test_arrow_imports_pandas_when_asked_for_a_frame_and_not_before() -> None:
    assert _printed("without_pandas()") == ["False", "(2, 1)"]
    assert _printed("") == ["True", "(2, 1)"]  # else there is nothing left to avoid
