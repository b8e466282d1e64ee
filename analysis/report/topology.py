# SPDX-License-Identifier: Apache-2.0
"""Draw a network from its list of nodes and links as SVG, left to right along the data.

Routers stand in columns by their distance from the first sender, leaf hosts beside the router that they hang on; many
equal hosts on one router become one stack.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from analysis.report import topology_large
from base.quantities import format_rate, format_time

MOST_NODES = 60  # more than this are drawn as dots
STACK_FROM = 4  # this many equal hosts on one router are drawn as one
COLUMN_PX, ROW_PX, NODE_W, NODE_H = 190, 66, 84, 34


@dataclass(frozen=True)
class Link:
    """Texts with units; several values of a sweep stand beside each other. `rate_bps` is the lowest."""

    a: str
    b: str
    rate_bps: float | None
    rate: str
    delay: str
    buffer: str
    loss: str
    notes: str = ""

    @property
    def label(self) -> str:
        loss = f"loss {self.loss}" if self.loss else ""
        return " · ".join(part for part in (self.rate, self.delay, loss, self.notes) if part)


@dataclass(frozen=True)
class Network:
    kinds: Mapping[str, str]
    links: tuple[Link, ...]

    def neighbours(self) -> dict[str, list[str]]:
        neighbours_of: dict[str, list[str]] = {name: [] for name in self.kinds}
        for link in self.links:
            neighbours_of[link.a].append(link.b)
            neighbours_of[link.b].append(link.a)
        return neighbours_of


def parse(topology: Any) -> Network | None:
    """The network of environment.topology, None where it is not there or not well formed."""
    if not isinstance(topology, dict):
        return None
    nodes, rows = topology.get("nodes"), topology.get("links")
    if not isinstance(nodes, list) or not isinstance(rows, list) or not nodes:
        return None
    kinds = {str(node.get("name")): str(node.get("kind") or "host") for node in nodes if isinstance(node, dict)}
    links = tuple(
        _parse_link(row)
        for row in rows
        if isinstance(row, dict) and str(row.get("a")) in kinds and str(row.get("b")) in kinds
    )
    return Network(kinds, links)


def _parse_link(row: Mapping[str, Any]) -> Link:
    rate_bps, delay_s, loss = (_positive(row.get(name)) for name in ("rate_bps", "delay_s", "loss"))
    return Link(
        a=str(row.get("a")),
        b=str(row.get("b")),
        rate_bps=rate_bps,
        rate=format_rate(rate_bps) if rate_bps else "",
        delay=format_time(delay_s * 1e9) if delay_s else "",
        buffer="" if row.get("buffer") is None else str(row["buffer"]),
        loss=f"{loss * 100:.3g} %" if loss else "",
        notes=str(row.get("notes") or ""),
    )


def merge(networks: Sequence[Network]) -> Network:
    """Networks of the same nodes and links as one, each link with all the values that it takes."""
    links = []
    for same in zip(*(network.links for network in networks), strict=True):
        rates = [link.rate_bps for link in same if link.rate_bps]
        texts = {
            name: _values([getattr(link, name) for link in same])
            for name in ("rate", "delay", "buffer", "loss", "notes")
        }
        links.append(Link(same[0].a, same[0].b, min(rates, default=None), **texts))
    return Network(networks[0].kinds, tuple(links))


def _values(texts: Sequence[str]) -> str:
    """Each different text once; more than three are first and last."""
    different = list(dict.fromkeys(text or "none" for text in texts))
    if different == ["none"]:
        return ""
    units = {text.partition(" ")[2] for text in different}
    if len(units) == 1:  # 50 | 250 packets
        different = [*(text.partition(" ")[0] for text in different[:-1]), different[-1]]
    return " | ".join(different) if len(different) <= 3 else f"{different[0]} … {different[-1]}"


def draw(network: Network, senders: Sequence[str]) -> Markup | None:
    """The SVG, None for a network that is not one."""
    stacks = _stacks(network, senders)
    shown = [name for name in network.kinds if stacks.get(name, [name])[0] == name]
    if len(shown) > MOST_NODES:
        around = network.neighbours()
        if any(not peers for peers in around.values()):
            return None
        pairs = [(link.a, link.b) for link in network.links]
        return topology_large.draw(network.kinds, around, pairs, [name for name in senders if name in network.kinds])
    places = _places(network, shown, senders)
    longest = max((len(text) for link in network.links for text in (link.label, f"buffer {link.buffer}")), default=0)
    column_px = max(COLUMN_PX, NODE_W + 7 * longest)
    width = (max(x for x, _ in places.values()) + 1) * column_px
    height = (max(y for _, y in places.values()) + 1) * ROW_PX + 10
    centre = {name: (x * column_px + column_px / 2, y * ROW_PX + ROW_PX / 2 + 5) for name, (x, y) in places.items()}
    out = [
        Markup('<svg class="topology" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">').format(
            f"{width:g}",
            f"{height:g}",
            f"{width:g}",
            f"{height:g}",
            f"Network of {len(network.kinds)} nodes and {len(network.links)} links; the table below lists them",
        )
    ]
    slowest = min((link.rate_bps for link in network.links if link.rate_bps), default=None)
    labelled: set[tuple[str, str]] = set()
    for link in network.links:
        if link.a in centre and link.b in centre:
            out.append(_link(link, centre, link.rate_bps == slowest, labelled, network))
    for name in shown:
        out.append(_node(name, network.kinds[name], stacks.get(name, [name]), centre[name]))
    out.append(Markup("</svg>"))
    return Markup("").join(out)


def _stacks(network: Network, senders: Sequence[str]) -> dict[str, list[str]]:
    """Leaf hosts with equal links to one router and the same part, by each member's name."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    around = network.neighbours()
    for link in network.links:
        for leaf, hub in ((link.a, link.b), (link.b, link.a)):
            if network.kinds[leaf] == "host" and len(around[leaf]) == 1:
                key = (hub, leaf in senders, link.label, link.buffer)
                groups.setdefault(key, []).append(leaf)
    return {name: members for members in groups.values() if len(members) >= STACK_FROM for name in members}


