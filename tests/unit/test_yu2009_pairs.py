# SPDX-License-Identifier: Apache-2.0
"""Packet pairs through queues against hand calculations and the gaps that the load alone decides."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from analysis.models import yu2009_pairs as model


def test_a_queue_serves_in_order_and_drops_what_finds_it_full() -> None:
    # services of 2: packets at 0, 1, 1.5 and 9 leave at 2, 4, 6 and 11; with room for two the third is lost
    arrivals, service = np.array([0.0, 1.0, 1.5, 9.0]), np.full(4, 2.0)
    assert model.serve(arrivals, service).tolist() == [2, 4, 6, 11]
    assert model.serve(arrivals, service, 3).tolist() == [2, 4, 6, 11]
    assert model.serve(arrivals, service, 2).tolist() == [2, 4, pytest.approx(np.nan, nan_ok=True), 11]


def test_a_packet_that_leaves_makes_room_just_then() -> None:
    left = model.serve(np.array([0.0, 0.0, 0.0, 2.0]), np.full(4, 2.0), 2)
    assert left[:2].tolist() == [2, 4]
    assert np.isnan(left[2])
    assert left[3] == 6


def test_streams_are_joined_in_the_order_of_their_packets() -> None:
    times, service, whose = model.joined((np.array([1.0, 4.0]), 8.0), (np.array([0.0, 2.0]), 1.0))
    assert times.tolist() == [0, 1, 2, 4]
    assert service.tolist() == [1, 8, 1, 8]
    assert whose.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(("kind", "mbps", "share"), [("cbr", 0.25, 1.0), ("poisson", 0.25, 1.0), ("pareto", 0.5, 0.5)])
def test_sources_send_at_their_mean_rate(kind: model.Kind, mbps: float, share: float) -> None:
    until_ms, packets = 2e6, 0
    for seed in range(5):
        packets += len(model.source(kind, mbps, until_ms, Random(seed)))
    assert packets * model.CROSS_BITS / (5 * until_ms * 1e3) == pytest.approx(
        mbps * share, rel=0.1 if kind == "pareto" else 0.02
    )


def test_a_busy_link_leaves_a_probe_s_time_and_what_comes_in_between() -> None:
    """Yu 2009 s4.2.4: up to y = x the output gap is 8 ms and the cross traffic of the input gap."""
    for sources in (1, 2, 3):
        lines = model.lines(model.DUMBBELL, "cbr", sources, 0.25)
        for line in lines:
            assert 8 + line.above_ms[8] == pytest.approx(8 + 0.25 * sources * 8, rel=0.05)


def test_a_second_pair_follows_right_after_one_that_is_under_way() -> None:
    sent = model.pairs(1e6, Random(1), "poisson")
    begins, ends = sent[::2], sent[1::2]
    assert np.all(begins[1:] >= ends[:-1])
    assert np.any(begins[1:] == ends[:-1])
    periodic = model.pairs(1e5, Random(1), "periodic")
    assert np.diff(periodic[::2]) == pytest.approx(np.full(len(periodic) // 2 - 1, 1000.0))
