# SPDX-License-Identifier: Apache-2.0
"""What algorithms that measure delays rest on: which RTTs count, packets that leave one by one, and what is a timeout."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from hosts.virtual.launch import GuestKernel
from kernels.reference import ctcp, fast, ftat, ghighspeed, medley
from kernels.reference.base import Specification
from tests.harness import wire_rtts
from tests.harness.differential import compare
from tests.harness.harness import Flow, Hook, Result, Scenario, run_all
from tests.harness.samples import Samples
from tests.spec_runs import timed_out

PORT = 40000
MSS = 948
"""Of packets of 1000 bytes with time stamps."""
FRAME = 1014
TOGETHER_S = 20e-6
LOSS = 4
"""TCP_CA_Loss"""


def bulk(cca: str, seconds: float) -> tuple[Flow, ...]:
    return (Flow(cca, phases=((seconds, None),)),)


# Ten messages of 10 bytes, as much as the window lets, a short gap in which packets are lost, and small messages in between:
# 20 Mbit/s and an RTT of 50.9 ms, of which a time stamp in milliseconds cuts up to 0.9.
TRAPS = Scenario(
    (Flow("medley", phases=((0.1, 1000.0), (7.9, None), (0.5, 5000.0), (3.5, None))),),
    ("medley",),
    seconds=12,
    rate_mbit=20,
    delay_ms=25.25,
    blackouts=((3.0, 0.004), (5.0, 0.004)),
    capture=True,
)


class Credulous(Samples):
    """Believes every sample that the stack gives, as the modules did."""

    def rtt_s(self, hook: Hook) -> float | None:
        return hook.rtt_us / 1e6 if hook.rtt_us > 0 else None


def believed(hooks: Sequence[Hook]) -> list[tuple[int, float]]:
    """(ACK number, RTT) of the samples that count, from the first hook on."""
    samples, estimates = Samples(hooks[0]), []
    for hook in hooks[1:]:
        if hook.hook == "P" and (rtt_s := samples.rtt_s(hook)) is not None:
            estimates.append((hook.una, rtt_s))
    return estimates


def from_init(result: Result) -> list[Hook]:
    hooks = list(result.flow())
    return hooks[next(i for i, hook in enumerate(hooks) if hook.hook == "I") :]


@pytest.fixture(scope="module")
def trapped(kernel: GuestKernel) -> Result:
    return next(run_all(kernel, [TRAPS]))


def test_the_samples_that_count_are_those_of_full_packets_sent_once_on_the_wire(trapped: Result) -> None:
    """Sound after the first full packet, to a microsecond, and nearly complete; the capture knows of no stack."""
    hooks = from_init(trapped)
    wire = wire_rtts.rtts(trapped.capture, PORT, MSS - 40)
    good = {(ack, round(rtt_s * 1e6)) for ack, rtt_s, full in wire if full}
    first = next(ack for ack, _, full in wire if full)
    counted = believed(hooks)
    last = wire[-1][0]  # what is still in tcpdump's buffer at the end is not in the capture
    edges = [next(i for i, (una, _) in enumerate(counted) if una == edge) for edge in (first, last)]
    counted = counted[edges[0] : edges[1]]
    strange = [
        (una, rtt_s) for una, rtt_s in counted if not any((una, round(rtt_s * 1e6) + k) in good for k in (-1, 0, 1))
    ]
    print(len(counted), "count,", len(good), "on the wire,", sum(not full for *_, full in wire), "others,", strange[:5])
    assert strange == []
    assert len(counted) >= 0.95 * len(good)
    assert sum(not full for *_, full in wire) > 20
    assert trapped.counters["snd"]["RetransSegs"] > 10


def test_the_least_rtt_is_that_of_equation_4_1(trapped: Result) -> None:
    """d = tau + (1 + a) sum 1/chi: 50.5 ms and one frame of 1014 bytes at 20 Mbit/s; ACKs have no link of a rate (a = 0)."""
    expected_s = 2 * 25.25e-3 + FRAME * 8 / 20e6
    counted = [rtt_s for _, rtt_s in believed(from_init(trapped))[50:]]
    assert min(counted) == pytest.approx(expected_s, abs=2e-6)
    every = [h.rtt_us / 1e6 for h in from_init(trapped) if h.hook == "P" and h.rtt_us > 0]
    assert min(every) < expected_s - 300e-6, "the traps are none"


def test_medley_believes_only_those(trapped: Result) -> None:
    """The module follows the specification, and not one that believes all; the path is full after the losses (s3.2.3)."""
    hooks = from_init(trapped)
    assert compare(hooks, lambda hook: medley.Medley(float(hook.cwnd))).mismatches == []
    assert compare(hooks, lambda hook: medley.Medley(float(hook.cwnd)), believe=Credulous).mismatches != []
    begun_us = hooks[0].now_us
    late = [h for h in hooks if h.hook == "A" and 6.5e6 < h.now_us - begun_us < 7.9e6]
    seconds = (late[-1].now_us - late[0].now_us) / 1e6
    rate = (late[-1].delivered - late[0].delivered) * FRAME * 8 / seconds
    assert rate >= 0.99 * 20e6


def gathered(times: Sequence[float]) -> float:
    """Share of the packets that leave together with the one before."""
    return float((np.diff(np.array(times)) < TOGETHER_S).mean())


NEAR = Scenario(bulk("medley", 2), ("medley",), seconds=2, rate_mbit=100, delay_ms=0.4, trace=False, capture=True)
"""0.8 ms of RTT: the stack gathers 64 KB >> 1 at least, whatever the pacing rate (tcp_tso_rtt_log)."""
SINGLY = {
    **{cca: dataclasses.replace(NEAR, flows=bulk(cca, 2), modules=(cca,)) for cca in ("medley", "fast", "ctcp")},
    "cubic": dataclasses.replace(NEAR, flows=bulk("cubic", 2), modules=()),
    "switched": dataclasses.replace(
        NEAR, flows=(Flow("cubic", phases=((3.0, None),), chosen_s=1.0, begins_with="medley"),), seconds=3
    ),
    "ssipp": dataclasses.replace(NEAR, flows=bulk("ssipp", 2), modules=("ssipp",), trace=True, capture=False),
}


def test_packets_leave_singly_and_another_algorithm_restores_the_socket(
    kernel: GuestKernel,
) -> None:
    """0.8 ms and 100 Mbit/s, a frame in 81 us: CUBIC gathers, the others do not; pairs can be inverted there."""
    by_name = dict(zip(SINGLY, run_all(kernel, list(SINGLY.values())), strict=True))
    shares = {}
    for name in ("medley", "fast", "ctcp", "cubic"):
        times = wire_rtts.departures(by_name[name].capture, PORT)
        shares[name] = gathered(times[len(times) // 2 :])
    times = wire_rtts.departures(by_name["switched"].capture, PORT)
    before, after = ([t for t in times if low <= t - times[0] < high] for low, high in ((0.5, 1.0), (2.0, 3.0)))
    shares |= {"before": gathered(before), "after": gathered(after)}
    print({name: round(share, 3) for name, share in shares.items()})
    for name in ("medley", "fast", "ctcp", "before"):
        assert shares[name] < 0.05, name
    for name in ("cubic", "after"):
        assert shares[name] > 0.4, name
    assert sum(hook.hook == "D" for hook in by_name["ssipp"].flow()) > 100


SMALLER = Scenario((), seconds=8, rate_mbit=20, buffer_packets=1000)
MTU_BYTES = 700
REFERENCES: dict[str, type[Specification]] = {
    "medley": medley.Medley,
    "ctcp": ctcp.Ctcp,
    "fast": fast.Fast,
    "ftat": ftat.Ftat,
    "ghighspeed": ghighspeed.GentleHighSpeed,
}
TOLERANCES = {"medley": (0.0, 0.0), "ctcp": (2, 0), "fast": (1, 0.025), "ftat": (2, 0), "ghighspeed": (3, 0)}


def begun_with(reference: type[Specification], hook: Hook) -> Specification:
    return reference(float(hook.cwnd))


def test_a_smaller_path_mtu_is_no_timeout(kernel: GuestKernel) -> None:
    """Neither the window nor ssthresh falls, and the growth goes on.

    A link of MTU 700 behind those of 1500 from the third second on: the stack sends again what is too large, in the state of
    a timeout and without one.
    """
    reduce, restore = ((at, f"ip -n wir link set wir-rcv mtu {mtu}") for at, mtu in ((3.0, MTU_BYTES), (7.9, 1500)))
    scenarios = [
        dataclasses.replace(SMALLER, flows=bulk(cca, 8), modules=(cca,), changes=(reduce, restore))
        for cca in REFERENCES
    ]
    for cca, result in zip(REFERENCES, run_all(kernel, scenarios), strict=True):
        hooks = from_init(result)
        (at,) = [i for i, h in enumerate(hooks) if h.hook == "S" and h.count == LOSS]
        before, state = hooks[at - 1], hooks[at]
        print(cca, before.cwnd, state.cwnd, before.ssthresh, state.ssthresh, min(h.cwnd for h in hooks[at : at + 50]))
        assert timed_out(result) == 0, cca
        assert state.cwnd == before.cwnd, cca
        assert state.ssthresh >= before.ssthresh * 3 // 4, cca
        after = [h for h in hooks[at:] if h.now_us < state.now_us + 100_000]
        assert min(h.cwnd for h in after) >= before.cwnd, cca
        got = compare(hooks, partial(begun_with, REFERENCES[cca]), *TOLERANCES[cca])
        assert got.mismatches == [] and got.smaller_packets == 1 and got.timeouts == 0, (cca, got)


def test_medley_begins_anew_after_an_idle_time(kernel: GuestKernel) -> None:
    """The kernel restarts from ten packets (RFC 2861), and I from 0, as at the start (Ho Table 4.1): W + 0, + 2, + 4, + 6."""
    idle = Scenario(
        (Flow("medley", phases=((1.5, None), (9.0, 0), (2.5, None))),), ("medley",), seconds=13, rate_mbit=50
    )
    (result,) = run_all(kernel, [idle])
    hooks = from_init(result)
    (at,) = [i for i, h in enumerate(hooks) if h.hook == "E"]
    begun = max(h.cwnd for h in hooks[:at])
    windows = [w for w, _ in itertools.groupby(h.cwnd for h in hooks[at + 1 :])]
    assert begun > 100
    assert windows[0] == 10
    assert windows[:7] == [10 + i * (i - 1) for i in range(1, 8)]


NARROW = Scenario(
    bulk("ftat", 20), ("ftat",), seconds=20, rate_mbit=20, loss_percent=1,
    changes=((0.0, "ip -n rcv route replace default via 203.0.113.1 advmss 960 quickack 1 window 20000"),),
)  # fmt: skip


def test_ftat_reacts_to_losses_where_the_receiver_s_window_is_what_limits_it(kernel: GuestKernel) -> None:
    """20 000 bytes are 21 packets in each round trip, and so becomes the window of 64 KB with the losses.

    It would stand for ever if such a measurement were taken for one of an application with nothing to send.
    """
    flow = dataclasses.replace(NARROW.flows[0], start_s=0.5, phases=((19.0, None),))
    (result,) = run_all(kernel, [dataclasses.replace(NARROW, flows=(flow,))])
    hooks = from_init(result)
    got = compare(hooks, lambda hook: ftat.Ftat(float(hook.cwnd)), 2)
    late = [h.cwnd for h in hooks if h.hook == "C" and h.now_us - hooks[0].now_us > 10e6]
    print(got, max(late), hooks[0].cwnd)
    assert hooks[0].cwnd == 65536 // MSS
    assert got.mismatches == []
    assert got.losses > 5
    assert min(late) <= 23
