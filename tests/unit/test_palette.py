# SPDX-License-Identifier: Apache-2.0
"""Colours of lines are seen on the paper that they stand on, and told apart."""

from __future__ import annotations

import colorsys
import json
import re

import pytest

from analysis import palette
from base.paths import ROOT

WHITE, BLACK = "#ffffff", "#181b1f"
"""Grafana's panels, light and dark."""


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance"""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    """WCAG 2.2: black on white is 21:1; #767676 is the lightest grey of 4.5:1 there."""
    assert contrast("#000000", WHITE) == pytest.approx(21)
    assert contrast("#767676", WHITE) > 4.5 > contrast("#777777", WHITE)


def test_every_colour_of_the_screen_is_seen_on_white_and_on_black() -> None:
    for colour in palette.SCREEN:
        assert min(contrast(colour, WHITE), contrast(colour, BLACK)) >= 3, colour


def test_shades_are_told_apart_and_none_is_lost_in_the_paper() -> None:
    for colour in palette.SCREEN:
        looks = palette.shades(colour)
        assert looks[0] == colour
        for one in looks:
            assert min(contrast(one, WHITE), contrast(one, BLACK)) > 1.8, one
        for first, second in ((0, 1), (0, 2), (1, 2)):
            assert contrast(looks[first], looks[second]) > 1.5, looks
    every = [shade for colour in palette.SCREEN for shade in palette.shades(colour)]
    assert len(set(every)) == len(every)


def hue(colour: str) -> float:
    """Degrees; of a grey 0."""
    return 360 * colorsys.rgb_to_hsv(*(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)))[0]


def reports(theme: str) -> tuple[str, ...]:
    """The colours that the report's page has by day (light) or by night (dark)."""
    script = (ROOT / "analysis/report/js/dom.js").read_text(encoding="utf-8")
    found = re.search(rf"{theme}: {{[^}}]*colours: \[([^\]]*)\]", script)
    assert found is not None
    return tuple(json.loads(f"[{found[1]}]"))


def test_an_algorithm_has_the_same_colour_in_the_report_as_in_the_dashboards() -> None:
    """By day. Grafana has one colour for both its themes; the report's page has a set for each."""
    assert reports("light") == palette.SCREEN


@pytest.mark.parametrize("others", [palette.COLOURS, reports("dark")], ids=["figures for papers", "report by night"])
def test_where_the_colours_are_not_the_same_they_are_of_one_hue(others: tuple[str, ...]) -> None:
    """A place's colour is blue everywhere, or orange, whatever its paper."""
    assert len(others) == len(palette.SCREEN)
    for one, other in zip(palette.SCREEN, others, strict=True):
        assert hue(one) == pytest.approx(hue(other), abs=8), (one, other)


def test_the_night_is_no_darker_than_the_day() -> None:
    for day, night in zip(reports("light"), reports("dark"), strict=True):
        assert contrast(night, BLACK) > contrast(day, BLACK) and contrast(night, BLACK) >= 3
