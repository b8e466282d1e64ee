# SPDX-License-Identifier: Apache-2.0
"""The stage between TCP and IP that SSIPP, SPM and PaSt have: beside the kernel's loss detection, local drops, fq, ADDRFORM."""

from __future__ import annotations

import dataclasses

import pytest

from hosts.virtual.launch import GuestKernel
from tests.harness.harness import Flow, Result, Scenario, run_all

ONE = ((3.0, 3e4), (2.0, 0.0))
"""Little enough that all is delivered when the scenario ends."""


def alone(cca: str, phases: tuple[tuple[float, float | None], ...], **changes: object) -> Scenario:
    flow = {key: changes.pop(key) for key in ("dst", "addrform_s") if key in changes}
    base = Scenario((Flow(cca, phases=phases, **flow),), (cca,), seconds=sum(s for s, _ in phases), rate_mbit=20)  # type: ignore[arg-type]
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


SCENARIOS = {
    "wide gaps": alone("spm", ((6.0, None),), rate_mbit=1),
    "local drops": alone("ssipp", ((4.0, None),), sender_qdisc="tbf rate 5mbit burst 2028 limit 1100", rate_mbit=100),
    "fq": alone("ssipp", ((2.0, None), (2.0, 0.0)), sender_qdisc="fq maxrate 4mbit",
        params={"ssipp": {"init_ssthresh": 200}}),
    "ADDRFORM": alone(
        "past", ((0.6, None), (3.4, 2e5)), dst="::ffff:203.0.113.2", addrform_s=0.115, ipv6=True, delay_ms=50,
        rate_mbit=1
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def results(kernel: GuestKernel) -> dict[str, Result]:
    return dict(zip(SCENARIOS, run_all(kernel, list(SCENARIOS.values())), strict=True))


def test_a_pairs_second_packet_is_not_declared_lost_while_it_waits(
    results: dict[str, Result],
) -> None:
    """1 Mbit/s and 108 ms: y0 is 8.1 ms and the widest gap 32 ms, more than a quarter of the round trip and 2 ms."""
    result = results["wide gaps"]
    hooks = list(result.flow())
    assert max(h.rtt_us for h in hooks if h.hook == "D") > 108_000 / 4 + 2_000
    assert [h for h in hooks if h.hook == "L"] == []
    assert result.counters["snd"]["RetransSegs"] == 0
    (estimate,) = (h.count for h in hooks if h.hook == "M")
    assert estimate == pytest.approx(108.1e-3 / 8.112e-3, abs=1)


def test_what_the_senders_own_queue_drops_reaches_tcp(results: dict[str, Result]) -> None:
    """One packet fits the queue of the sender's interface: TCP hears of the first one that does not, and halves at once.

    Two packets of 1014 bytes pass with the burst of 2028 and one waits, so that the fourth is refused, before more have left.
    """
    hooks = [h for h in results["local drops"].flow() if h.hook in "DLS"]
    drops = results["local drops"].sender_queue[-1]["drops"]
    first = next(h for h in hooks if h.hook == "L")
    print(drops, first, results["local drops"].counters["snd"]["RetransSegs"])
    assert drops > 0
    assert first.packets_out < 4
    assert any(h.hook == "D" for h in hooks), "pairs were sent"
    assert next(h.count for h in hooks if h.hook == "S") == 2, (
        "the first reduction is CWR, no loss that had to be detected"
    )


def test_fq_on_the_sender_leaves_pairs_inverted(results: dict[str, Result]) -> None:
    """fq sorts a flow's packets by their time stamps while they wait in it; each pair arrives out of order all the same."""
    result = results["fq"]
    pairs = sum(h.hook == "D" for h in result.flow())
    print(pairs, result.counters["rcv"]["TCPOFOQueue"], result.sender_queue)
    assert pairs >= 5
    assert result.counters["rcv"]["TCPOFOQueue"] == pairs


def test_a_socket_that_becomes_one_of_ipv4_while_packets_wait_goes_on(results: dict[str, Result]) -> None:
    """IPV6_ADDRFORM takes the stage's operations away 15 ms after the handshake, while PaSt's trains still wait."""
    hooks = [h for h in results["ADDRFORM"].flow() if h.hook in "IA"]
    assert hooks[0].count == 1, "there was a stage"
    assert (hooks[-1].una - hooks[0].una) % 2**32 > 300_000