def _places(network: Network, shown: Sequence[str], senders: Sequence[str]) -> dict[str, tuple[float, float]]:
    around = network.neighbours()
    leaves = {name for name in shown if len(around[name]) == 1 and network.kinds[name] == "host"}
    core = [name for name in network.kinds if name not in leaves and (name in shown)]
    root = next((name for name in senders if name in network.kinds), next(iter(network.kinds)))
    distance = _distances(around, root)
    column: dict[str, float] = {name: float(distance.get(name, 0)) for name in core}
    first, last = min(column.values(), default=1.0), max(column.values(), default=1.0)
    rows: dict[float, list[str]] = {}
    for name in sorted(core, key=lambda node: (column[node], list(network.kinds).index(node))):
        rows.setdefault(column[name], []).append(name)
    beside: dict[float, list[str]] = {}
    for name in shown:
        if name not in leaves:
            continue
        at = column.get(around[name][0], first)
        side = at - 1 if at == first and (name in senders or first != last) else at + 1 if at == last else at
        column[name] = side
        beside.setdefault(side, []).append(name)
    places: dict[str, tuple[float, float]] = {}
    for names in (rows, beside):
        for x, members in names.items():
            middle = names is beside and x in rows
            for index, name in enumerate(members):
                # Hosts of a router inside the chain alternate above and below it.
                y = (index // 2 + 1) * (-1 if index % 2 else 1) if middle else index - (len(members) - 1) / 2
                places[name] = (x, float(y))
    left, top = min(x for x, _ in places.values()), min(y for _, y in places.values())
    return {name: (x - left, y - top) for name, (x, y) in places.items()}


def _distances(around: Mapping[str, Sequence[str]], root: str) -> dict[str, int]:
    distances, waiting = {root: 0}, deque([root])
    while waiting:
        here = waiting.popleft()
        for there in around[here]:
            if there not in distances:
                distances[there] = distances[here] + 1
                waiting.append(there)
    return distances


def _link(
    link: Link,
    centre: Mapping[str, tuple[float, float]],
    slowest: bool,
    labelled: set[tuple[str, str]],
    network: Network,
) -> Markup:
    (x1, y1), (x2, y2) = centre[link.a], centre[link.b]
    line = Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(
        "link slow" if slowest else "link", f"{x1:g}", f"{y1:g}", f"{x2:g}", f"{y2:g}"
    )
    hub = link.b if network.kinds[link.a] == "host" else link.a
    if (hub, link.label) in labelled:  # equal access links of one router need one label
        return line
    labelled.add((hub, link.label))
    x, y = (x1 + x2) / 2, (y1 + y2) / 2
    text = Markup('<text class="link-label" x="{}" y="{}">{}</text>').format(f"{x:g}", f"{y - 8:g}", link.label)
    buffer = Markup("")
    if link.buffer:
        buffer = Markup('<text class="link-label" x="{}" y="{}">buffer {}</text>').format(
            f"{x:g}", f"{y + 17:g}", link.buffer
        )
    return line + text + buffer


def _node(name: str, kind: str, stack: Sequence[str], at: tuple[float, float]) -> Markup:
    x, y = at
    left, top = x - NODE_W / 2, y - NODE_H / 2
    behind = Markup("")
    title = name
    if len(stack) > 1:
        title = f"{stack[0]} … {stack[-1]}"
        for shift in (8, 4):
            behind += Markup('<rect class="node host" x="{}" y="{}" width="{}" height="{}" rx="3"/>').format(
                f"{left + shift:g}", f"{top - shift:g}", NODE_W, NODE_H
            )
    shape = Markup('<rect class="node {}" x="{}" y="{}" width="{}" height="{}" rx="{}"/>').format(
        "host" if kind == "host" else "core",
        f"{left:g}",
        f"{top:g}",
        NODE_W,
        NODE_H,
        3 if kind == "host" else NODE_H / 2,
    )
    label = title if len(title) <= 12 else title[:11] + "…"
    tip = Markup("<title>{}</title>").format(f"{title} ({kind})")
    text = Markup('<text class="node-label" x="{}" y="{}">{}</text>').format(f"{x:g}", f"{y + 5:g}", label)
    return Markup("<g>") + tip + behind + shape + text + Markup("</g>")


def _positive(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None
