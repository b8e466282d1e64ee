# SPDX-License-Identifier: Apache-2.0
"""The network model: addresses, routes and the times that the verdict holds measurements against."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed import quantities
from topologies import registry
from topologies.model import Link, Network, Node, address_plan, idle_rtt_ns, path


@pytest.mark.parametrize("name", registry.names())
def test_every_topology_builds_with_its_defaults(name: str) -> None:
    network = registry.build(name, {})
    assert network.problems() == []
    assert network.bottleneck is not None


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Connected graphs: a random tree with some further links."""
    count = draw(st.integers(2, 25))
    links = [Link(f"n{draw(st.integers(0, i - 1))}", f"n{i}") for i in range(1, count)]
    for a, b in draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=6)):
        if a != b:
            links.append(Link(f"n{a}", f"n{b}"))
    return Network(tuple(Node(f"n{i}", "router") for i in range(count)), tuple(links))


@given(networks())
def test_addresses_differ_and_routes_lead_everywhere(network: Network) -> None:
    plans = address_plan(network)
    interfaces = [interface for plan in plans.values() for interface in plan.interfaces]
    assert len({i.address for i in interfaces}) == len({i.name for i in interfaces}) == len(interfaces)
    owner = {i.address: i.node for i in interfaces}
    for start in plans:
        for target in plans:
            here, steps = start, 0
            while here != target:
                here = owner[_next(plans[here], plans[target].address)]
                steps += 1
                assert steps <= len(plans)


def _next(plan: object, address: str) -> str:
    goal = ipaddress.IPv4Address(address)
    for interface in plan.interfaces:  # type: ignore[attr-defined]
        if goal in ipaddress.IPv4Interface(f"{interface.address}/30").network:
            return str(goal)
    for route in plan.routes:  # type: ignore[attr-defined]
        if route.destination == "default" or goal in ipaddress.IPv4Network(route.destination):
            return str(route.via)
    raise AssertionError(f"no route to {address}")


def test_idle_rtt_of_the_thesis_path() -> None:
    """Ho 2008 Fig 5.1: 2 × (1 + 48 + 1) ms; 1000-byte packets take 0.16 ms at 50 Mbit/s, 0.008 ms at 1 Gbit/s."""
    network = registry.build("dumbbell", {"rate": "50mbit", "delay": "48ms"})
    assert idle_rtt_ns(network, "s1", "d1", 1000) == 100_000_000 + 2 * (160_000 + 2 * 8_000)
    assert [(a, b) for a, b, _ in path(network, "s1", "d1")] == [("s1", "r1"), ("r1", "r2"), ("r2", "d1")]


def test_impossible_networks_are_named() -> None:
    assert "no path" in Network((Node("a"), Node("b")), ()).problems()[0]
    assert "no node b" in Network((Node("a"),), (Link("a", "b"),)).problems()[0]
    assert "twice" in Network((Node("a"), Node("a")), ()).problems()[0]
    assert "at most 9" in Network((Node("a_very_long_name"),), ()).problems()[0]


@pytest.mark.parametrize(
    ("function", "text", "value"),
    [
        (quantities.rate_bps, "50mbit", 50_000_000),
        (quantities.rate_bps, "1.5gbit", 1_500_000_000),
        (quantities.delay_ns, "48ms", 48_000_000),
        (quantities.delay_ns, "0.5us", 500),
        (quantities.buffer_size, "250p", (250, "packets")),
        (quantities.buffer_size, "64KB", (64_000, "bytes")),
        (quantities.ratio, "2%", 0.02),
        (quantities.size_bytes, "1MiB", 1 << 20),
    ],
)
def test_quantities(function: object, text: str, value: object) -> None:
    assert function(text) == value  # type: ignore[operator]


@pytest.mark.parametrize("text", ["", "50", "mbit", "-1mbit", "1e9bit", "50 MBIT", "0.5bit", "٣mbit", "1mbit\n; rm"])
def test_bad_quantities_say_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match=r"bit|whole"):
        quantities.rate_bps(text)
