# SPDX-License-Identifier: Apache-2.0
"""Build a run's network with Mininet and make its hosts as the plan says."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mininet.net import Mininet

from agent.connections import connection_requests, host_metrics
from agent.errors import RunError
from agent.kernel_log import KernelLog
from agent.mininet_build import BuildError, NetworkTopo, WireLink, routes_v6, send
from agent.namespaces import entered, write_sysctls
from base.linux import insert_module
from network import ipv6
from network.model import Network, NodePlan, address_plan
from network.one_event import with_one_event
from network.qdisc_netlink import OwnQdisc, anchor
from network.rtnetlink import route, segments_at_once
from plan.model import PROBE_BYTES, HostSettings, Plan

WIRES = "wires"
"""Name under which the namespace of the wires is reported."""


class _PlanTopo(NetworkTopo):
    def network(self, network: Network) -> Network:  # type: ignore[override]
        return network


class BuiltNetwork:
    """The network as it stands: a Mininet net, its address plan and the pids that hold the namespaces."""

    def __init__(self, plan: Plan) -> None:
        network = plan.network
        if plan.links == "events":
            network = with_one_event(network, {(capture.node, capture.peer) for capture in plan.captures})
        self.plans: dict[str, NodePlan] = address_plan(network)
        try:
            self.net = Mininet(topo=_PlanTopo(network=network), controller=None, switch=None)
            self.net.start()
            addresses = {name: node_plan.address for name, node_plan in self.plans.items()}
            for name, node_plan in self.plans.items():
                with entered(self.pid(name)):
                    apply_settings(node_plan, plan.hosts.get(name, HostSettings()), addresses)
        except BuildError as error:
            raise RunError("network", "build", str(error)) from error

    def owns(self, name: str) -> bool:
        """Whether a node is here, which all are where one host is the whole network."""
        return name in self.plans

    def pid(self, name: str) -> int:
        return int(self.net[name].pid)

    def pids(self) -> dict[str, int]:
        """Process that holds the namespace of every node, and of the wires where there are any."""
        pids = {name: self.pid(name) for name in self.plans}
        if WireLink.wires is not None:
            pids[WIRES] = int(WireLink.wires.pid)
        return pids

    def interface(self, node: str, peer: str) -> str:
        """Name of a node's interface towards a neighbour."""
        return next(i.name for i in self.plans[node].interfaces if i.peer == peer)

    def start_schedules(self, start_ns: int) -> list[dict[str, str]]:
        """Let everything that changes with time count from a time of CLOCK_MONOTONIC; returns what that is."""
        holders = [*self.net.hosts, *([WireLink.wires] if WireLink.wires is not None else [])]
        return start_schedules([(node.name, int(node.pid), node.own_qdiscs) for node in holders], start_ns)

    def idle_rtt_ns(self, source: str, destination: str) -> int:
        """Round-trip time of one ICMP echo through the empty network, ns."""
        return echo_rtt_ns(self.pid(source), self.plans[destination].address, self.plans[source].address)

    def stop(self) -> None:
        self.net.stop()


def start_schedules(places: Iterable[tuple[str, int, Sequence[OwnQdisc]]], start_ns: int) -> list[dict[str, str]]:
    """Tell queueing disciplines, given by node and by who holds its namespace, when the run starts (CLOCK_MONOTONIC)."""
    started = []
    for node, pid, qdiscs in places:
        scheduled = [qdisc for qdisc in qdiscs if qdisc.is_scheduled]
        if scheduled:
            with entered(pid):
                for qdisc in scheduled:
                    anchor(qdisc, start_ns)
                    started.append({"node": node, "interface": qdisc.interface, "kind": qdisc.kind})
    return started


def apply_settings(plan: NodePlan, settings: HostSettings, addresses: Mapping[str, str]) -> None:
    """Set a node's sysctls and route options, in its namespace; addresses: of all nodes."""
    try:
        write_sysctls(settings.sysctls)
    except OSError as error:
        raise RunError("sysctl", plan.node.name, str(error.strerror)) from error
    if settings.bursts == "none":
        send([segments_at_once(name, 1) for name in sorted({r.interface for r in plan.routes})])
    metrics = host_metrics(settings)
    if metrics:
        send([route(r.interface, r.destination, r.via, metrics) for r in plan.routes])
        if plan.ip == 6:
            send(routes_v6(plan, metrics))
    send(connection_requests(plan, settings, addresses))


def echo_rtt_ns(pid: int, address: str, source: str = "", timeout_s: float = 10.0, attempts: int = 20) -> int:
    """Send ICMP echo requests from a process's namespace until one is answered; returns its round-trip time, ns.

    source: address that the answers go to; by default that of the interface which the requests leave by
    """
    for _ in range(attempts - 1):
        try:
            return _one_echo_ns(pid, address, source, timeout_s)
        except TimeoutError:
            continue  # a path with loss
    try:
        return _one_echo_ns(pid, address, source, timeout_s)
    except TimeoutError as error:
        raise RunError("network", address, f"no answer to {attempts} echo requests, {timeout_s:g} s each") from error


def _one_echo_ns(pid: int, address: str, source: str, timeout_s: float) -> int:
    if ipv6.is_v6(address):
        return _one_echo_v6_ns(pid, address, source, timeout_s)
    body = bytes(range(PROBE_BYTES - 42))  # Ethernet 14, IP 20, ICMP 8
    header = struct.pack("!BBHHH", 8, 0, 0, 0x5742, 1)
    checksum = _checksum(header + body)
    packet = struct.pack("!BBHHH", 8, 0, checksum, 0x5742, 1) + body
    with entered(pid), socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sock:
        sock.bind((source, 0))
        sock.settimeout(timeout_s)
        sent = time.monotonic_ns()
        sock.sendto(packet, (address, 0))
        while True:
            answer = sock.recv(2048)
            received = time.monotonic_ns()
            icmp = answer[(answer[0] & 15) * 4 :]
            if icmp[0] == 0 and icmp[4:8] == packet[4:8]:
                return received - sent


def _one_echo_v6_ns(pid: int, address: str, source: str, timeout_s: float) -> int:
    """The same with ICMPv6, whose checksums the kernel makes and whose answers come without the IP header."""
    request, reply = 128, 129
    packet = struct.pack("!BBHHH", request, 0, 0, 0x5742, 1) + bytes(range(PROBE_BYTES - 62))  # IPv6 has 40
    with entered(pid), socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as sock:
        sock.bind((source, 0))
        sock.settimeout(timeout_s)
        sent = time.monotonic_ns()
        sock.sendto(packet, (address, 0))
        while True:
            icmp = sock.recv(2048)
            received = time.monotonic_ns()
            if icmp[0] == reply and icmp[4:8] == packet[4:8]:
                return received - sent


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def load_module(path: str, params: dict[str, str]) -> None:
    """Insert a kernel module, without a process that would draw random numbers.

    Raises RunError with the kernel's words.
    """
    with KernelLog() as log:
        try:
            insert_module(Path(path), " ".join(f"{key}={value}" for key, value in params.items()))
        except OSError as error:
            messages = [f"could not insert module: {error.strerror}", log.words()]
            raise RunError("module", path.rsplit("/", 1)[-1], "\n".join(filter(None, messages))) from error
