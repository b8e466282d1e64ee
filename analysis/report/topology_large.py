# SPDX-License-Identifier: Apache-2.0
"""Draw a network of hundreds of nodes as SVG: from its middle outwards, a ring for each hop, dots instead of boxes.

Nobody reads 600 labels: only the nodes in the middle and those that flows use have names, the others show theirs to the
pointer, and the table below lists all links.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

RADIUS_PX = 430
MARGIN_PX = 70
DOT_PX = 3.2
CORE_DOT_PX = 6
MOST_CORE_LABELS = 40

Point = tuple[float, float]


def draw(
    kinds: Mapping[str, str], around: Mapping[str, Sequence[str]], links: Sequence[tuple[str, str]], used: Sequence[str]
) -> Markup:
    """The SVG. around: each node's neighbours; links: pairs of nodes; used: ends of flows."""
    root = middle(around)
    children, depth = tree(around, root)
    places = positions(children, depth, root)
    size = 2 * (RADIUS_PX + MARGIN_PX)
    out = [
        Markup(
            '<svg class="topology large" viewBox="0 0 {0} {0}" width="{0}" height="{0}" role="img" aria-label="{1}">'
        ).format(size, f"Network of {len(kinds)} nodes and {len(links)} links; the table below lists them")
    ]
    for a, b in links:
        inner = children.get(a, []).count(b) or children.get(b, []).count(a)
        (x1, y1), (x2, y2) = places[a], places[b]
        out.append(
            Markup('<line class="link" x1="{}" y1="{}" x2="{}" y2="{}" stroke-opacity="{}"/>').format(
                f"{x1:.1f}", f"{y1:.1f}", f"{x2:.1f}", f"{y2:.1f}", "0.9" if inner else "0.3"
            )
        )
    named = [*used, *core(children, used)]
    for name, (x, y) in places.items():
        dot = CORE_DOT_PX if name in named else DOT_PX
        kind = "host" if kinds[name] == "host" or name in used else "core"
        out.append(
            Markup('<circle class="node {}" cx="{}" cy="{}" r="{}"><title>{}</title></circle>').format(
                kind, f"{x:.1f}", f"{y:.1f}", dot, f"{name} ({kinds[name]}, {len(around[name])} links)"
            )
        )
    for name in dict.fromkeys(named):
        x, y = places[name]
        out.append(Markup('<text class="node-label" x="{}" y="{}">{}</text>').format(f"{x:.1f}", f"{y - 9:.1f}", name))
    return Markup("").join([*out, Markup("</svg>")])


def middle(around: Mapping[str, Sequence[str]]) -> str:
    """A node half-way along a longest shortest path."""
    start = next(iter(around))
    far = list(_reached(around, start))[-1]
    parents = _reached(around, far)
    path = [list(parents)[-1]]
    while (parent := parents[path[-1]]) is not None:
        path.append(parent)
    return path[len(path) // 2]


def _reached(around: Mapping[str, Sequence[str]], start: str) -> dict[str, str | None]:
    """Nodes in the order of their distance, each with the one before it."""
    parents: dict[str, str | None] = {start: None}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for there in around[here]:
            if there not in parents:
                parents[there] = here
                waiting.append(there)
    return parents


def tree(around: Mapping[str, Sequence[str]], root: str) -> tuple[dict[str, list[str]], dict[str, int]]:
    """A tree of shortest paths: children and depth of every node."""
    children: dict[str, list[str]] = {root: []}
    depth = {root: 0}
    for name, parent in _reached(around, root).items():
        if parent is not None:
            children[parent].append(name)
            children[name] = []
            depth[name] = depth[parent] + 1
    return children, depth


def positions(children: Mapping[str, list[str]], depth: Mapping[str, int], root: str) -> dict[str, Point]:
    """Every subtree gets a share of the circle by its leaves, every depth a ring."""
    leaves: dict[str, int] = {}
    for name in sorted(depth, key=lambda n: -depth[n]):
        leaves[name] = sum(leaves[child] for child in children[name]) or 1
    deepest = max(depth.values()) or 1
    places: dict[str, Point] = {}
    waiting = deque([(root, 0.0, 2 * math.pi)])
    while waiting:
        name, first, last = waiting.popleft()
        angle, radius = (first + last) / 2, RADIUS_PX * depth[name] / deepest
        centre = RADIUS_PX + MARGIN_PX
        places[name] = (centre + radius * math.cos(angle), centre + radius * math.sin(angle))
        at = first
        for child in children[name]:
            share = (last - first) * leaves[child] / leaves[name]
            waiting.append((child, at, at + share))
            at += share
    return places


def core(children: Mapping[str, list[str]], used: Sequence[str]) -> Iterator[str]:
    """The nodes that most others hang on."""
    weight: dict[str, int] = {}

    for name in reversed(list(children)):
        weight[name] = 1 + sum(weight.get(child, 1) for child in children[name])
    largest = sorted(children, key=lambda name: -weight.get(name, 1))
    yield from (name for name in largest[:MOST_CORE_LABELS] if weight.get(name, 1) >= 8 and name not in used)
