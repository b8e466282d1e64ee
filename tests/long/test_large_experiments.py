# SPDX-License-Identifier: Apache-2.0
"""Experiment files of hundreds of runs over hundreds of nodes are valid; tests/unit/test_experiment_files.py says so of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.experiments import prepare
from tests import lab


@pytest.mark.parametrize("file", sorted((lab.ROOT / "experiments/yu2009").glob("*.yml")), ids=lambda f: f.stem)
def test_every_shipped_experiment_of_yu_is_valid_and_fit_to_run(file: Path) -> None:
    prepared = prepare(file)
    assert prepared.runs and not prepared.errors
