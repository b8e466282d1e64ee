# SPDX-License-Identifier: Apache-2.0
"""LBC: byte counting in slow start, `perack`: none at all, and the module against the specifications."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import lbc
from tests.harness.harness import Hook
from tests.harness.scenarios import situations, standard
from tests.spec_runs import follows


@given(acked=st.integers(1, 20), cwnd=st.integers(2, 1000))
def test_an_ack_counts_for_two_before_the_first_loss_and_for_one_after(acked: int, cwnd: int) -> None:
    from kernels.reference.base import Ack

    spec = lbc.Lbc(float(cwnd))
    spec.on_ack(Ack(acked, 0.0, 0.1, acked, 0))
    assert spec.cwnd == cwnd + min(acked, 2)
    spec.on_loss(0.0)
    spec.on_timeout(0, 0)
    spec.on_ack(Ack(acked, 0.0, 0.1, acked, 0))
    assert spec.cwnd == 2


def reference(hook: Hook) -> lbc.Lbc:
    return lbc.Lbc(float(hook.cwnd))


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """One packet: the kernel's count of ACKed packets in avoidance is whole."""
    follows(kernel, situations("lbc"), reference, 1)


def test_with_a_limit_of_one_it_is_reno_with_a_first_ssthresh(kernel: GuestKernel) -> None:
    scenario = dataclasses.replace(standard("lbc")["delayed ACKs"], params={"lbc": {"limit": 1, "init_ssthresh": 40}})
    comparison = follows(
        kernel, {"first ssthresh": scenario}, lambda hook: lbc.Lbc(float(hook.cwnd), L=1, ssthresh=40.0), 1
    )
    assert comparison["first ssthresh"].losses == 0


def test_perack_follows_its_specification(kernel: GuestKernel) -> None:
    """Each ACK counts for one packet, also where it covers two."""
    follows(kernel, situations("perack", module="lbc"), lambda hook: lbc.PerAck(float(hook.cwnd)), 1)
