# SPDX-License-Identifier: Apache-2.0
"""Receivers of very many connections are told in larger batches; fewer connections have the module's own values."""

from pathlib import Path

import pytest

from testbed.experiments import prepare
from tests import lab


@pytest.mark.parametrize(
    ("streams", "sizes"),
    [
        ([1], {}),
        ([99], {}),
        ([100], {"start_bytes": "131072", "hold_ms": "40"}),
        ([128, 72], {"start_bytes": "131072", "hold_ms": "60"}),
        ([128] * 60, {"start_bytes": "131072", "hold_ms": "1000"}),
    ],
)
def test_batches_grow_with_hundreds_of_connections(tmp_path: Path, streams: list[int], sizes: dict[str, str]) -> None:
    flows = "\n".join(
        f"  - {{name: f{number}, cca: cubic, from: s1, to: d1, parallel: {several}}}"
        for number, several in enumerate(streams)
    )
    text = lab.SMALL.partition("flows:")[0] + f"flows:\n{flows}\n"
    (batching,) = (
        module
        for module in prepare(lab.write(tmp_path, text)).plans[0].modules
        if module.path.endswith("warp_rxbatch.ko")
    )
    assert {name: value for name, value in batching.params.items() if name != "ports"} == sizes
