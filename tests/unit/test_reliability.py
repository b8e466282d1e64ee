# SPDX-License-Identifier: Apache-2.0
"""docs/reliability.md says what docs/reliability.json holds."""

from __future__ import annotations

import pytest

from tests import reliability


def test_the_page_is_made_from_the_measurements() -> None:
    """`python -m tests.reliability` writes it again."""
    text = reliability.PAGE.read_text()
    assert reliability.page(text, reliability.read()) == text


def test_a_number_that_was_typed_is_noticed() -> None:
    text = reliability.PAGE.read_text()
    line = next(line for line in text.splitlines() if line.startswith("| `store load`"))
    typed = text.replace(line, line.replace("| EIO |", "| EI0 |"))
    assert typed != text == reliability.page(typed, reliability.read())


def test_a_page_without_a_place_for_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="0 places for the table faults"):
        reliability.page("nothing", {})
