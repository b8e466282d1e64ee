# SPDX-License-Identifier: Apache-2.0
"""Every algorithm against its specification at windows of 1000 to 10 000 packets and more, where the theses' experiments live."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import pytest

from hosts.virtual.launch import GuestKernel
from kernels.reference import lbc, medley
from kernels.reference.astart import AstartEre
from kernels.reference.base import Specification
from kernels.reference.fast import Fast
from schema.names import project_ccas
from tests.harness.harness import Flow, Hook, Scenario, run
from tests.kernels import (
    test_spec_astart_bwe,
    test_spec_creno,
    test_spec_ctcp,
    test_spec_ftat,
    test_spec_ghighspeed,
    test_spec_group,
    test_spec_hoe,
    test_spec_lbc,
    test_spec_past,
    test_spec_spm,
    test_spec_ssipp,
    test_spec_ttfwc,
)
from tests.kernels.test_spec_group import begins, starts
from tests.spec_runs import judge


class FixedPoint(medley.Medley):
    """With the resolution that the module's header states: a round's mean RTT in 1/8 us, Delta and Gamma in 1/1024 packet.

    At 400 Mbit/s an eighth of a microsecond is 0.006 packet of backlog, and Delta and Gamma are as near now and then.
    """

    @property
    def D(self) -> float:
        return math.floor(super().D * 8e6 + 1e-6) / 8e6

    def _judge(self) -> None:
        super()._judge()
        self.Delta, self.Gamma = (math.floor(value * 1024) / 1024 for value in (self.Delta, self.Gamma))


@dataclasses.dataclass(frozen=True)
class Case:
    """module: where the algorithm is in another one's; packets, share: as for follows()

    params: of those that would not reach thousands of packets in the time
    """

    make: Callable[[Hook], Specification]
    packets: float = 1
    share: float = 0
    module: str = ""
    params: dict[str, int] = dataclasses.field(default_factory=dict)


CASES = {
    "astart_bwe": Case(test_spec_astart_bwe.reference, 1, 0.01),
    "astart_ere": Case(
        lambda hook: AstartEre(float(hook.cwnd), ssthresh=8000.0), 1, 0.01, params={"init_ssthresh": 8000}
    ),
    "creno": Case(test_spec_creno.reference),
    "ctcp": Case(test_spec_ctcp.reference, 2),
    "fast": Case(lambda hook: Fast(float(hook.cwnd), alpha=3000), 1, 0.025, params={"alpha": 3000}),
    "ftat": Case(test_spec_ftat.reference, 2, params={"init_bytes": 4 << 20}),
    "ghighspeed": Case(test_spec_ghighspeed.reference, 1, 0.005),
    "hoe": Case(test_spec_hoe.reference),
    "hstcp": Case(test_spec_ghighspeed.reference, 1, 0.005, "ghighspeed"),
    "iss": Case(test_spec_group.reference),
    "js": Case(test_spec_group.reference),
    "lbc": Case(test_spec_lbc.reference),
    "liss": Case(test_spec_group.reference),
    "medley": Case(lambda hook: FixedPoint(float(hook.cwnd)), 0),
    "miss": Case(test_spec_group.reference),
    "past": Case(test_spec_past.reference),
    "perack": Case(lambda hook: lbc.PerAck(float(hook.cwnd)), module="lbc"),
    "spm": Case(test_spec_spm.reference, 1, 0.01),
    "ssipp": Case(test_spec_ssipp.reference),
    "tfwc": Case(test_spec_ttfwc.reference, module="ttfwc"),
    "ttfwc": Case(test_spec_ttfwc.reference),
    "ttfwc2": Case(test_spec_ttfwc.reference, module="ttfwc"),
    "ttfwc3": Case(test_spec_ttfwc.reference, module="ttfwc"),
}
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
        {module: CASES[cca].params},
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
    wrong = judge("thousands of packets", scenario, result, case.make, case.packets, case.share)[1]
    assert wrong == []
    hooks = list(result.flow())
    assert max(hook.cwnd for hook in hooks) > 2500
    assert any(hook.hook == "L" for hook in hooks)
    if cca in GROUP:
        (first, *_), (newcomer, estimate, window) = starts(result, cca)
        assert first.port == scenario.flows[0].port and estimate > 1000
        assert begins(cca, newcomer, estimate, window), (newcomer, estimate, window)
