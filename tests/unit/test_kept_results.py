# SPDX-License-Identifier: Apache-2.0
"""The results that tests keep do not fill the disk: those not used for longest go first."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests import kept_results

NAMES = ("experiments/first", "experiments/raw/second", "experiments/third", "experiments/raw/fourth", "kernels/other")


def kept(cache: Path) -> list[str]:
    return [name for name in NAMES if (cache / name).is_dir()]


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    for number, name in enumerate(NAMES):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "data").write_bytes(bytes(100_000))
        os.utime(tmp_path / name, (time.time() - 1000 * (9 - number),) * 2)
    os.utime(tmp_path / "kernels/other", (0, 0))
    assert kept_results.forget(tmp_path, 10**9) == 0 and len(kept(tmp_path)) == 5
    os.utime(tmp_path / "experiments/first")  # used again
    assert kept_results.forget(tmp_path, 250_000) == 2
    assert kept(tmp_path) == ["experiments/first", "experiments/raw/fourth", "kernels/other"]
