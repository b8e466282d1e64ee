# SPDX-License-Identifier: Apache-2.0
"""Colours of lines are seen on the paper that they stand on, and told apart."""

from __future__ import annotations

import pytest

from analysis import palette

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


def test_the_screens_colours_are_those_of_print_but_for_the_last_three() -> None:
    assert palette.SCREEN[:5] == palette.COLOURS[:5]
    assert len(palette.SCREEN) == len(palette.COLOURS)
