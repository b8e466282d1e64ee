# SPDX-License-Identifier: Apache-2.0
"""LISS, ISS, MISS and JS: the estimates, and the modules against them over several connections."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import group
from tests.harness.differential import INFINITE_SSTHRESH, compare
from tests.harness.harness import Flow, Hook, Result, Scenario, run, run_all


def test_the_estimate_of_the_paper() -> None:
    """Three steady ones of 20 and 40 packets in slow start: (40 + 60) / (3 + 2 + 1) = 16.7."""
    assert group.fair(40, 3, 20) == pytest.approx(100 / 6)


@given(s=st.floats(0, 1e4), n=st.integers(1, 100), w=st.floats(1, 1e4))
def test_a_newcomer_never_gets_more_than_a_steady_neighbour(s: float, n: int, w: float) -> None:
    assert w / 2 - 1e-6 <= group.fair(s, n, w) <= w + 1e-6


@given(st.lists(st.floats(1, 1000), min_size=1, max_size=200))
def test_the_mean_window_of_iss_stays_within_the_windows(cwnds: list[float]) -> None:
    g = group.Group()
    g.connections[1] = group.Connection(1.0)
    for cwnd in cwnds:
        g.ack(1, cwnd, steady=True)
    assert g.awnd is not None
    assert min(cwnds) - 1e-6 <= g.awnd <= max(cwnds) + 1e-6


def test_miss_takes_what_the_sharers_would_grow_by_until_the_next_drop() -> None:
    """Two connections drop in turn every 4 s each: m = 4 / 2 = 2; 1 s after the oldest one's: 2 (4 - 1) / 0.1 = 60."""
    g = group.Group()
    for who in (1, 2):
        g.connections[who] = group.Connection(50.0, steady=True)
    for i in range(40):
        g.loss(1 + i % 2, 2.0 * i)
    assert g.oldest is g.connections[1]
    assert g.miss(2.0 * 38 + 1.0, 0.1) == 60


FLOWS = tuple((i, start) for i, start in enumerate((0.0, 4.0, 8.0, 12.0, 12.05, 16.0)))


def several(cca: str, **changes: object) -> Scenario:
    flows = tuple(Flow(cca, 40000 + i, start, ((19.9 - start, None),)) for i, start in FLOWS)
    base = Scenario(flows, (cca,), seconds=20, rate_mbit=20, loss_percent=0.02)
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def starts(result: Result, cca: str) -> list[tuple[Hook, int, int]]:
    """For each connection its init hook, the group's estimate then, and MISS's first window."""
    g = group.Group()
    found = []
    handshake: dict[int, int] = {}
    for h in result.hooks:
        if h.port not in range(40000, 40100):
            continue
        if h.hook == "P" and h.port not in g.connections:
            handshake[h.port] = h.rtt_us
        elif h.hook == "I":
            estimate = g.iss() if cca == "iss" else g.liss()
            first = g.miss(h.now_us / 1e6, handshake[h.port] / 1e6)
            found.append((h, estimate, first))
            g.connections[h.port] = group.Connection(float(h.cwnd), h.cwnd >= h.ssthresh)
        elif h.hook == "A":
            g.ack(h.port, h.cwnd, steady=h.cwnd >= h.ssthresh)
        elif h.hook == "L":
            g.loss(h.port, h.now_us / 1e6)
    return found


def reference(hook: Hook) -> group.Started:
    ssthresh = math.inf if hook.ssthresh == INFINITE_SSTHRESH else float(hook.ssthresh)
    return group.Started(float(hook.cwnd), ssthresh)


@pytest.mark.parametrize("cca", ["liss", "iss", "miss", "js"])
def test_the_modules_start_as_the_specification_says_and_go_on_as_reno(kernel: GuestKernel, cca: str) -> None:
    result = run(kernel, several(cca))
    found = starts(result, cca)
    print(cca, [(h.port, h.count, estimate, h.cwnd, h.rtt_us, first) for h, estimate, first in found])
    assert len(found) == len(FLOWS)
    assert found[0][1] == 0
    assert sum(estimate > 0 for _, estimate, _ in found) >= 3
    for h, estimate, first in found:
        assert h.count == pytest.approx(estimate, abs=1)
        if not estimate:
            assert (h.cwnd, h.ssthresh) == (10, INFINITE_SSTHRESH)
        elif cca == "js":
            assert h.cwnd == h.ssthresh == h.count
        elif cca == "miss":
            assert h.rtt_us == pytest.approx(max(first, 10), rel=0.01, abs=1)
            assert h.cwnd == max(h.rtt_us, 10)
            assert h.ssthresh == max(h.count, h.cwnd)
        else:
            assert (h.cwnd, h.ssthresh) == (10, h.count)
    for i, _ in FLOWS:
        got = compare(result.flow(40000 + i), reference, 1)
        print(f"{cca}, connection {i}: {got}")
        assert got.mismatches == []


