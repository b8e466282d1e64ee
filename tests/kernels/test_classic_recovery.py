# SPDX-License-Identifier: Apache-2.0
"""The modules of Yu 2009 with the recovery of ns-2's Reno: what losses in one window cost, and against the specification.

The thesis has built them on that Reno ("LBC and SSIPP are implemented on TCP Reno Agent in ns-2", section 3.3).
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest

from hosts.virtual.launch import GuestKernel
from kernels.reference import creno
from tests.harness.differential import INFINITE_SSTHRESH, LOSS, RECOVERY
from tests.harness.harness import Flow, Hook, Scenario, run_all
from tests.harness.scenarios import situations
from tests.kernels.test_spec_creno import STEADY_S, episode, path
from tests.spec_runs import follows

MODULES = {"liss": "liss", "iss": "iss", "miss": "miss", "js": "js", "lbc": "lbc", "perack": "lbc", "ssipp": "ssipp"}
"""Algorithm → its module"""


def classic(scenario: Scenario, cca: str, most: int) -> Scenario:
    """SSIPP with a first ssthresh, so that its pairs are over and nothing was lost when the test's own losses come."""
    module = MODULES[cca]
    params = {"classic_retransmits": most} | ({"init_ssthresh": 60} if cca == "ssipp" else {})
    return dataclasses.replace(scenario, modules=(module,), params={module: params})


@pytest.mark.parametrize("cca", MODULES)
def test_a_second_loss_in_a_window_waits_for_the_timer_and_by_default_none_does(kernel: GuestKernel, cca: str) -> None:
    """Fall and Floyd 1996: with the guard against multiple fast retransmits Reno repairs one packet of a window by them."""
    lost = (1, 2, 3)
    cases = [classic(path(cca, n), cca, most) for most in (1, 0) for n in lost]
    results = list(run_all(kernel, cases))
    for n, result in zip(lost, results[:3], strict=True):
        w, hooks = episode(result)
        assert len([h for h in hooks if h.hook == "S" and h.count == RECOVERY]) == 1
        timeouts = [h for h in hooks if h.hook == "S" and h.count == LOSS]
        assert len(timeouts) == (n > 1)
        after = next(h for h in result.flow() if h.now_us > hooks[-1].now_us and h.hook == "A")
        if n == 1:
            assert after.cwnd == pytest.approx(w / 2, abs=2)
        else:
            assert (timeouts[0].cwnd, timeouts[0].in_flight) == (1, 0)
            assert after.ssthresh == pytest.approx(w / 4, abs=1)
    for result in results[3:]:
        late = [h for h in result.flow() if h.now_us >= result.start_us + STEADY_S * 1e6]
        assert [h for h in late if h.hook == "S" and h.count == RECOVERY]
        assert not [h for h in late if h.hook == "S" and h.count == LOSS]


def reference(hook: Hook) -> creno.ClassicReno:
    ssthresh = math.inf if hook.ssthresh == INFINITE_SSTHRESH else float(hook.ssthresh)
    return creno.ClassicReno(float(hook.cwnd), ssthresh=ssthresh, most=1)


@pytest.mark.parametrize("cca", ["liss", "iss", "miss", "js", "perack"])
def test_the_module_follows_the_specification_of_classic_reno(kernel: GuestKernel, cca: str) -> None:
    """Where one connection has no neighbours that it could learn from; a loss that was none is not undone."""
    cases = {
        name: classic(scenario, cca, 1)
        for name, scenario in situations(cca, module=MODULES[cca]).items()
        if len([flow for flow in scenario.flows if flow.cca == cca]) == 1
    }
    follows(kernel, cases, reference, 1, undoes=False)


def test_liss_without_neighbours_sends_what_classic_reno_sends(kernel: GuestKernel) -> None:
    """The same windows at the same moments, to the microsecond, over losses of all kinds."""
    flow = (Flow("liss", phases=((20, None),)),)
    base = Scenario(flow, ("liss",), seconds=20, rate_mbit=20)
    kinds = (dataclasses.replace(base, buffer_packets=20), dataclasses.replace(base, loss_percent=1))
    pairs = [
        [
            dataclasses.replace(kind, params={"liss": {"classic_retransmits": 2}}),
            dataclasses.replace(kind, modules=("creno",), flows=(Flow("creno", phases=((20, None),)),)),
        ]
        for kind in kinds
    ]
    results = list(run_all(kernel, list(itertools.chain(*pairs))))
    for liss, own in zip(results[::2], results[1::2], strict=True):
        first, second = (
            [(h.now_us - result.start_us, h.hook, h.cwnd, h.ssthresh) for h in result.flow()] for result in (liss, own)
        )
        assert len(first) > 1000
        assert first == second
