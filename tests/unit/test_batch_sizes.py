# SPDX-License-Identifier: Apache-2.0
"""Receivers of very many connections are told in larger batches; fewer connections have the module's own values."""

from pathlib import Path

import pytest

from plan.model import BATCH_MODULE, Module
from testbed.experiments import prepare
from tests import lab


def batching(folder: Path, text: str) -> Module:
    """The module that batches receivers, as the experiment's first run loads it."""
    folder.mkdir(exist_ok=True)
    (module,) = (
        module
        for module in prepare(lab.write(folder, text)).plans[0].modules
        if module.path.endswith(f"{BATCH_MODULE}.ko")
    )
    return module


@pytest.mark.parametrize(
    ("streams", "sizes"),
    [
        ([1], {}),
        ([99], {}),
        ([100], {"start_bytes": "32768", "hold_ms": "40"}),
        ([128, 72], {"start_bytes": "32768", "hold_ms": "60"}),
        ([128] * 60, {"start_bytes": "32768", "hold_ms": "1000"}),
    ],
)
def test_batches_grow_with_hundreds_of_connections(tmp_path: Path, streams: list[int], sizes: dict[str, str]) -> None:
    flows = "\n".join(
        f"  - {{name: f{number}, cca: cubic, from: s1, to: d1, parallel: {several}}}"
        for number, several in enumerate(streams)
    )
    text = lab.SMALL.partition("flows:")[0] + f"flows:\n{flows}\n"
    assert {
        name: value for name, value in batching(tmp_path, text).params.items() if name not in ("ports", "unseen")
    } == sizes


def test_only_what_nobody_looks_at_is_counted_instead_of_read(tmp_path: Path) -> None:
    """iperf3 reads for the number of bytes; a file's receiver writes what it reads."""
    flows = "  - {name: f1, cca: cubic, from: s1, to: d1}\n  - {name: f2, cca: cubic, from: s1, to: d1, app: file, size: 1MB}\n"
    text = lab.SMALL.partition("flows:")[0] + f"flows:\n{flows}"
    assert batching(tmp_path / "some", text).params == {"ports": "5201-5202", "unseen": "5201-5201"}
    without = text + "virtual: {batch_receivers: false}\n"
    assert "unseen" not in batching(tmp_path / "none", without).params
