# SPDX-License-Identifier: Apache-2.0
"""The network model: addresses, routes and the times that the verdict holds measurements against."""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topologies
from base import quantities
from base.errors import ParameterError, UsageError
from network.aggregate import aggregate
from network.direction import direction_from
from network.impairments import Steps
from network.model import Link, Network, Node, NodePlan, address_plan, idle_rtt_ns, path


@pytest.mark.parametrize("name", topologies.names())
def test_every_topology_builds_with_its_defaults(name: str) -> None:
    network = topologies.build(name, {})
    assert network.problems() == []
    assert network.bottleneck is not None


@pytest.mark.parametrize("name", topologies.names())
def test_the_first_line_that_the_list_shows_is_a_sentence(name: str) -> None:
    assert (topologies.load(name).__doc__ or "").splitlines()[0].endswith(".")


PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "dumbbell": [{"pairs": 3, "access_delay": "1ms 5ms 9ms", "receiver_rate": "10mbit", "access_buffer": "20p"}],
    "two_stage": [{"fast": 0}, {"fast": 3, "slow": 0}],
    "star": [{"clients": 1, "cross": 0}],
    "parking_lot": [{"rate": "400mbit", "delay": "50ms", "buffer": "500p"}, {"routers": 3, "cross": 0}],
    "satellite": [{"returns": "terrestrial"}, {"orbit": "leo"}, {"orbit": "leo", "returns": "terrestrial", "pairs": 2}],
    "wan": [{"path": "nctu-nctu"}, {"path": "nctu-ncue"}, {"path": "own", "rtts": "1ms 3ms 2ms"}],
    "testbed4": [{"rtt_ab": "320ms", "rtt_cd": "32ms", "rate": "250mbit"}],
    "transit_stub": [{"nodes": 25}, {"nodes": 600}],
    "chain": [{"links": [{"rate": "2mbit", "delay": "1ms", "buffer": "9p"}]}],
}


