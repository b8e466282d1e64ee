# SPDX-License-Identifier: Apache-2.0
"""What tests of the store and of the dashboards share: results, and databases with and without them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import store_lab
from store import debian_server
from tests.store import board_data


@pytest.fixture(scope="session")
def full(timescale: debian_server.Server, tmp_path_factory: pytest.TempPathFactory) -> store_lab.Database:
    """Four experiments of tests.store.board_data."""
    return board_data.filled(timescale, "boards", tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_lab.results(tmp_path_factory.mktemp("results"))


@pytest.fixture
def database(timescale: debian_server.Server, request: pytest.FixtureRequest) -> Iterator[store_lab.Database]:
    """A new database for each test."""
    name = "t_" + "".join(c if c.isalnum() else "_" for c in request.node.name.lower())[:50]
    yield store_lab.make(timescale, name)
    with store_lab.admin(timescale, "postgres") as admin:
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
