# SPDX-License-Identifier: Apache-2.0
"""Flows of Medley in one queue by the thesis' rules alone: what a queue conserves, chapter 4's climb, what several flows come to."""

from __future__ import annotations

import itertools

import pytest

from kernels.reference.medley_queue import Cross, shared
from kernels.reference.medley_rounds import convergence_rtts

RATE = 1e7 / 8 / 1014
"""Packets a second of 10 Mbit/s, 123 in a round trip of 0.1 s."""


def test_one_flow_fills_the_path_when_chapter_4_says_and_holds_a_handful() -> None:
    """Before that it carries what eq 4.3's windows are; after it the link's rate, with three packets of a cycle to and fro."""
    climb_s = 0.1 * (convergence_rtts(RATE * 0.1, 1000, late=True) or 0.0)
    before, full, later = (
        shared([0.1], RATE, 1000, length_s, host_s=0) for length_s in (0.8 * climb_s, climb_s + 2, climb_s + 12)
    )
    assert 2 < climb_s < 5
    assert before.delivered[0] < 0.7 * RATE * 0.8 * climb_s
    assert later.delivered[0] - full.delivered[0] > 0.99 * RATE * 10
    level = later.queue[-50:]
    assert max(level) < 12 and max(level) - min(level) < 5
    assert later.drops == 0


def test_a_full_link_carries_its_rate_and_no_more() -> None:
    both = shared([0.05, 0.13], RATE, 1000, 60)
    assert 0.95 * RATE * 60 < sum(both.delivered) <= RATE * 60
    assert max(both.queue) <= 1001


def test_three_flows_queue_without_end_by_real_numbers_and_not_in_whole_packets() -> None:
    """Theorem 2's proof sums -1, -1 and +2 to nothing. By real numbers one fall of three flows is enough for each to rise."""
    real, whole = (shared([0.1] * 3, RATE, 1000, 120, whole_packets=one) for one in (False, True))
    early, late = real.queue[200:300], real.queue[-100:]
    assert min(late) > 2 * max(early) > 100
    assert max(whole.queue[-100:]) < 80
    assert real.drops == whole.drops == 0


def test_in_whole_packets_it_has_the_windows_that_s4_3_prints() -> None:
    """382 at t_1 = 20, 422 at t_2 = 28: 50 Mbit/s, packets of 1000 bytes, a BaseRTT of 0.1001664 s, a buffer of 100."""
    alone = shared([0.1001664 - 0.00016], 6250, 100, 3.2, host_s=0)
    seen = [window for window, _ in itertools.groupby(alone.windows)]
    assert seen[seen.index(382) :][:9] == [382, 381, 380, 382, 386, 392, 400, 410, 422]


def test_constant_traffic_of_half_the_rate_is_followed_in_whole_packets_only() -> None:
    """As in experiments/ho2008/fig5.12-buffer-short.yml: beside it a RTT is two BaseRTTs, so that a fall of one is a fall of Delta."""
    cross = Cross(RATE / 2, 40, 80)
    real, whole = (shared([0.1], RATE, 1000, 120, whole_packets=one, cross=cross) for one in (False, True))
    assert whole.windows[790] < 135 < 180 < real.windows[790]
    assert max(whole.queue[900:]) < 15 < 60 < min(real.queue[900:])


@pytest.mark.parametrize("buffer", [50, 100])
def test_what_a_buffer_does_not_hold_is_lost_and_missed(buffer: int) -> None:
    three = shared([0.1] * 3, RATE, buffer, 120, whole_packets=False)
    assert three.drops > 0
    assert max(three.queue) <= buffer + 1
    assert 0.8 * RATE * 120 < sum(three.delivered) <= RATE * 120
