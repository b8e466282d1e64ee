# SPDX-License-Identifier: Apache-2.0
"""FTAT: its window after one round trip, its reaction to losses, and the module against the specification."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import ftat
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
