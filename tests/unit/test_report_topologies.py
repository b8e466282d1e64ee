# SPDX-License-Identifier: Apache-2.0
"""Every topology has a picture of itself in the report: all nodes are on it, within its frame, and none covers another."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

import topologies
from analysis.report import topology
from network.describe import notes
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


def test_a_link_alike_in_both_directions_says_so_also_where_its_host_takes_time() -> None:
    plain = topologies.build("dumbbell", {})
    link = plain.links[0]
    slow_host = replace(link, forward=replace(link.forward, overhead_ns=30_000))
    assert notes(slow_host) == notes(link) == []
    slow_way_back = replace(slow_host, backward=replace(link.backward, delay_ns=5_000_000))
    assert notes(slow_way_back) == ["back 1 Gbit/s 5 ms"]
