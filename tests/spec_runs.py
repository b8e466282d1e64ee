# SPDX-License-Identifier: Apache-2.0
"""Hold a module against its specification in several situations, all in one guest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hosts.virtual.launch import GuestKernel
from kernels.reference.base import Specification
from schema.names import IN_TREE_CCAS
from tests.harness.differential import Comparison, compare
from tests.harness.harness import Hook, Result, Scenario, run_all

LEAST_WINDOWS = 100
TIMEOUTS = (
    *("TCPTimeouts", "TCPLossFailures", "TCPSackFailures", "TCPRenoFailures"),
    *("TCPSackRecoveryFail", "TCPRenoRecoveryFail"),
)
"""The kernel's counters of first timeouts, by the state in which they came (tcp_retransmit_timer())."""


def follows(
    kernel: GuestKernel,
    scenarios: Mapping[str, Scenario],
    make: Callable[[Hook], Specification],
    packets: float = 0.0,
    share: float = 0.0,
    *,
    undoes: bool = True,
) -> dict[str, Comparison]:
    """Run the scenarios and compare every window and threshold of every flow; returns the last flow's of each scenario.

    packets, share: how far the kernel's fixed point may be off, the larger of both counts
    undoes: whether the algorithm takes back a reaction to a loss that was none
    Raises AssertionError with all that differs, and where a situation did not come about.
    """
    comparisons: dict[str, Comparison] = {}
    wrong = []
    for (name, scenario), result in zip(scenarios.items(), run_all(kernel, list(scenarios.values())), strict=True):
        got, message = judge(name, scenario, result, make, packets, share, undoes=undoes)
        comparisons[name] = got
        wrong += message
    assert not wrong, "\n".join(wrong)
    return comparisons


def judge(
    name: str,
    scenario: Scenario,
    result: Result,
    make: Callable[[Hook], Specification],
    packets: float = 0.0,
    share: float = 0.0,
    *,
    undoes: bool = True,
) -> tuple[Comparison, list[str]]:
    """Compare the flows of one run; returns the last one's comparison, and all that is wrong with any or with the situation."""
    wrong = []
    got = Comparison()
    for flow in (flow for flow in scenario.flows if flow.cca not in IN_TREE_CCAS):
        got = compare(result.flow(flow.port), make, packets, share)
        print(f"{flow.cca}, {name}, port {flow.port}: {got}")
        if got.mismatches:
            wrong.append(f"{flow.cca}, {name}, port {flow.port}: {got}; first: {got.mismatches[:3]}")
        if got.windows <= LEAST_WINDOWS:
            wrong.append(f"{flow.cca}, {name}: only {got.windows} windows were compared")
        if ("loss" in name or "NewReno" in name) and not got.losses:
            wrong.append(f"{flow.cca}, {name}: nothing was lost")
        if len(scenario.flows) == 1 and bool(timed_out(result)) != bool(got.timeouts):
            wrong.append(f"{flow.cca}, {name}: {got.timeouts} timeouts, the kernel counts {timed_out(result)}")
        if "undone" in name and bool(got.undos) != undoes:
            wrong.append(f"{flow.cca}, {name}: {got.undos} undos")
        if name == "smaller MTU" and got.smaller_packets != 1:
            wrong.append(f"{flow.cca}, {name}: {got.smaller_packets} times smaller packets")
        if name == "ECN" and not result.counters["rcv"]["InCEPkts"]:
            wrong.append(f"{flow.cca}, {name}: nothing was marked")
        if "reneging" in name and not result.counters["rcv"]["OfoPruned"]:
            wrong.append(f"{flow.cca}, {name}: the receiver has forgotten nothing")
        if name == "timeout" and got.timeouts < 2:
            wrong.append(f"{flow.cca}, {name}: {got.timeouts} timeouts")
    return got, wrong


def timed_out(result: Result) -> int:
    """How often a timer of `snd` expired, not counting repetitions."""
    return sum(result.counters["snd"].get(name, 0) for name in TIMEOUTS)
