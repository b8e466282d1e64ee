# SPDX-License-Identifier: Apache-2.0
"""The reports that iperf3 is asked for: none, or as often as it takes to notice its own end; and its rounds over many streams."""

from __future__ import annotations

import pytest

from agent.flows import interval_s, rounds


@pytest.mark.parametrize(
    ("version", "size_bytes", "interval"),
    [
        ("iperf 3.12 (cJSON 1.7.15)", 2_000_000, "0"),
        ("iperf 3.12 (cJSON 1.7.15)", None, "0"),
        ("iperf 3.15 (cJSON 1.7.15)", 2_000_000, "0"),
        ("iperf 3.16 (cJSON 1.7.15)", 2_000_000, "0.1"),
        ("iperf 3.18 (cJSON 1.7.15)", 2_000_000, "0.1"),
        ("iperf 3.18 (cJSON 1.7.15)", None, "0"),  # the end of a duration is a timer's
        ("iperf 4.0", 1, "0.1"),
        ("", 1, "0"),
        (None, 1, "0"),
    ],
)
def test_threads_need_reports_to_end_after_some_bytes(
    version: str | None, size_bytes: int | None, interval: str
) -> None:
    assert interval_s(version, size_bytes) == interval


@pytest.mark.parametrize(
    ("version", "streams", "options"),
    [
        ("iperf 3.12 (cJSON 1.7.15)", 99, []),
        ("iperf 3.12 (cJSON 1.7.15)", 100, ["-b", "0/1"]),
        ("iperf 3.18 (cJSON 1.7.15)", 100, []),
        (None, 100, ["-b", "0/1"]),
    ],
)
def test_a_sender_of_many_streams_without_threads_goes_through_them_once(
    version: str | None, streams: int, options: list[str]
) -> None:
    assert rounds(version, streams) == options
