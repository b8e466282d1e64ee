# SPDX-License-Identifier: Apache-2.0
"""The verdict on a link's rate: only while it is surely busy has a link to send at its rate."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis import verdict
from network.link_words import direction

RATE_BYTES = 50e6 / 8
FRAME = 1014


def reasons(monkeypatch: pytest.MonkeyPatch, every_ms: int, backlog_packets: Any, share: Any, buffer: str) -> list[Any]:
    """Of a link of 50 Mbit/s that for 20 s has so much waiting at each sample, and sends this share of what it could.

    Both may be arrays, a value for each sample; the share is that of the time until the next one.
    """
    time_ns = np.arange(0, 20_000, every_ms, dtype=np.int64) * 1_000_000
    waiting = np.broadcast_to(backlog_packets, time_ns.shape)
    sent = np.cumsum(np.broadcast_to(share, time_ns.shape) * RATE_BYTES * every_ms / 1000)
    columns = {
        "time_ns": time_ns,
        "backlog_packets": waiting,
        "backlog_bytes": waiting * FRAME,
        "sent_bytes": np.concatenate(([0], sent[:-1])).astype(np.int64),
        "drops": np.zeros(len(time_ns), np.int64),
    }
    interface = SimpleNamespace(name="r1-r2", egress=direction({"rate": "50mbit", "buffer": buffer}))
    monkeypatch.setattr(verdict, "_queues", lambda _: [(interface, columns)])
    evidence: Any = SimpleNamespace(plan=SimpleNamespace(realtime=False), facts={"start_realtime_ns": 0})
    return list(verdict._rate(evidence))


def test_a_link_that_sends_too_little_while_packets_wait_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    (reason,) = reasons(monkeypatch, 10, 40, 0.7, "50p")
    assert reason.rule == "rate" and "35.000 Mbit/s under load, 50.000 asked" in reason.message
    assert reasons(monkeypatch, 10, 40, 1.0, "50p") == []


def waves() -> Any:
    """Packets that wait, every 10 ms: from 10 up to 40 and down again in 100 ms, with none for 300 ms every two seconds."""
    two_seconds = np.concatenate((np.tile([10, 16, 24, 32, 40, 40, 32, 24, 16, 10], 17), np.zeros(30, np.int64)))
    return np.tile(two_seconds, 10)


def test_a_queue_that_ran_empty_between_two_samples_is_no_slow_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 50 Mbit/s 61 packets are sent in 10 ms: what happened between two samples of ten packets these do not say.

    In the first half of the run the link stood still for 1 ms between the lowest two samples of each wave: no fault is shown.
    Where it sends 1 % less in every wave, or all the time, it is too slow.
    """
    waiting = waves()
    lowest = (waiting == 10) & (np.roll(waiting, -1) == 10)
    some = lowest & (np.arange(len(waiting)) // 10 % 200 < 100)
    assert reasons(monkeypatch, 10, waiting, np.where(some, 0.9, 1.0), "50p") == []
    for slow in (np.where(waiting > 10, 0.99, 1.0), np.full(len(waiting), 0.99)):
        (reason,) = reasons(monkeypatch, 10, waiting, slow, "50p")
        assert reason.rule == "rate" and "under load, 50.000 asked" in reason.message


def test_a_burst_at_each_sample_is_no_load_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 packets are sent in 6.5 ms: samples 100 ms apart do not say what the link did after that."""
    assert reasons(monkeypatch, 100, 40, 0.3, "50p") == []


def test_samples_far_apart_say_enough_where_what_waits_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """617 packets are what the link sends in 100 ms."""
    assert reasons(monkeypatch, 100, 616, 0.3, "1000p") == []
    assert [reason.rule for reason in reasons(monkeypatch, 100, 617, 0.3, "1000p")] == ["rate"]


def test_a_link_never_sends_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    given = reasons(monkeypatch, 100, 0, 1.2, "50p")
    assert len(given) == 1 and "in one second" in given[0].message
