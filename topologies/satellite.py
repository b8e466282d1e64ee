# SPDX-License-Identifier: Apache-2.0
"""Satellite: a path over a geostationary satellite or over a low-orbit constellation (Afifi 2014 topologies 4 and L1).

    s1 ── r1 ══ satellite ══ r2 ── d1         s2 … and d2 … beside them, for flows the other way

Two-way: both directions go over the satellite. One-way: data does, what comes back goes over a terrestrial link.

The low-orbit path (orbit=leo) is scheduled anew every 15 s: the terminal is then given another satellite, at a place drawn by
the seed from those above the least elevation, which moves on at its orbit's speed; delay is the way from the terminal over
it to the gateway and `delay` for all else. Each allocation has a rate drawn between `rate_low` and `rate`, and begins with a
handover in which packets are lost.

Run it by hand with plain Mininet from the repository's root:
    sudo PYTHONPATH=. mn --custom topologies/satellite.py --topo satellite,returns=terrestrial --switch lxbr --controller none
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from agent.custom import expose
from base.errors import ParameterError
from base.quantities import delay_ns, parameter, rate_bps, ratio
from network.direction import Direction
from network.impairments import Steps
from network.link_words import LinkTexts, rate_and_delay
from network.model import Bottleneck, Link, Network, Node

EARTH_M = 6_371_000.0
EARTH_GM = 3.986004418e14
"""Gravitational parameter, m³/s²."""
LIGHT_M_PER_S = 299_792_458.0
STEP_NS = 100 * 10**6
"""How often the delay of a moving satellite is set anew."""


@dataclass(frozen=True)
class Parameters(LinkTexts):
    """Texts with units as an experiment file has them; those of LinkTexts are the satellite link's.

    orbit: geo, or leo, where `delay` is what comes on top of the way through space
    returns: satellite (two-way) or terrestrial (one-way)
    return_rate, return_delay, return_buffer: of the terrestrial way back
    pairs: senders and receivers on each side, 1 to 200
    access_rate, access_delay: of the hosts' links
    seed, length: leo: of the schedule, which starts over after its length
    altitude_km, elevation, gateway_km: leo: the orbit, the least elevation in degrees, the way from terminal to gateway
    allocation, rate_low: leo: how long one satellite serves, and the lowest rate that it gives
    handover, handover_loss: leo: at the start of each allocation so long so many packets are lost
    """

    rate: str = "10mbit"
    delay: str = "270ms"
    buffer: str = "450p"
    loss: str = "1%"
    orbit: str = "geo"
    returns: str = "satellite"
    return_rate: str = "1mbit"
    return_delay: str = "20ms"
    return_buffer: str = "100p"
    pairs: int = 1
    access_rate: str = "100mbit"
    access_delay: str = "1ms"
    seed: int = 1
    length: str = "600s"
    altitude_km: int = 550
    elevation: int = 25
    gateway_km: int = 500
    allocation: str = "15s"
    rate_low: str = "5mbit"
    handover: str = "60ms"
    handover_loss: str = "50%"


def network(parameters: Parameters) -> Network:
    """The satellite path as nodes and links."""
    p = parameters
    _check(p)
    forward = p.direction() if p.orbit == "geo" else low_orbit(p)
    if p.returns == "satellite":
        backward = forward
    else:
        names = {"rate": "return_rate", "delay": "return_delay", "buffer": "return_buffer"}
        backward = rate_and_delay(p.return_rate, p.return_delay, names, p.return_buffer)
    access = rate_and_delay(p.access_rate, p.access_delay, {"rate": "access_rate", "delay": "access_delay"})
    pairs = range(1, p.pairs + 1)
    nodes = [
        *(Node(f"s{i}") for i in pairs),
        Node("r1", "router"),
        Node("r2", "router"),
        *(Node(f"d{i}") for i in pairs),
    ]
    links = [Link(f"s{i}", "r1", access, access) for i in pairs]
    links.append(Link("r1", "r2", forward, backward))
    links += [Link("r2", f"d{i}", access, access) for i in pairs]
    return Network(tuple(nodes), tuple(links), Bottleneck("r1", "r2"))


def _check(p: Parameters) -> None:
    for name, value, allowed in (
        ("orbit", p.orbit, ("geo", "leo")),
        ("returns", p.returns, ("satellite", "terrestrial")),
    ):
        if value not in allowed:
            raise ParameterError(name, f"{value!r}; allowed: {', '.join(allowed)}")
    for name, count, least, most in (
        ("pairs", p.pairs, 1, 200),
        ("altitude_km", p.altitude_km, 160, 2000),
        ("elevation", p.elevation, 5, 85),
        ("gateway_km", p.gateway_km, 0, 3000),
    ):
        if not least <= count <= most:
            raise ParameterError(name, f"{count}; allowed are {least} to {most}")


def low_orbit(p: Parameters) -> Direction:
    """The satellite link with its schedules of delay, rate and loss."""
    texts = {"rate": p.rate, "delay": "0ms" if p.delay == Parameters.delay else p.delay}
    base = p.direction(**texts)
    if base.varying_rate is not None or base.varying_delay is not None or base.varying_loss is not None:
        raise ParameterError(
            "orbit", "leo makes the schedules of rate, delay and loss itself; give rate, delay and loss constants"
        )
    if base.rate_bps is None:
        raise ParameterError("rate", "a satellite link needs a rate")
    length_ns, allocation_ns, handover_ns = (_time(p, name) for name in ("length", "allocation", "handover"))
    if not STEP_NS <= allocation_ns <= length_ns or length_ns > 86_400 * 10**9:
        raise ParameterError("allocation", f"{p.allocation}; at least 100ms, at most length, which is at most 24h")
    if handover_ns >= allocation_ns:
        raise ParameterError("handover", f"{p.handover} is not shorter than an allocation, {p.allocation}")
    low_bps, lost = parameter(p, "rate_low", rate_bps), parameter(p, "handover_loss", ratio)
    if low_bps > base.rate_bps:
        raise ParameterError("rate_low", f"{p.rate_low} is above rate, {p.rate}")
    draw = random.Random(p.seed)  # noqa: S311 — no secret: the same seed must give the same sky
    delays: list[tuple[int, float]] = []
    rates: list[tuple[int, float]] = []
    losses: list[tuple[int, float]] = []
    for start in range(0, length_ns, allocation_ns):
        end = min(length_ns, start + allocation_ns)
        ways = _pass(p, draw, (end - start) / 1e9)
        delays += [(t, base.delay_ns + ways((t - start) / 1e9)) for t in range(start, end, STEP_NS)]
        rates.append((start, draw.randint(low_bps, base.rate_bps)))
        losses += [(start, lost), (min(start + handover_ns, end - 1), 0.0)] if handover_ns and lost else []

    def steps(values: list[tuple[int, float]]) -> Steps:
        return Steps(tuple(t for t, _ in values), tuple(value for _, value in values), length_ns)

    return replace(
        base,
        varying_delay=steps(delays),
        delay_ns=int(max(value for _, value in delays)),
        varying_rate=steps(rates),
        rate_bps=int(max(value for _, value in rates)),
        varying_loss=steps(losses) if losses else None,
    )


def _time(p: Parameters, name: str) -> int:
    return int(parameter(p, name, delay_ns))


def _pass(p: Parameters, draw: random.Random, length_s: float) -> Callable[[float], int]:
    """One satellite's way from terminal to gateway by the seconds since its allocation, in whole ns.

    Angles are those at the earth's centre: the satellite moves along a great circle at a distance of `aside` from the
    terminal, the gateway lies beside the terminal, on the other side.
    """
    radius = EARTH_M + p.altitude_km * 1e3
    speed = math.sqrt(EARTH_GM / radius**3)
    elevation = math.radians(p.elevation)
    widest = math.acos(EARTH_M / radius * math.cos(elevation)) - elevation
    half = speed * length_s / 2
    if half >= widest:
        raise ParameterError(
            "allocation",
            f"a satellite at {p.altitude_km} km is above {p.elevation} degrees for at most "
            f"{2 * widest / speed:.0f} s; ask for shorter allocations or a smaller elevation",
        )
    aside = draw.uniform(0, math.acos(math.cos(widest) / math.cos(half)))
    room = math.acos(math.cos(widest) / math.cos(aside)) - half
    middle = draw.uniform(-room, room)
    gateway = p.gateway_km * 1e3 / EARTH_M

    def way_ns(since_s: float) -> int:
        along = middle - half + speed * since_s
        total_m = 0.0
        for beside in (aside, aside + gateway):
            angle_cosine = math.cos(beside) * math.cos(along)
            total_m += math.sqrt(EARTH_M**2 + radius**2 - 2 * EARTH_M * radius * angle_cosine)
        return round(total_m / LIGHT_M_PER_S * 1e9)

    return way_ns


topos = expose("satellite", Parameters, network)
