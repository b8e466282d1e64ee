# SPDX-License-Identifier: Apache-2.0
"""Colours of lines in figures, reports and dashboards: an algorithm has the same one everywhere."""

from __future__ import annotations

import zlib

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#6d4bb0", "#4d4d4d")
"""Okabe and Ito's, which people with any colour vision tell apart; dashes and marks do it in print."""

SCREEN = ("#0072b2", "#d55e00", "#00896b", "#b5538c", "#8a6d00", "#3b8fc4", "#8463c8", "#777777")
"""The same hues for lines that may stand on white and on black alike, as in Grafana, which has one colour for both its themes: five
that one of them would swallow are darker or lighter, until the contrast is 3:1 with either. The report's page by day has these too; by
night it has lighter ones of the same hues."""

ALGORITHMS = (
    "reno", "cubic", "medley", "vegas", "fast", "ctcp", "bbr", "westwood",
    "creno", "ghighspeed", "ftat", "ttfwc", "highspeed", "iss", "hoe", "scalable",
    "perack", "lbc", "miss", "js", "liss", "ssipp", "past", "spm",
    "astart_bwe", "astart_ere", "hybla", "htcp", "bic", "illinois", "veno", "yeah",
    "cdg", "dctcp", "lp", "nv",
)  # fmt: skip
"""In rows of as many as there are colours: those of a row differ in colour, those of a column in shape and dashes."""


def place(algorithm: str) -> int:
    """An algorithm's own number: its colour is COLOURS[place % len(COLOURS)]. One that is not listed gets a steady one after them."""
    if algorithm in ALGORITHMS:
        return ALGORITHMS.index(algorithm)
    return len(ALGORITHMS) + zlib.crc32(algorithm.encode()) % 1000


def shades(colour: str) -> tuple[str, str, str]:
    """A colour, a lighter and a darker one of its kind: for lines that have it in common."""

    def mixed(share: float, other: int) -> str:
        parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
        return "#" + "".join(f"{round(part * (1 - share) + other * share):02x}" for part in parts)

    return colour, mixed(0.4, 255), mixed(0.35, 0)
