# SPDX-License-Identifier: Apache-2.0
"""Classic Reno: what one, two and three losses in a window cost, and the module against the specification."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import pytest

from hosts.virtual.launch import GuestKernel
from kernels.reference import creno
from kernels.reference.base import Ack
from tests.harness.differential import LOSS, RECOVERY, compare
from tests.harness.harness import Flow, Hook, Result, Scenario, run_all
from tests.harness.scenarios import rough, standard
from tests.spec_runs import follows

PACKET_S = 1000 * 8 / 5e6
"""A packet of 1000 bytes at the bottleneck's 5 Mbit/s."""
SINGLY = "ip netns exec snd sysctl -qw net.ipv4.tcp_min_tso_segs=1"
"""No two packets at the same instant, of which a router that is shut for a packet's time would take both."""
BYTES = 948
"""That a packet carries: without IP and TCP header and the time stamp option."""
STEADY_S = 12.0


def path(cca: str, lost: int, **changes: object) -> Scenario:
    """A greedy flow of which so many packets in a row are lost once, long after slow start's own losses are repaired.

    The bottleneck is busy, so the packets reach the router that drops them one PACKET_S apart.
    """
    flow = Flow(cca, phases=((14, None),))
    modules = ("creno",) if cca == "creno" else ()
    blackouts = ((STEADY_S, lost * PACKET_S),)
    base = Scenario(
        (flow,), modules, seconds=14, rate_mbit=5, buffer_packets=100, blackouts=blackouts, changes=((-0.5, SINGLY),)
    )
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def reference(hook: Hook) -> creno.ClassicReno:
    return creno.ClassicReno(float(hook.cwnd))


@pytest.mark.parametrize(("losses", "window", "ssthresh"), [(1, 50, 50), (2, 25, 25), (3, 1, 12)])
def test_what_losses_in_one_window_of_100_cost(losses: int, window: int, ssthresh: int) -> None:
    """Tokuda 2003 section 4.2: W / 2 for one, W / 4 for two; from three on one packet, and slow start up to W / 8."""
    spec = creno.ClassicReno(100.0)
    for i in range(min(losses, creno.MOST_FAST_RETRANSMITS)):
        spec.on_loss(1.0)
        spec.on_fast_retransmit(i, 100)
        spec.on_recovered(i, 0)
    if losses > creno.MOST_FAST_RETRANSMITS:
        spec.on_loss(2.0)
        spec.on_timeout(0, 0)
    assert (spec.cwnd, spec.ssthresh) == (window, ssthresh)
    assert spec.wrong == []


def test_a_third_fast_retransmit_in_a_window_is_no_classic_reno() -> None:
    spec = creno.ClassicReno(100.0)
    for una in (0, 10, 20):
        spec.on_fast_retransmit(una, 100)
    assert spec.wrong
    spec = creno.ClassicReno(100.0)
    for una in (0, 10, 100):
        spec.on_fast_retransmit(una, una + 100)
    assert spec.wrong == []


def test_an_ack_counts_for_one_packet_however_many_it_covers() -> None:
    spec = creno.ClassicReno(10.0)
    spec.on_ack(Ack(5, 0.0, 0.1, 5, 10))
    assert spec.cwnd == 11
    spec.ssthresh = 2.0
    spec.on_ack(Ack(5, 0.0, 0.1, 10, 10))
    assert spec.cwnd == pytest.approx(11 + 1 / 11)


def episode(result: Result) -> tuple[int, list[Hook]]:
    """The window when the first of the packets was missed, and the flow's hooks until all that was sent by then is ACKed."""
    hooks = [h for h in result.flow() if h.now_us >= result.start_us + STEADY_S * 1e6]
    first = next(i for i, h in enumerate(hooks) if h.hook == "L")
    end = hooks[first].nxt
    return hooks[first].cwnd, [h for h in hooks[first:] if (h.una - end) % 2**32 >= 2**31]


def holes(hooks: list[Hook]) -> Iterator[int]:
    """Where the cumulative ACK stood still, in packets after the first missing one."""
    seen = []
    for before, h in itertools.pairwise(hooks):
        if h.una == before.una and h.una not in seen:
            seen.append(h.una)
            yield (h.una - hooks[0].una) % 2**32 // BYTES


def test_three_losses_in_a_window_end_in_a_timeout_and_one_and_two_in_fast_recovery(kernel: GuestKernel) -> None:
    """The packets that are missing are those that the router dropped, told by the cumulative ACKs alone."""
    cases = (1, 2, 3)
    results = list(run_all(kernel, [path("creno", lost) for lost in cases]))
    for lost, result in zip(cases, results, strict=True):
        w, hooks = episode(result)
        recoveries = [h for h in hooks if h.hook == "S" and h.count == RECOVERY]
        timeouts = [h for h in hooks if h.hook == "S" and h.count == LOSS]
        assert list(holes(hooks))[:lost] == list(range(lost))
        assert len(recoveries) == min(lost, 2)
        assert len(timeouts) == (lost == 3)
        after = next(h for h in result.flow() if h.now_us > hooks[-1].now_us and h.hook == "A")
        if lost < 3:
            assert after.cwnd == pytest.approx(w / 2**lost, abs=2)
        else:
            assert (timeouts[0].cwnd, timeouts[0].in_flight) == (1, 0)
            assert after.ssthresh == pytest.approx(w / 8, abs=1)
        assert compare(result.flow(), reference, 1).mismatches == []


def test_the_kernels_own_reno_repairs_three_losses_without_a_timeout(kernel: GuestKernel) -> None:
    """What makes creno another algorithm."""
    lossy, smooth = (result.counters["snd"] for result in run_all(kernel, [path("reno", 3), path("reno", 0)]))
    assert lossy["RetransSegs"] - smooth["RetransSegs"] == 3
    assert lossy["TCPTimeouts"] == smooth["TCPTimeouts"] == 0


def test_the_connection_gets_sack_back_when_it_takes_another_algorithm(kernel: GuestKernel) -> None:
    flow = Flow("cubic", phases=((7, None),), chosen_s=5.0, begins_with="creno")
    scenario = Scenario((flow,), ("creno",), seconds=7, rate_mbit=20, buffer_packets=400, trace=False)
    (result,) = run_all(kernel, [scenario])
    fields = result.sockets.split()
    assert "cubic" in fields
    assert "sack" in fields


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """One packet, as with the kernel's own counting; a loss that was none is not undone."""
    follows(kernel, standard("creno") | rough("creno"), reference, 1, undoes=False)
