# SPDX-License-Identifier: Apache-2.0
"""How connections begin, by routes: algorithm, first window, first ssthresh and largest window, from the handshake on.

A program can set its algorithm only where it opens the connection itself, and iperf3 sets it once data has been sent. A route
sets it for every program, and rules choose routes by ports (ip-rule(8)), so that connections of one node differ, and those that
only control a measurement stay as they are. First ssthresh and largest window need the module warp_start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network

from network import ipv6
from network.model import NodePlan
from network.rtnetlink import (
    RTAX_ADVMSS,
    RTAX_CC_ALGO,
    RTAX_CWND,
    RTAX_INITCWND,
    RTAX_LOCK,
    RTAX_QUICKACK,
    RTAX_SSTHRESH,
    Request,
    port_rule,
    route,
)
from plan.model import ConnectionStart, HostSettings

FIRST_TABLE = 1000
"""Number of the first rule and of its table; the kernel's own rules have 0 and those from 32766 on."""
KERNEL_WINDOW = 10

Metrics = dict[int, int | str]


def host_metrics(settings: HostSettings) -> Metrics:
    """Route options of all connections of a host."""
    metrics: Metrics = {} if settings.ack == "delayed" else {RTAX_QUICKACK: 1}
    if settings.mss is not None:
        metrics[RTAX_ADVMSS] = settings.mss
    if settings.initial_window is not None:
        metrics[RTAX_INITCWND] = settings.initial_window
    return metrics


def start_metrics(settings: HostSettings, start: ConnectionStart) -> Metrics:
    """Route options of connections that begin in a way of their own."""
    metrics = host_metrics(settings)
    if start.cca is not None:
        metrics[RTAX_CC_ALGO] = start.cca
    if start.initial_window is not None:
        metrics[RTAX_INITCWND] = start.initial_window
    if start.initial_ssthresh is not None:
        metrics[RTAX_SSTHRESH] = start.initial_ssthresh
    if start.max_window is not None:
        metrics[RTAX_CWND], metrics[RTAX_LOCK] = start.max_window, 1 << RTAX_CWND
        # the module comes too late for the first window
        metrics[RTAX_INITCWND] = min(int(metrics.get(RTAX_INITCWND, KERNEL_WINDOW)), start.max_window)
    return metrics


def connection_requests(plan: NodePlan, settings: HostSettings, addresses: Mapping[str, str]) -> Iterator[Request]:
    """Routes and rules of a node's connections, for its own namespace.

    With IPv6 a route per destination says it alone: the guest's kernel has no rules for it (CONFIG_IPV6_MULTIPLE_TABLES), and a plan
    whose connections to one destination differ is refused (testbed.compile_ipv6).
    """
    if plan.ip == 6:
        yield from _requests_v6(plan, settings, addresses)
        return
    for number, start in enumerate(settings.starts):
        table, metrics = FIRST_TABLE + number, start_metrics(settings, start)
        for destination in start.destinations:
            interface, via = next_hop(plan, addresses[destination])
            yield route(interface, f"{addresses[destination]}/32", via, metrics, table)
        yield port_rule(table, start.own_ports, start.peer_ports)


def _requests_v6(plan: NodePlan, settings: HostSettings, addresses: Mapping[str, str]) -> Iterator[Request]:
    for start in settings.starts:
        for destination in start.destinations:
            interface, via = next_hop(plan, ipv6.to_v4(addresses[destination]))
            gateway = None if via is None else ipv6.of(via)
            metrics = start_metrics(settings, start)
            yield route(interface, f"{addresses[destination]}/128", gateway, metrics, ip=6)


def next_hop(plan: NodePlan, address: str) -> tuple[str, str | None]:
    """Interface and gateway (None: a neighbour) on a node's way to an address."""
    for interface in plan.interfaces:
        if interface.peer_address == address:
            return interface.name, None
    fitting = [
        (network.prefixlen, r)
        for r in plan.routes
        if IPv4Address(address)
        in (network := IPv4Network("0.0.0.0/0" if r.destination == "default" else r.destination))
    ]
    best = max(fitting, key=lambda pair: pair[0])[1]
    return best.interface, best.via
