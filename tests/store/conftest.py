# SPDX-License-Identifier: Apache-2.0
"""What tests of the dashboards share: one filled database per worker."""

from __future__ import annotations

import pytest

from benchmarks import store_lab
from store import debian_server
from tests.store import board_data


@pytest.fixture(scope="session")
def full(timescale: debian_server.Server, tmp_path_factory: pytest.TempPathFactory) -> store_lab.Database:
    """Four experiments of tests.store.board_data."""
    return board_data.filled(timescale, "boards", tmp_path_factory.mktemp("results"))
