# SPDX-License-Identifier: Apache-2.0
"""Texts of results in tables that a person can read."""

from __future__ import annotations

from analysis.reproduction.markdown import few


def test_sentences_that_differ_in_numbers_are_one() -> None:
    sentences = ["508 kbit: 13.7 round trips", "1008 kbit: 21.9 round trips", "no number", "508 kbit: 13.7 round trips"]
    assert few(sentences) == "508 kbit: 13.7 round trips (1 more with other numbers); no number"


def test_of_many_kinds_the_first_are_shown_and_the_others_counted() -> None:
    assert few(["a 1", "b 1", "c 1", "d 1", "d 2", "e 1"]) == "a 1; b 1; c 1; 2 more"
    assert few([]) == ""
