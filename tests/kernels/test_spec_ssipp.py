# SPDX-License-Identifier: Apache-2.0
"""SSIPP: what pairs and their ACKs are, the module against the specification, and the pairs on the wire."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import ssipp
from kernels.reference.inverted import Answer, Pairs
from tests.harness import wire_rtts
from tests.harness.harness import Flow, Hook, run_all
from tests.harness.scenarios import situations, standard
from tests.spec_runs import follows


@given(first=st.integers(0, 2**32 - 1), pairs=st.integers(1, 50))
def test_each_pair_explains_one_duplicate_ack_and_the_next_one_is_real(first: int, pairs: int) -> None:
    """Sequence numbers may wrap anywhere."""
    known = Pairs()
    known.acknowledged(first, 1, 0.0)
    for i in range(pairs):
        known.sent((first + 2000 * i) % 2**32, 0.0)
    for i in range(pairs):
        una = (first + 2000 * i) % 2**32
        assert known.acknowledged(una, 0, i + 0.1)[0] is Answer.FIRST
        assert known.acknowledged(una, 0, i + 0.2)[0] is Answer.DUPLICATE
        assert known.acknowledged((una + 2000) % 2**32, 2, i + 0.3)[0] is Answer.SECOND
    assert not known.under_way


def test_an_expected_duplicate_ack_raises_the_window_once_and_the_pairs_ack_once_more() -> None:
    spec = ssipp.Ssipp(10.0)
    spec.on_acknowledged(1000, 1, 0.0, limited=True)
    spec.on_pair(1000, 0.0)
    spec.on_acknowledged(1000, 0, 0.1, limited=True)
    assert spec.cwnd == 11
    spec.on_acknowledged(1000, 0, 0.2, limited=True)
    assert (spec.cwnd, spec.inverting) == (11, False)


def reference(hook: Hook) -> ssipp.Ssipp:
    new = hook.delivered <= 1  # the SYN alone
    assert bool(hook.count) == new  # the stage between TCP and IP is in place
    return ssipp.Ssipp(float(hook.cwnd), new=new)


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """One packet: the kernel's count of ACKed packets in avoidance is whole."""
    got = follows(kernel, situations("ssipp"), reference, 1)
    assert all(got[name].pairs > 100 for name in ("growth", "burst loss", "delayed ACKs"))


def test_the_module_s_pairs_are_those_on_the_wire(kernel: GuestKernel) -> None:
    """The specification is told of pairs by the module; a capture of the sender's interface knows of none but its own."""
    base = dataclasses.replace(standard("ssipp")["growth"], seconds=3, capture=True, buffer_packets=2000)
    cases = [
        dataclasses.replace(base, quickack=quickack, flows=(Flow("ssipp", phases=((1.5, None),)),))
        for quickack in (True, False)
    ]
    for result in run_all(kernel, cases):
        counts = [h.count for h in result.flow() if h.hook == "D"]
        seen = wire_rtts.inversions(result.capture, 40000)
        assert len(counts) > 100
        assert [seq for seq, _ in seen] == counts
        assert max(gap_s for _, gap_s in seen) < 1e-6


def test_pairs_arrive_inverted_and_delayed_acks_then_cost_slow_start_nothing(kernel: GuestKernel) -> None:
    """Short transfers as in Yu figure 3-2, with a receiver that delays ACKs: pairs arrive out of order, nothing is sent twice.

    Linux' own slow start counts the packets that an ACK covers, so delayed ACKs do not hold it back as they do the
    thesis' Reno: SSIPP sends as much as it in the same time, and not more.
    """
    base = dataclasses.replace(
        standard("ssipp")["delayed ACKs"],
        seconds=1.2,
        rate_mbit=100,
        buffer_packets=2000,
        flows=(Flow("ssipp", phases=((1.1, None),)),),
    )
    scenarios = [
        dataclasses.replace(base, sack=sack, flows=(Flow(cca, phases=((1.1, None),)),))
        for cca in ("ssipp", "reno")
        for sack in (True, False)
    ]
    results = list(run_all(kernel, scenarios))
    for result in results[:2]:
        pairs = sum(h.hook == "D" for h in result.hooks)
        assert pairs > 200
        # those of the last round trip may be under way when the counters are read
        settled = sum(h.hook == "D" and h.now_us < result.hooks[-1].now_us - 200_000 for h in result.hooks)
        assert 100 < settled <= result.counters["rcv"]["TCPOFOQueue"] <= pairs
        assert result.counters["snd"]["RetransSegs"] == 0
    for result in results[2:]:
        assert result.counters["rcv"]["TCPOFOQueue"] == 0
    sent = [result.queue[0]["packets"] for result in results]
    assert sent[0] >= sent[2] and sent[1] >= sent[3]


def test_a_loss_ends_inversion_and_nothing_is_left_behind(kernel: GuestKernel) -> None:
    """20 packets of buffer overflow at the end of slow start; all data that was lost is sent again, in order, by the kernel."""
    scenario = dataclasses.replace(
        standard("ssipp")["burst loss"], seconds=8, flows=(Flow("ssipp", phases=((8.0, None),)),)
    )
    (result,) = run_all(kernel, [scenario])
    hooks = list(result.flow())
    lost = next(i for i, h in enumerate(hooks) if h.hook == "L")
    assert any(h.hook == "D" for h in hooks[:lost])
    assert not any(h.hook == "D" for h in hooks[lost:])
    assert hooks[-1].delivered > 80 * 61  # a window of at least ssthresh in each of the 80 round trips
