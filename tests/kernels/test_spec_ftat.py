# SPDX-License-Identifier: Apache-2.0
"""FTAT: its window after one round trip, its reaction to losses, and the module against the specification."""

from __future__ import annotations

import bisect
import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import ftat
from tests.harness import wire_rtts
from tests.harness.differential import compare
from tests.harness.harness import Flow, Hook, Scenario, run
from tests.harness.scenarios import situations
from tests.spec_runs import follows


def feed(spec: ftat.Ftat, acks: int, start_s: float, gap_s: float, *, loss: bool = False) -> float:
    now = start_s
    for _ in range(acks):
        now += gap_s
        spec.on_delivered(spec.delivered + 1)
        spec.on_sample(0.1, 1, now)
        spec.on_control(1, now, loss=loss, limited=True, idle=False)
    return now


def test_after_one_round_trip_the_window_is_what_was_acked_in_it() -> None:
    """64 KB are 45 packets of 1448 bytes; one ACK per 5 ms are 20 in an RTT of 100 ms, and the first one."""
    spec = ftat.Ftat(65536 // 1448)
    feed(spec, 20, 0.0, 0.005)
    assert spec.cwnd == 45
    feed(spec, 1, 0.1, 0.005)
    assert spec.cwnd == 21


@given(st.integers(1, 300))
def test_a_loss_measures_for_one_round_trip_and_cuts_nothing_before(per_round: int) -> None:
    spec = ftat.Ftat(45)
    spec.phase = ftat.Phase.INCREASE
    spec.srtt = 0.1
    spec.cwnd = 200.0
    spec.on_control(1, 0.0, loss=True, limited=True, idle=False)
    feed(spec, per_round - 1, 0.0, 0.1 / per_round)
    assert spec.cwnd == 200
    feed(spec, 1, 0.1, 0.0)
    assert spec.cwnd == pytest.approx(per_round)
    assert spec.threshold == 200
    feed(spec, 1, 0.2, 0.0)
    assert spec.cwnd == pytest.approx(per_round + (1 if per_round < 200 else 1 / per_round))


def test_the_throughput_theorem() -> None:
    """With hardly any loss only the bandwidth counts: B/2 + B/2; losses add sqrt(1/p)/RTT under the root."""
    assert ftat.throughput(1000.0, 1 - 1e-12, 0.1) == pytest.approx(1000.0)
    assert ftat.throughput(1000.0, 0.02, 0.54) > 1000.0


def reference(hook: Hook) -> ftat.Ftat:
    return ftat.Ftat(float(hook.cwnd))


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """No tolerance but where a round trip ends within 2 us of an ACK (1/8 us of srtt adds up): then two packets."""
    follows(kernel, situations("ftat"), reference, 2)


def test_the_first_window_becomes_the_path_s_capacity(kernel: GuestKernel) -> None:
    """2 Mbit/s and 1014-byte frames are 246.5 packets/s, 24.65 in 100 ms; the round trip itself grows by the queue."""
    scenario = Scenario((Flow("ftat", phases=((3.0, None),)),), ("ftat",), seconds=3, rate_mbit=2)
    hooks = [h for h in run(kernel, scenario).flow() if h.hook in "IC"]
    begun = next(i for i, h in enumerate(hooks) if h.hook == "I")
    first = hooks[begun].cwnd
    after = next(h.cwnd for h in hooks[begun:] if h.cwnd != first)
    assert first == 65536 // 948
    assert 25 <= after <= 69


def test_random_loss_does_not_cost_throughput_as_in_afifi_l1(kernel: GuestKernel) -> None:
    """10 Mbit/s, 270 ms one way, 2 % loss: published 1.6 Mbit/s against NewReno's fraction of that."""
    base = Scenario(
        (Flow("ftat", phases=((300.0, None),)),),
        ("ftat",),
        seconds=300,
        rate_mbit=10,
        delay_ms=270,
        loss_percent=2,
        packet_bytes=576,
        buffer_packets=1000,
    )
    got = run(kernel, base)
    reno = run(kernel, dataclasses.replace(base, flows=(Flow("reno", phases=((300.0, None),)),)))
    sent = {name: r.queue[0]["bytes"] * 8 / 300e6 for name, r in (("ftat", got), ("reno", reno))}
    print(sent)
    assert sent["ftat"] > 1.0
    assert sent["ftat"] > 5 * sent["reno"]


PORT = 40000
MSS = 948
"""Of packets of 1000 bytes with time stamps."""
LOSS_FOUND = 1
"""Bit of what a C hook notes."""
INSTANT_S = 2e-6


def test_a_loss_before_any_rtt_is_known_measures_for_the_stack_s_round_trip(kernel: GuestKernel) -> None:
    """A measurement in the first round trip of an algorithm that is chosen late lasts as long as another one.

    At least the path's 100 ms, at most 50 ms of full buffer more (25 packets of 1014 bytes at 4 Mbit/s); the window becomes what was
    delivered meanwhile and not what one ACK delivered.
    """
    scenario = Scenario(
        (Flow("ftat", phases=((8.0, None),), chosen_s=4.0),),
        ("ftat",),
        seconds=8,
        rate_mbit=4,
        buffer_packets=25,
        blackouts=((3.97, 0.005),),
    )
    hooks = list(run(kernel, scenario).flow())
    begun = next(i for i, h in enumerate(hooks) if h.hook == "I")
    cut = next(i for i, h in enumerate(hooks) if i > begun and h.hook == "C" and h.rtt_us & LOSS_FOUND)
    # nothing that left after the choice has been ACKed, and what left before it was sent for another algorithm
    assert (hooks[cut].una - hooks[begun].nxt) % 2**32 > 2**31
    ended = next(i for i, h in enumerate(hooks) if i > cut and h.hook == "C" and h.cwnd != hooks[cut].cwnd)
    lasted_s = (hooks[ended].now_us - hooks[cut].now_us) / 1e6
    counted = hooks[ended - 1].delivered - hooks[cut].delivered
    print(lasted_s, hooks[cut].cwnd, hooks[ended].cwnd, counted)
    assert 0.1 <= lasted_s <= 0.1 + 25 * 1014 * 8 / 4e6 + 0.02
    assert abs(hooks[ended].cwnd - counted) <= 1
    assert counted > 10


def arrived(pcap: bytes, port: int) -> list[tuple[float, int]]:
    """(s, bytes that the receiver has told of so far), after each ACK: the union of what ACK numbers and SACK ranges name, in which
    what came twice (RFC 2883's first range) is there once."""
    base: int | None = None
    acknowledged: list[tuple[int, int]] = []
    times = []
    for now in wire_rtts.segments(pcap):
        if now.destination != port:
            continue
        if base is None:
            base = now.ack
        ranges = [((left - base) % 2**32, (right - base) % 2**32) for left, right in now.sacks]
        ranges = [(left, right) for left, right in ranges if left < right < 2**31]
        union: list[tuple[int, int]] = []
        for left, right in sorted([(0, (now.ack - base) % 2**32), *acknowledged, *ranges]):
            if union and left <= union[-1][1]:
                union[-1] = (union[-1][0], max(union[-1][1], right))
            else:
                union.append((left, right))
        acknowledged = union
        times.append((now.t_s, sum(right - left for left, right in union)))
    return times


class Observed(ftat.Ftat):
    """Notes of each measurement when it began and ended, s, whether the ACK that ended it came too late, and the window that it left."""

    def __init__(self, cwnd: float) -> None:
        super().__init__(cwnd)
        self.now_s = 0.0
        self.seen: list[tuple[float, float, bool, int]] = []

    def on_control(self, acked: int, now_s: float, *, loss: bool, limited: bool, idle: bool) -> None:
        self.now_s = now_s
        super().on_control(acked, now_s, loss=loss, limited=limited, idle=idle)

    def _end(self, late: int) -> None:
        super()._end(late)
        if not self.app_limited:
            self.seen.append((self.begun_s, self.now_s, self.now_s - self.begun_s > self.period_s + 1e-9, self.window))


OVERTAKEN = "ip netns exec snd python3 -c open('/proc/sys/net/ipv4/tcp_recovery','w').write('3')"
DOUBLED = "tc -n wir qdisc change dev wir-rcv root netem delay 30ms rate 10mbit loss 4% duplicate 8% limit 1000000"


@pytest.mark.parametrize(("reorder_percent", "command"), [(1.0, OVERTAKEN), (0.0, DOUBLED)], ids=["sender", "path"])
def test_what_the_receiver_had_already_is_not_counted(
    kernel: GuestKernel, reorder_percent: float, command: str
) -> None:
    """The window after a measurement is what arrived in it for the first time, by ACK numbers and SACK ranges of a capture.

    Sender: packets that overtake others make these look lost, and RACK is told not to learn from it (tcp_recovery 3). Path: 8 % of the
    packets are doubled on their way, more than are sent again.
    """
    scenario = Scenario(
        (Flow("ftat", phases=((20.0, None),)),),
        ("ftat",),
        seconds=20,
        rate_mbit=10,
        delay_ms=30,
        buffer_packets=200,
        reorder_percent=reorder_percent,
        changes=((0.0, command),),
        capture=True,
    )
    result = run(kernel, scenario)
    assert result.counters["snd"]["TCPDSACKRecv"] > 50
    hooks = list(result.flow())
    hooks = hooks[next(i for i, h in enumerate(hooks) if h.hook == "I") :]
    seen = arrived(result.capture, PORT)
    spec = Observed(hooks[0].cwnd)
    assert compare(hooks, lambda hook: spec, 2).mismatches == []
    apart_s = wire_rtts.clocks_apart_s(hooks, result.capture, PORT)
    times = [t_s for t_s, _ in seen]

    def new_bytes(until_s: float) -> int:
        """What the receiver had told of by then, s of the hooks."""
        return seen[bisect.bisect_right(times, until_s - apart_s) - 1][1]

    wrong, twice = [], []
    for begun_s, ended_s, late, window in spec.seen[1:]:  # the first one begins with the connection
        if ended_s - apart_s > times[-1]:  # what is in tcpdump's buffer at the end is not in the capture
            break
        counted = (new_bytes(ended_s + (-INSTANT_S if late else INSTANT_S)) - new_bytes(begun_s + INSTANT_S)) / MSS
        within = [h.duplicates for h in hooks if h.hook == "C" and begun_s <= h.now_us / 1e6 < ended_s]
        twice.append(within[-1] - within[0])
        if abs(window - counted) > 1:
            wrong.append((ended_s, window, counted, twice[-1]))
    print(len(twice), "measurements, with so many packets that came twice:", [n for n in twice if n], wrong)
    assert wrong == []
    assert len(twice) > 50
    assert sum(count > 2 for count in twice) > 20
