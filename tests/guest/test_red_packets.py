# SPDX-License-Identifier: Apache-2.0
"""RED in packets does what Floyd and Jacobson 1993 say: each frame's chance is computed again from what was seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from hosts.abilities import missing
from hosts.virtual.launch import GuestKernel
from network.link_words import direction
from network.model import Link, Network, Node
from network.tc import egress, own_modules
from tests.links_lab import Traffic, lost, send

MS = 10**6
COUNT = 5000
PACKET_NS = 8 * MS  # 1000 bytes at 1 Mbit/s
WORDS = "red_packets min=10p max=30p p=10% weight=0.02 packet=1000B"
FAST = "steps 0s=1mbit 10s=100mbit"
STEEP = "red_packets min=5p max=50p p=50% weight=0.02 packet=1000B"
JOBS = {
    # frames come 1.3 times too fast: the average passes min, max, and falls again; no two events in one instant
    "hard": Traffic({"rate": "steps 0s=1mbit 1h=1mbit", "delay": "7ms", "buffer": "500p", "queue": WORDS}, COUNT,
        6_131_017, (1000,)),
    "gentle": Traffic(
        {"rate": "steps 0s=1mbit 1h=1mbit", "delay": "7ms", "buffer": "500p", "queue": WORDS + " gentle"},
        COUNT, 4_131_017, (1000,)),
    "idle": Traffic({"rate": FAST, "delay": "7ms", "buffer": "500p", "queue": WORDS}, 3000, 6_131_017, (1000,)),
    # nearly every second frame finds the buffer full; the average stays far below max
    "overfull": Traffic(
        {"rate": "steps 0s=1mbit 1h=1mbit", "delay": "7ms", "buffer": "8p", "queue": STEEP}, COUNT, 4_131_017, (1000,)),
    "shaped": Traffic({"rate": "1mbit", "delay": "7ms", "buffer": "500p", "queue": WORDS}, COUNT, 6_131_017, (1000,)),
    "full": Traffic({"rate": "1mbit", "delay": "1ms", "buffer": "17p", "queue": "red_packets min=100p max=300p"}, 60,
        0, (1000,)),
}  # fmt: skip


@pytest.fixture(scope="module")
def arrivals(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return send(kernel, tmp_path_factory.mktemp("red"), JOBS)


@dataclass
class Frame:
    """What the paper says of one arrival: the average queue, its chance to be dropped, and whether it was."""

    average: float
    chance: float
    dropped: bool
    waiting: int


def paper(measured: Any, name: str, packet_ns: float) -> list[Frame]:
    """Floyd and Jacobson 1993 Fig 2, in floating point, with the queue and the drops that were seen; after an idle time with the
    step of the arrival as well, as ns-2 has it."""
    job, queue = JOBS[name], direction(JOBS[name].words).queue
    assert queue.min_packets and queue.max_packets and queue.probability and queue.weight
    gone, left = (
        lost(measured, job.count),
        dict(zip(measured["number"].tolist(), (measured["arrived"] - 7 * MS).tolist(), strict=True)),
    )
    begin = int(measured["sent"][0])
    frames: list[Frame] = []
    waiting: list[int] = []  # when each packet that was taken leaves
    average, count, empty_since = 0.0, -1, None
    for number in range(job.count):
        now = begin + number * job.gap_ns
        while waiting and waiting[0] <= now:
            empty_since = waiting.pop(0)
        if waiting or empty_since is None:
            average += queue.weight * (len(waiting) - average)
        else:
            average *= (1 - queue.weight) ** (math.floor((now - empty_since) / packet_ns) + 1)
        if average < queue.min_packets:
            count, chance = -1, 0.0
        else:
            count += 1
            share = (average - queue.min_packets) / (queue.max_packets - queue.min_packets) * queue.probability
            if average >= queue.max_packets:
                above = (average - queue.max_packets) / queue.max_packets
                share = queue.probability + (1 - queue.probability) * above if queue.gentle and above < 1 else 1.0
            chance = min(1.0, share / (1 - count * share)) if count * share < 1 else 1.0
        frames.append(Frame(average, chance, bool(gone[number]), len(waiting)))
        if gone[number]:
            count = 0
        else:
            waiting.append(left[number])
    return frames


def assert_chances(frames: list[Frame], near: float = 1e-6) -> None:
    """None goes where none may, all where all must (but for the average's rounding), and between the two as many as the
    chances add up to."""
    assert not any(frame.dropped for frame in frames if frame.average < 10 - near)
    sure = [frame.dropped for frame in frames if frame.chance == 1.0 and abs(frame.average - 30) > near]
    assert all(sure)
    rest = [frame for frame in frames if 0 < frame.chance < 1]
    spread = math.sqrt(sum(frame.chance * (1 - frame.chance) for frame in rest))
    drops = sum(frame.dropped for frame in rest)
    assert drops > 50
    assert abs(drops - sum(frame.chance for frame in rest)) < 3.3 * spread


def test_each_frame_meets_the_papers_chance(arrivals: dict[str, Any]) -> None:
    frames = paper(arrivals["hard"], "hard", PACKET_NS)
    assert max(frame.average for frame in frames) > 20
    assert_chances(frames)


def test_a_full_buffer_s_drops_begin_the_count_anew(arrivals: dict[str, Any]) -> None:
    """ "The number of packets since the last one dropped" (ns-2 counts so too): of the frames that find room."""
    frames = paper(arrivals["overfull"], "overfull", PACKET_NS)
    full = 1 + max(frame.waiting for frame in frames if not frame.dropped)
    room = [frame for frame in frames if frame.waiting < full and 0 < frame.chance < 1]
    drops, expected = sum(frame.dropped for frame in room), sum(frame.chance for frame in room)
    print(drops, expected, len(room), full)
    assert sum(frame.waiting >= full for frame in frames) > 1000
    assert expected > 30
    assert abs(drops - expected) < 3.3 * math.sqrt(sum(frame.chance * (1 - frame.chance) for frame in room))


def test_gentle_lets_the_chance_rise_beyond_max(arrivals: dict[str, Any]) -> None:
    frames = paper(arrivals["gentle"], "gentle", PACKET_NS)
    beyond = [frame for frame in frames if frame.average > 30]
    assert beyond and not all(frame.dropped for frame in beyond)
    assert_chances(frames)


def test_a_queue_that_was_empty_forgets_as_many_packets_as_could_have_been_sent(arrivals: dict[str, Any]) -> None:
    frames = paper(arrivals["idle"], "idle", PACKET_NS / 100)
    assert_chances(frames[: int(10e9 / JOBS["idle"].gap_ns)])
    assert not any(frame.dropped for frame in frames[int(10.5e9 / JOBS["idle"].gap_ns) :])


def test_in_front_of_a_token_bucket_the_packets_inside_it_count(arrivals: dict[str, Any]) -> None:
    """The bucket hands two frames on early, so that the queue is known to within that."""
    frames = paper(arrivals["shaped"], "shaped", PACKET_NS)
    assert not any(frame.dropped for frame in frames if frame.average < 7)
    dropped = np.mean([frame.dropped for frame in frames[2000:]])
    assert 1 - JOBS["shaped"].gap_ns / PACKET_NS == pytest.approx(dropped, abs=0.02)


def test_the_buffer_behind_it_is_exact(arrivals: dict[str, Any]) -> None:
    assert len(arrivals["full"]) == 17 + 3


def test_it_stands_in_front_of_the_shaper() -> None:
    words = {"rate": "1gbit", "buffer": "4167p", "queue": "red_packets min=1042p max=3125p p=10% weight=0.002"}
    place = egress("x", direction(words))
    assert [own.kind for own in place.own] == ["warp_red"]
    assert place.lines[0].startswith("qdisc add dev x parent 1:1 handle 10: tbf rate 1000000000bit")
    assert place.lines[1:] == ("qdisc add dev x parent 10:1 handle 20: pfifo limit 4167",)
    assert own_modules([direction(words)]) == ["warp_red"]


def test_a_host_without_the_module_is_reported() -> None:
    one = direction({"rate": "1mbit", "buffer": "9p", "queue": WORDS})
    network = Network((Node("a"), Node("b")), (Link("a", "b", one, one),))
    config = dict.fromkeys(("CONFIG_NET_SCH_TBF", "CONFIG_NET_SCH_NETEM"), "y")
    assert any("red_packets needs the module warp_red" in line for line in missing(network, config, ()))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("red_packets min=5p", "needs min= and max="),
        ("red_packets min=5KB max=9KB", "min=5KB: packets such as 5p"),
        ("red_packets min=5p max=99999999p", "max=99999999p: packets such as 5p, at most 16777216p"),
        ("red_packets min=9p max=9p", "min=9p is not below max=9p"),
        ("red_packets min=5p max=9p adaptive", "adaptive"),
        ("red min=5p max=9p gentle", "gentle"),
        ("red_packets min=5p max=9p weight=0", "weight=0"),
    ],
)
def test_wrong_words_are_refused(words: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        direction({"rate": "10mbit", "buffer": "90p", "queue": words})
