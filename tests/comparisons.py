# SPDX-License-Identifier: Apache-2.0
"""What runs come to beside an entry of a thesis, without a folder of results."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.models.checks import Check
from analysis.reproduction.measured import MEASURED
from analysis.results import Run
from schema.catalogue import catalogues
from testbed.reproduction import bindings  # noqa: F401 (registers what functions decide)
from tests import lab


def decided(name: str, runs: Sequence[Run]) -> list[Check]:
    """name: of an entry that a function with @compares decides, such as yu2009-fig2.11"""
    thesis = name.partition("-")[0]
    entry = {one.id: one for one in catalogues(lab.ROOT)[thesis].entries}[name]
    (compare,) = (row[2] for (one, _), row in MEASURED.items() if one == name)
    return list(compare(entry, runs))
