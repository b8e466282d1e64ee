# SPDX-License-Identifier: Apache-2.0
"""Every algorithm against its specification at windows of 1000 to 10 000 packets and more, where the theses' experiments live."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from hosts.virtual.launch import GuestKernel
from kernels.reference.astart import AstartBwe, AstartEre
from kernels.reference.base import Specification
from kernels.reference.fast import Fast
from schema.names import project_ccas
from tests.harness.harness import Flow, Hook, Scenario, run
from tests.kernels.test_spec_group import begins, starts
from tests.kernels.test_spec_past import refined
from tests.spec_cases import CASES
from tests.spec_runs import judge

PARAMS = {
    "astart_bwe": {"each_ack": 1},
    "astart_ere": {"init_ssthresh": 8000},
    "fast": {"alpha": 3000},
    "ftat": {"init_bytes": 4 << 20},
    "past": {"refine": 1},
}
"""Of those that would not reach thousands of packets in the time."""
MAKES: dict[str, Callable[[Hook], Specification]] = {
    "astart_bwe": lambda hook: AstartBwe(float(hook.cwnd), each_ack=True),
    "astart_ere": lambda hook: AstartEre(float(hook.cwnd), ssthresh=8000.0),
    "fast": lambda hook: Fast(float(hook.cwnd), alpha=3000),
    "past": refined,
}
"""Their specifications with these parameters."""
SECONDS, LOSS, NEWCOMER_S = 12, (9.0, 0.001), 8.0
GROUP = ("liss", "iss", "miss", "js")
DELAYED = ("lbc", "perack", "ssipp")
"""What these do depends on a receiver that delays ACKs."""


def path(cca: str) -> Scenario:
    """4930 packets and a buffer of 6000; slow start passes them in four seconds. Some packets are lost in any case, after nine.

    Medley, which needs 70 round trips to get there, has as much of 100 ms.
    """
    flow = Flow(cca, phases=((SECONDS, None),))
    module = CASES[cca].module or cca
    scenario = Scenario(
        (flow,),
        (module,),
        {module: PARAMS.get(cca, {})},
        SECONDS,
        rate_mbit=100,
        delay_ms=200,
        buffer_packets=6000,
        blackouts=(LOSS,),
    )
    if cca == "medley":  # which sends for 60 of 100 ms
        return dataclasses.replace(scenario, rate_mbit=400, delay_ms=50, blackouts=((9.0, 0.045),))
    if cca in GROUP:
        newcomer = Flow(cca, flow.port + 1, NEWCOMER_S, ((SECONDS - NEWCOMER_S - 0.1, None),))
        return dataclasses.replace(scenario, flows=(flow, newcomer))
    return dataclasses.replace(scenario, quickack=cca not in DELAYED)


def test_every_algorithm_of_the_project_is_here() -> None:
    assert set(CASES) == set(project_ccas())


@pytest.mark.parametrize("cca", CASES)
def test_the_module_follows_the_specification_at_thousands_of_packets(kernel: GuestKernel, cca: str) -> None:
    case, scenario = CASES[cca], path(cca)
    result = run(kernel, scenario)
    wrong = judge("thousands of packets", scenario, result, MAKES.get(cca, case.make), case.packets, case.share)[1]
    assert wrong == []
    hooks = list(result.flow())
    assert max(hook.cwnd for hook in hooks) > 2500
    assert any(hook.hook == "L" for hook in hooks)
    if cca in GROUP:
        (first, *_), (newcomer, estimate, window) = starts(result, cca)
        assert first.port == scenario.flows[0].port and estimate > 1000
        assert begins(cca, newcomer, estimate, window), (newcomer, estimate, window)
