# SPDX-License-Identifier: Apache-2.0
"""python3 -m base.picture: draw docs/architecture.svg from base.layers, the packages' READMEs and their imports.

A test compares the committed drawing with a fresh one, so it cannot go stale.
"""

from __future__ import annotations

import html
import textwrap
from pathlib import Path

from base.layers import LAYERS, PACKAGES, imports
from base.paths import ROOT, SENT_PACKAGES

FILE = ROOT / "docs/architecture.svg"
WIDTH, MARGIN, GAP = 1000, 16, 12
BOX_HEIGHT, LINE_HEIGHT = 90, 16
PIXELS_PER_CHARACTER = 6.6
"""Of 12-pixel sans-serif text, rounded up."""
TITLE = "The packages of Warpbed, highest layer first; imports point downwards only"
SENT_FILL, FILL = "#e3eefc", "#f6f6f4"
FONT = 'font-family="system-ui, sans-serif" font-size="12"'


def purpose(package: str, root: Path = ROOT) -> str:
    """What a package is for: its README's heading after the colon."""
    heading = next(line for line in (root / package / "README.md").read_text().splitlines() if line.startswith("# "))
    return heading.partition(": ")[2]


def dependencies() -> dict[str, list[str]]:
    """Package → the packages that it imports, in the order of the layers."""
    pairs = {one.packages for one in imports()}
    return {name: [other for other in PACKAGES if (name, other) in pairs] for name in PACKAGES}


def drawing() -> str:
    """The SVG."""
    used = dependencies()
    height = MARGIN + 28 + len(LAYERS) * (BOX_HEIGHT + GAP) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" {FONT} fill="#222">',
        "<!-- SPDX-License-Identifier: Apache-2.0. Made by python3 -m base.picture; do not edit. -->",
        f"<title>{TITLE}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        _text(MARGIN, MARGIN + 12, TITLE, 'font-weight="600" font-size="14"'),
    ]
    top = MARGIN + 28
    for layer in reversed(LAYERS):
        width = (WIDTH - 2 * MARGIN - GAP * (len(layer) - 1)) / len(layer)
        for column, package in enumerate(layer):
            parts += _box(package, used[package], MARGIN + column * (width + GAP), top, width)
        top += BOX_HEIGHT + GAP
    note = f"Blue: also sent to the host of a run ({', '.join(SENT_PACKAGES)}); standard library and Mininet only."
    parts.append(_text(MARGIN, top + 12, note))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(package: str, used: list[str], x: float, y: float, width: float) -> list[str]:
    fill = SENT_FILL if package in SENT_PACKAGES else FILL
    characters = int((width - 24) / PIXELS_PER_CHARACTER)
    below = textwrap.wrap(f"imports {', '.join(used)}", characters) if used else []
    lines = textwrap.wrap(purpose(package), characters)
    shape = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{BOX_HEIGHT}" rx="6" fill="{fill}" stroke="#999"/>'
    parts = [shape, _text(x + 12, y + 20, f"{package}/", 'font-weight="600" font-size="14"')]
    parts += [_text(x + 12, y + 38 + row * LINE_HEIGHT, line) for row, line in enumerate(lines)]
    first = y + BOX_HEIGHT - 10 - (len(below) - 1) * LINE_HEIGHT
    return parts + [_text(x + 12, first + row * LINE_HEIGHT, line, 'fill="#666"') for row, line in enumerate(below)]


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"{" " * bool(attributes)}{attributes}>{html.escape(text)}</text>'


if __name__ == "__main__":
    FILE.write_text(drawing())