@pytest.mark.parametrize(
    ("name", "params"), [(name, params) for name, several in PARAMETERS.items() for params in several]
)
def test_every_topology_builds_with_other_parameters(name: str, params: dict[str, Any]) -> None:
    network = topologies.build(name, params)
    assert network.problems() == []
    assert max(len(plan.routes) for plan in address_plan(network).values()) < 50
    for one in network.directions():
        assert direction_from(json.loads(json.dumps(dataclasses.asdict(one)))) == one


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("dumbbell", {"pairs": 0}, "pairs: 0"),
        ("star", {"clients": 0}, "clients: 0"),
        ("two_stage", {"fast": 0, "slow": 0}, "nobody sends"),
        ("parking_lot", {"routers": 2}, "routers: 2"),
        ("transit_stub", {"nodes": 199}, "multiple of 25"),
        ("transit_stub", {"stub_delay": "x"}, "stub_delay: "),
        ("satellite", {"orbit": "meo"}, "orbit: 'meo'"),
        ("satellite", {"orbit": "leo", "altitude_km": 50}, "altitude_km"),
        ("satellite", {"orbit": "leo", "allocation": "600s"}, "at most 2"),
        ("satellite", {"orbit": "leo", "rate_low": "20mbit"}, "above rate"),
        ("wan", {"path": "nctu"}, "path: 'nctu'"),
        ("wan", {"rtts": "1ms 2ms"}, "goes together"),
        ("testbed4", {"delay": "10ms"}, "rtt_ab: 16ms is less"),
        ("chain", {"links": []}, "0 links"),
        ("chain", {"links": "1mbit"}, "a list is needed"),
        ("dumbbell", {"pairs": "two"}, "a whole number"),
    ],
)
def test_bad_parameters_are_reported(name: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        topologies.build(name, params)


def test_an_error_carries_its_parameter_and_the_place_in_it() -> None:
    with pytest.raises(ParameterError) as caught:
        topologies.build("chain", {"links": [{"rate": "1mbit"}, {"rate": "1mbyte"}]})
    assert caught.value.name == ("links", 1, "rate") and "'1mbyte' is not a rate" in caught.value.text
    with pytest.raises(ParameterError) as caught:
        topologies.build("dumbbell", {"pairs": 2, "access_delay": "1ms 2"})
    assert caught.value.name == ("access_delay",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def network(parameters): ...", "not a topology, it does not define Parameters, topos"),
        ("import no_such_module", "cannot be loaded: No module named 'no_such_module'"),
        ("def network(:", "cannot be loaded: invalid syntax"),
    ],
)
def test_a_file_that_is_no_topology_is_an_error_with_its_name(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is listed as a name like any other, so that the list of topologies fails rather than leave it out."""
    name = f"stray_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(topologies, "__path__", [*topologies.__path__, str(tmp_path)])
    topologies.names.cache_clear()
    try:
        assert name in topologies.names()
        with pytest.raises(UsageError, match=re.escape(f"{name}.py: {message}")):
            topologies.load(name)
    finally:
        topologies.names.cache_clear()
        sys.modules.pop(f"topologies.{name}", None)


def test_the_same_seed_gives_the_same_graph_and_another_seed_another() -> None:
    one, again, other = (topologies.build("transit_stub", {"seed": seed}) for seed in (1, 1, 2))
    assert one == again != other
    assert len(one.nodes) == 200


def test_transit_stub_is_as_dense_as_asked() -> None:
    """Of the 28 possible links in a stub 42 % are there on average, and never fewer than a tree's 7."""
    network = topologies.build("transit_stub", {"nodes": 600})
    inside = [
        len([link for link in network.links if link.area == area]) - 1
        for area in {x.area for x in network.links if x.area.count(".") == 2}
    ]
    assert len(inside) == 72 and min(inside) >= 7
    assert sum(inside) / len(inside) == pytest.approx(0.42 * 28, rel=0.05)


def test_low_orbit_delays_are_those_of_the_geometry() -> None:
    """550 km, terminal beside the gateway, satellite overhead: 2 × 550 km at the speed of light is 3.67 ms."""
    network = topologies.build(
        "satellite", {"orbit": "leo", "gateway_km": 0, "elevation": 80, "allocation": "2s", "length": "20s"}
    )
    steps = network.links[1].forward.varying_delay
    assert steps is not None
    straight_up = 2 * 550e3 / 299_792_458 * 1e9
    assert straight_up <= min(steps.values) and max(steps.values) < straight_up / math.sin(math.radians(79))
    assert steps.repeat_ns == 20 * 10**9
    rates = network.links[1].forward.varying_rate
    assert isinstance(rates, Steps) and rates.at_ns == tuple(range(0, 20 * 10**9, 2 * 10**9))


def test_wide_area_profiles_end_at_the_measured_round_trip() -> None:
    for path_name, rtt_ms in (("nctu-nctu", 0.41), ("nctu-ncue", 10.28), ("nctu-ca", 196.86)):
        network = topologies.build("wan", {"path": path_name})
        assert 2 * sum(link.forward.delay_ns for link in network.links) == pytest.approx(rtt_ms * 1e6, abs=30)
        assert all(link.forward.delay_ns >= 0 for link in network.links)


@given(st.dictionaries(st.integers(0, 500), st.sampled_from("abcd"), min_size=1, max_size=80))
def test_aggregated_routes_say_what_single_ones_say(hops: dict[int, str]) -> None:
    routes = [(ipaddress.IPv4Network(prefix), hop) for prefix, hop in aggregate(hops)]
    assert len(routes) <= len(hops)
    for number, hop in hops.items():
        address = ipaddress.IPv4Address("10.0.0.1") + 4 * number
        routes_to = [(network.prefixlen, via) for network, via in routes if address in network]
        assert max(routes_to)[1] == hop


@given(st.lists(st.sampled_from(["", "a", "a.x", "a.y", "a.x.1", "b", "c.z"]), min_size=1, max_size=60))
def test_areas_have_addresses_side_by_side(areas: list[str]) -> None:
    """Links of an area, with those of the areas within it, lie in one prefix that no other link is in."""
    nodes = tuple(Node(f"n{i}") for i in range(len(areas) + 1))
    links = tuple(Link(f"n{i}", f"n{i + 1}", area=area) for i, area in enumerate(areas))
    plans = address_plan(Network(nodes, links))
    numbers = [(int(ipaddress.IPv4Address(plans[link.a].interfaces[-1].address)) - (10 << 24)) // 4 for link in links]
    assert len(set(numbers)) == len(links)
    for area in set(areas):
        inside = [
            n for n, link in zip(numbers, links, strict=True) if f"{link.area}.".startswith(f"{area}.") or not area
        ]
        size = 1 << max(0, (max(inside) ^ min(inside)).bit_length())
        first = min(inside) // size * size
        outside = set(numbers) - set(inside)
        assert not [n for n in outside if first <= n < first + size]


def test_networks_without_areas_number_links_in_their_order() -> None:
    plans = address_plan(topologies.build("dumbbell", {"pairs": 2}))
    assert [plans[name].address for name in ("s1", "s2", "r2", "d2")] == [
        "10.0.0.1",
        "10.0.0.5",
        "10.0.0.10",
        "10.0.0.18",
    ]


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
    hop = _next_hops(plans)
    for start in plans:
        for target in plans:
            here, steps = start, 0
            while here != target:
                here = owner[hop(here, target)]
                steps += 1
                assert steps <= len(plans)


@given(networks())
def test_paths_are_the_ways_that_routes_lead(network: Network) -> None:
    """What idle RTT, buffers and calibration count on: where a node has several links, its address is that of the first."""
    plans = address_plan(network)
    owner = {i.address: i.node for plan in plans.values() for i in plan.interfaces}
    hop = _next_hops(plans)
    for start in plans:
        for target in plans:
            here, ways = start, []
            while here != target:
                following = owner[hop(here, target)]
                ways.append((here, following))
                here = following
            assert [(a, b) for a, b, _ in path(network, start, target)] == ways


def _next_hops(plans: Mapping[str, NodePlan]) -> Callable[[str, str], str]:
    """Of a node and a node to reach, the address of the next hop: the longest matching prefix."""

    @functools.cache
    def hop(node: str, target: str) -> str:
        plan, goal = plans[node], ipaddress.IPv4Address(plans[target].address)
        for interface in plan.interfaces:
            if goal in ipaddress.IPv4Interface(f"{interface.address}/30").network:
                return str(goal)
        nets = [(ipaddress.IPv4Network(r.destination.replace("default", "0.0.0.0/0")), r.via) for r in plan.routes]
        routes_to = [(net.prefixlen, via) for net, via in nets if goal in net]
        assert routes_to, f"no route to {goal}"
        return max(routes_to)[1]

    return hop


def test_idle_rtt_of_the_thesis_path() -> None:
    """Ho 2008 Fig 5.1: 2 × (1 + 48 + 1) ms; 1000-byte packets take 0.16 ms at 50 Mbit/s, 0.008 ms at 1 Gbit/s."""
    network = topologies.build("dumbbell", {"rate": "50mbit", "delay": "48ms"})
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
