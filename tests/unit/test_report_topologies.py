# SPDX-License-Identifier: Apache-2.0
"""Every topology has a picture of itself in the report: all nodes are on it, within its frame, and none covers another."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

import topologies
from analysis.report import topology
from testbed.picture import picture


def drawn(name: str, parameters: dict[str, str | int]) -> tuple[topology.Network, ET.Element]:
    network = topology.parse(picture(topologies.build(name, parameters), 60.0))
    assert network is not None
    markup = topology.draw(network, [])
    assert markup is not None, f"{name} is not drawn"
    return network, ET.fromstring(str(markup))


@pytest.mark.parametrize("name", topologies.names())
def test_it_is_drawn_within_its_frame(name: str) -> None:
    network, root = drawn(name, {})
    _, _, width, height = (float(number) for number in root.attrib["viewBox"].split())
    boxes = [tuple(float(box.get(key, "0")) for key in ("x", "y", "width", "height")) for box in root.iter("rect")]
    dots = list(root.iter("circle"))
    assert boxes or dots
    for x, y, wide, high in boxes:
        assert x >= 0 and x + wide <= width and y >= 0 and y + high <= height
    if not dots:
        named = " ".join(text.text or "" for text in root.iter("text"))
        for router in (node for node, kind in network.kinds.items() if kind == "router"):
            assert re.search(rf"\b{router}\b", named), f"{router} is not named"
        for i, (x, y, wide, high) in enumerate(boxes):
            for left, top, w, h in boxes[i + 1 :]:
                apart = x + wide <= left or left + w <= x or y + high <= top or top + h <= y
                assert apart or (left, top) == (x, y) or abs(left - x) < 10, f"{name}: two nodes lie over each other"


def test_a_graph_of_two_hundred_nodes_is_drawn_as_dots() -> None:
    network, root = drawn("transit_stub", {"nodes": 200})
    assert len(list(root.iter("circle"))) >= len(network.kinds) > 60
