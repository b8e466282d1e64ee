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
from tests.harness.scenarios import situations
from tests.spec_runs import judge


def test_the_estimate_of_the_paper() -> None:
    """Three steady ones of 20 and 40 packets in slow start: (40 + 60) / (3 + 2 + 1) = 16.7."""
    assert group.fair(40, 3, 20) == pytest.approx(100 / 6)


@given(s=st.floats(0, 1e4), n=st.integers(1, 100), w=st.floats(1, 1e4))
def test_a_newcomer_never_gets_more_than_a_steady_neighbour(s: float, n: int, w: float) -> None:
    assert w / 2 - 1e-6 <= group.fair(s, n, w) <= w + 1e-6


@pytest.mark.parametrize(("L", "S", "w_o", "window"), [(1, 0, 20, 10), (3, 40, 20, 100 / 6), (5, 0, 20, 100 / 6)])
def test_the_estimate_takes_its_place_among_all_windows(L: int, S: float, w_o: float, window: float) -> None:
    """Yu 2009 page 26: the sum of all windows, divided by the number of connections plus one."""
    assert group.fair(S, L, w_o) == pytest.approx(window)


@given(st.lists(st.floats(1, 1000), min_size=1, max_size=200))
def test_the_mean_window_of_iss_moves_by_a_five_hundredth_per_ack(cwnds: list[float]) -> None:
    """awnd = 0.998 awnd + 0.002 cwnd (Yu 2009 page 26), of each connection by itself."""
    g = group.Group()
    g.connections = {1: group.Connection(10.0), 2: group.Connection(10.0)}
    expected = 5.0
    for cwnd in cwnds:
        g.acknowledged(1, cwnd)
        expected = 0.998 * expected + 0.002 * cwnd
    assert g.connections[1].awnd == pytest.approx(expected)
    assert g.connections[2].awnd == 5.0


def test_miss_takes_what_the_sharers_would_grow_by_until_the_next_drop() -> None:
    """Two connections drop in turn every 4 s each: m = 4 / 2 = 2; 1 s after the last drop 2 (2 - 1) / 0.1 = 20 packets until
    the path's next one, and, as that drop is the oldest connection's, 2 (4 - 1) / 0.1 = 60 until its own."""
    g = group.Group()
    for who in (1, 2):
        g.connections[who] = group.Connection(50.0, steady=True)
    for i in range(39):
        g.loss(1 + i % 2, 2.0 * i)
    assert g.oldest is g.connections[1]
    assert g.miss(2.0 * 38 + 1.0, 0.1) == 20
    assert g.miss(2.0 * 38 + 1.0, 0.1, of_oldest=True) == 60


FLOWS = tuple((i, start) for i, start in enumerate((0.0, 4.0, 8.0, 12.0, 12.05, 16.0)))


def several(cca: str, **changes: object) -> Scenario:
    flows = tuple(Flow(cca, 40000 + i, start, ((19.9 - start, None),)) for i, start in FLOWS)
    base = Scenario(flows, (cca,), seconds=20, rate_mbit=20, loss_percent=0.02)
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def starts(result: Result, cca: str, *, of_oldest: bool = False) -> list[tuple[Hook, int, int]]:
    """For each connection with data its init hook, the group's estimate then, and MISS's first window."""
    g = group.Group()
    begun = []
    handshake: dict[int, int] = {}
    for h in result.hooks:
        if h.port not in range(40000, 40100):
            continue
        if h.hook == "P":
            if h.port not in g.connections:
                handshake[h.port] = h.rtt_us
            elif h.count:
                g.acknowledged(h.port, h.cwnd)
        elif h.hook == "I":
            estimate = g.iss() if cca == "iss" else g.liss()
            first = g.miss(h.now_us / 1e6, handshake.get(h.port, 1e12) / 1e6, of_oldest=of_oldest)
            begun.append((h, estimate, first))
            g.connections[h.port] = group.Connection(float(h.cwnd), h.cwnd >= h.ssthresh)
            continue
        elif h.port not in g.connections:
            continue  # the SYN was lost
        elif h.hook == "A":
            g.ack(h.port, h.cwnd, steady=h.cwnd >= h.ssthresh)
        elif h.hook == "L":
            g.loss(h.port, h.now_us / 1e6)
        if h.port in g.connections:  # with data to send the window is filled right after the hook
            half = 2 * ((h.nxt - h.una) % 2**32) >= h.cwnd * h.mss
            g.connections[h.port].active = half or not h.nothing_to_send
    return begun