def test_miss_begins_with_the_window_of_its_loss_history(kernel: GuestKernel) -> None:
    """A shorter RTT than above makes room for more than the kernel's ten packets before the next drop is due."""
    starts_s = (0.0, 3.0, *(6.0 + i for i in range(12)))
    flows = tuple(Flow("miss", 40000 + i, start, ((19.5 - start, None),)) for i, start in enumerate(starts_s))
    found = starts(run(kernel, several("miss", flows=flows, delay_ms=15)), "miss")
    print([(h.cwnd, first) for h, _, first in found])
    larger = [(h, first) for h, estimate, first in found if estimate and first > 11]
    assert larger
    for h, first in larger:
        assert h.cwnd == pytest.approx(first, rel=0.01, abs=1)
        assert h.ssthresh >= h.cwnd


def second_start(**changes: object) -> Scenario:
    """One connection that is steady after 10 s, then another one, which asks the group."""
    second = Flow("liss", 40001, 10.0, ((2.0, None),))
    settings = {key: changes.pop(key) for key in ("dst", "host") if key in changes}
    first = Flow("liss", 40000, 0.0, ((12.0, None),))
    if ":" in str(settings.get("dst", "")):
        first, changes["ipv6"] = dataclasses.replace(first, dst="2001:db8:3::2"), True
    flows = (first, dataclasses.replace(second, **settings))  # type: ignore[arg-type]
    return several("liss", flows=flows, seconds=12, loss_percent=0.1, **changes)


def test_prefixes_of_other_length_and_other_destinations_and_namespaces_are_other_groups(kernel: GuestKernel) -> None:
    """203.0.113.2 and .3 share a /24, 2001:db8:3::2 and ::3 a /64; the other sender is another network namespace."""
    cases = {
        "one /24": (second_start(dst="203.0.113.3"), True),
        "two /32": (second_start(dst="203.0.113.3", params={"liss": {"prefix4": 32}}), False),
        "one /64": (second_start(dst="2001:db8:3::3"), True),
        "two /128": (second_start(dst="2001:db8:3::3", params={"liss": {"prefix6": 128}}), False),
        "all of IPv6": (second_start(dst="2001:db8:3::3", params={"liss": {"prefix6": 0}}), True),
        "another namespace": (second_start(host="alt"), False),
    }
    results = run_all(kernel, [scenario for scenario, _ in cases.values()])
    for (name, (_, shared)), result in zip(cases.items(), results, strict=True):
        first, second = ([h.count for h in result.flow(port) if h.hook == "I"] for port in (40000, 40001))
        print(name, first, second)
        assert first == [0]
        assert len(second) == 1
        assert (second[0] > 0) == shared, name


def test_a_group_without_connections_is_forgotten_after_its_time(kernel: GuestKernel) -> None:
    """ISS with a mean that keeps its first window: the first connection's, or the second one's on a slower path.

    At 20 Mbit/s slow start ends by bursts that 20 packets of buffer do not hold, at 1 Mbit/s by a path of 32 packets.
    """
    flows = tuple(Flow("iss", 40000 + i, start, ((4.0, None),)) for i, start in enumerate((0.0, 30.0, 36.0)))
    slower = "tc -n rtr qdisc change dev rtr-wir root handle 1: tbf rate 1mbit burst 2028 limit 20"  # of pfifo, packets
    base = several("iss", flows=flows, seconds=39, loss_percent=0, buffer_packets=20, changes=((25.0, slower),))
    scenarios = [dataclasses.replace(base, params={"iss": {"alpha_ppm": 1, "group_age_s": age}}) for age in (600, 2)]
    remembered, forgotten = (
        next(h.count for h in result.flow(40002) if h.hook == "I") for result in run_all(kernel, scenarios)
    )
    print(remembered, forgotten)
    assert forgotten > 0
    assert remembered >= 1.5 * forgotten


def test_js_paces_its_first_window_over_one_round_trip(kernel: GuestKernel) -> None:
    """The first window's ACKs come spread over the round trip, not as a burst at the bottleneck's rate."""
    flows = (Flow("js", 40000, 0.0, ((14.0, None),)), Flow("js", 40001, 12.0, ((2.0, None),)))
    result = run(kernel, several("js", flows=flows, seconds=14, loss_percent=0.05, rate_mbit=100))
    hooks = list(result.flow(40001))
    begun = next(i for i, h in enumerate(hooks) if h.hook == "I")
    window = hooks[begun].cwnd
    assert window > 20
    acks = [h.now_us for h in hooks[begun:] if h.hook == "A"][:window]
    spread_s = (acks[-1] - acks[0]) / 1e6
    paced_s = (window - 10) / window * 0.1  # the kernel sends a connection's first ten packets unpaced
    burst_s = window * 1014 * 8 / 100e6
    print(window, spread_s, paced_s, burst_s)
    assert spread_s >= 0.95 * paced_s
    assert burst_s < 0.01