def begins(cca: str, h: Hook, estimate: int, first: int) -> bool:
    """Whether a connection's init hook left what these estimates make of the kernel's window of ten and no threshold."""
    if h.count != pytest.approx(estimate, abs=1):
        return False
    if h.delivered > 1:  # data was sent before
        return True
    if h.cwnd == 1:  # the SYN was lost (RFC 5681 section 3.1)
        return h.retrans > 0 and (cca in ("miss", "js") or not estimate or h.ssthresh == h.count)
    if not estimate:
        return (h.cwnd, h.ssthresh) == (10, INFINITE_SSTHRESH)
    if cca == "js":
        return h.cwnd == h.ssthresh == h.count
    if cca == "miss":
        whole = h.cwnd == max(h.rtt_us, 10) and h.ssthresh == max(h.count, h.cwnd)
        return whole and h.rtt_us == pytest.approx(max(first, 10), rel=0.01, abs=1)
    return (h.cwnd, h.ssthresh) == (10, h.count)


def reference(hook: Hook) -> group.Started:
    ssthresh = math.inf if hook.ssthresh == INFINITE_SSTHRESH else float(hook.ssthresh)
    return group.Started(float(hook.cwnd), ssthresh)


@pytest.mark.parametrize("cca", ["liss", "iss", "miss", "js"])
def test_the_modules_start_as_the_specification_says_and_go_on_as_reno(kernel: GuestKernel, cca: str) -> None:
    result = run(kernel, several(cca))
    begun = starts(result, cca)
    print(cca, [(h.port, h.count, estimate, h.cwnd, h.rtt_us, first) for h, estimate, first in begun])
    assert len(begun) == len(FLOWS)
    assert begun[0][1] == 0
    assert sum(estimate > 0 for _, estimate, _ in begun) >= 3
    for h, estimate, first in begun:
        assert begins(cca, h, estimate, first), (h, estimate, first)
    for i, _ in FLOWS:
        got = compare(result.flow(40000 + i), reference, 1)
        print(f"{cca}, connection {i}: {got}")
        assert got.mismatches == []


@pytest.mark.parametrize("cca", ["liss", "iss", "miss", "js"])
def test_the_modules_follow_the_specification_whatever_paths_and_hosts_do(kernel: GuestKernel, cca: str) -> None:
    """One packet: the kernel's count of ACKed packets in avoidance is whole. Flows that come and go know each other."""
    cases = situations(cca)
    wrong, known = [], 0
    for (name, scenario), result in zip(cases.items(), run_all(kernel, list(cases.values())), strict=True):
        wrong += judge(name, scenario, result, reference, 1)[1]
        begun = starts(result, cca)
        known += sum(estimate > 0 for _, estimate, _ in begun)
        wrong += [
            f"{cca}, {name}, port {h.port}: begins with {h.count}, {h.cwnd}, {h.ssthresh} where {estimate}, {first} is known"
            for h, estimate, first in begun
            if not begins(cca, h, estimate, first)
        ]
    assert wrong == []
    assert known >= 3


ACTIVE = 5


def newcomer(cca: str) -> Scenario:
    """Five connections with data, one that has had none for 11 s, one of small messages; a newcomer after 16 s."""
    idle = Flow(cca, 40090, 0.0, ((5.0, 6e5), (13.0, 0.0)))
    control = Flow(cca, 40091, 0.1, ((17.9, 200.0),))
    active = tuple(Flow(cca, 40000 + i, 0.2 + i / 10, ((17.5 - i / 10, None),)) for i in range(ACTIVE))
    return several(cca, flows=(idle, control, *active, Flow(cca, 40080, 16.0, ((2.0, None),))), seconds=18)


def test_a_newcomer_gets_n_of_n_plus_1_of_the_oldest_window(kernel: GuestKernel) -> None:
    """Yu 2009 page 24: "the minimum available bandwidth for the new connection" is n / (n + 1) of an old one's.

    Neither the oldest connection of all, which is idle, nor one that exchanges small messages is among the n."""
    names = ("liss", "iss", "miss", "js")
    for cca, result in zip(names, run_all(kernel, [newcomer(cca) for cca in names]), strict=True):
        (begun,) = (h for h in result.flow(40080) if h.hook == "I")
        last = {}
        mean = 5.0  # ISS: 0.998 awnd + 0.002 cwnd from half of the first window on
        for h in result.hooks:
            if h.now_us > begun.now_us or h.port not in range(40000, 40000 + ACTIVE):
                continue
            if h.hook == "P" and h.count and h.port in last and h.port == 40000:
                mean = 0.998 * mean + 0.002 * h.cwnd
            if h.hook in "IA":
                last[h.port] = h
        assert len(last) == ACTIVE and all(h.cwnd >= h.ssthresh for h in last.values()), "all are steady"
        oldest = mean if cca == "iss" else last[40000].cwnd
        print(cca, begun.count, oldest, begun.ssthresh)
        assert begun.count == pytest.approx(ACTIVE / (ACTIVE + 1) * oldest, abs=1)
        assert begun.ssthresh >= begun.count > 2


def test_the_other_reading_of_miss_waits_for_the_oldest_connections_next_drop(kernel: GuestKernel) -> None:
    starts_s = (0.0, 3.0, *(6.0 + i for i in range(12)))
    flows = tuple(Flow("miss", 40000 + i, start, ((19.5 - start, None),)) for i, start in enumerate(starts_s))
    scenario = several("miss", flows=flows, delay_ms=15, params={"miss": {"room": 1}})
    begun = starts(run(kernel, scenario), "miss", of_oldest=True)
    larger = [(h, first) for h, estimate, first in begun if estimate and first > 11]
    assert larger
    assert all(h.cwnd == pytest.approx(first, rel=0.01, abs=1) for h, first in larger)


def test_a_first_window_of_miss_that_is_held_stays_within_liss_estimate(kernel: GuestKernel) -> None:
    starts_s = (0.0, 3.0, *(6.0 + i for i in range(12)))
    flows = tuple(Flow("miss", 40000 + i, start, ((19.5 - start, None),)) for i, start in enumerate(starts_s))
    scenario = several("miss", flows=flows, delay_ms=15, params={"miss": {"room": 1, "held": 1}})
    begun = [one for one in starts(run(kernel, scenario), "miss", of_oldest=True) if one[1] and one[0].cwnd > 1]
    print([(h.cwnd, h.ssthresh, estimate, first) for h, estimate, first in begun])
    assert any(first > estimate + 1 for _, estimate, first in begun), "there is something to hold"
    for h, estimate, first in begun:
        assert h.cwnd == pytest.approx(max(min(first, estimate), 10), rel=0.01, abs=1)


def test_miss_begins_with_the_window_of_its_loss_history(kernel: GuestKernel) -> None:
    """Two long connections that seldom lose leave room for more than ten packets before the path's next drop is due."""
    long = tuple(Flow("miss", 40000 + i, float(i), ((19.5 - i, None),)) for i in range(2))
    short = tuple(Flow("miss", 40010 + i, 12 + i / 2, ((0.25, None),)) for i in range(14))
    begun = starts(run(kernel, several("miss", flows=(*long, *short), delay_ms=5)), "miss")
    print([(h.cwnd, first) for h, _, first in begun])
    larger = [(h, first) for h, estimate, first in begun if estimate and first > 11]
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


def test_prefix_length_destination_and_namespace_separate_groups(kernel: GuestKernel) -> None:
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
    """MISS's history of drops: a connection that loses packets, nobody for 10 s, then another one and newcomers.

    Remembered, the silence is one of the times between drops, and their mean another one."""
    one, two = (Flow("miss", 40000 + i, at_s, ((8.0, 4e5),)) for i, at_s in enumerate((0.0, 20.0)))
    new = tuple(Flow("miss", 40010 + i, 22.5 + i / 3, ((0.2, None),)) for i in range(9))
    base = several("miss", flows=(one, two, *new), seconds=26, loss_percent=1, rate_mbit=20, delay_ms=15)
    scenarios = [dataclasses.replace(base, params={"miss": {"group_age_s": age, "room": 1}}) for age in (600, 2)]
    remembered, forgotten = (
        [h.rtt_us for flow in new for h in result.flow(flow.port) if h.hook == "I"]
        for result in run_all(kernel, scenarios)
    )
    print(remembered, forgotten)
    assert remembered != forgotten


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


def test_js_leaves_pacing_that_the_application_asked_for(kernel: GuestKernel) -> None:
    """SO_MAX_PACING_RATE of 250 kB/s, 2 Mbit/s of 20: it holds also after the first window, which JS has paced itself."""
    first = Flow("js", 40000, 0.0, ((12.0, None),))
    second = Flow("js", 40001, 10.0, ((5.0, None),), max_pacing=250_000)
    result = run(kernel, several("js", flows=(first, second), seconds=15, loss_percent=0.05))
    hooks = [h for h in result.flow(40001) if h.hook in "IA"]
    assert hooks[0].count > 0
    sent = (hooks[-1].una - hooks[0].una) % 2**32
    seconds = (hooks[-1].now_us - hooks[0].now_us) / 1e6
    print(sent / seconds)
    assert sent / seconds <= 1.05 * 250_000
