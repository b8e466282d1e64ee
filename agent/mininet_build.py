# SPDX-License-Identifier: Apache-2.0
"""Build a `network.model.Network` with Mininet, cheaply.

Plain Mininet starts a shell per node and several `ip`, `ifconfig` and `tc` processes per interface. The classes
here keep its API (`Topo`, `Node.cmd`, `Node.popen`, `net['h1']`, `mn --custom`) and change when processes start:
a node begins as namespaces that a thread of one process holds and gets its shell when somebody talks to it; links, addresses
and routes are written by rtnetlink, queues by one `tc` process per node that has any.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from mininet.link import Intf
from mininet.link import Link as MininetLink
from mininet.node import Node as MininetNode
from mininet.topo import Topo

from agent import kernel_links
from agent.holders import Holders
from agent.namespaces import disable_offloads, entered, write_sysctls
from base.errors import WarpbedError
from network import ipv6
from network.direction import Direction
from network.model import Network, NodePlan, address_plan
from network.plain_netlink import plain_qdiscs
from network.qdisc_netlink import OwnQdisc, create
from network.rtnetlink import Batch, End, Request, address, neighbour, route, up, veth
from network.tc import Place, egress, wire

BATCH_S = 300.0
"""For hundreds of commands at once."""
QUIET = {"accept_ra": "0", "autoconf": "0", "addr_gen_mode": "1", "accept_dad": "0", "dad_transmits": "0"}
"""Sysctls of an interface, so that nothing is sent for IPv6 but what is asked for."""


class BuildError(WarpbedError):
    """A network that the kernel refused; the text holds the command and the kernel's words."""


def batch(tool: str, lines: Iterable[str]) -> None:
    """Run lines through `ip -batch` or `tc -batch` in the current network namespace."""
    text = "\n".join(lines)
    if not text:
        return
    try:
        done = subprocess.run([tool, "-batch", "-"], input=text + "\n", text=True, capture_output=True, timeout=BATCH_S)
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{tool} -batch: not done after {BATCH_S:.0f} s\n{text}") from error
    if done.returncode:
        raise BuildError(f"{tool} -batch failed: {done.stderr.strip()}\n{text}")


def send(requests: Iterable[Request]) -> None:
    """Send requests in the current network namespace."""
    try:
        Batch(list(requests)).send()
    except OSError as error:
        raise BuildError(str(error.strerror)) from error


def configure_queues(places: Iterable[Place], is_plain: bool = False) -> list[OwnQdisc]:
    """Make queueing disciplines in the current network namespace; returns those of them that are the project's own.

    is_plain: without a process, as the network has none for which one is needed (network.plain_netlink)
    """
    all_places = list(places)
    own = [qdisc for place in all_places for qdisc in place.own]
    lines = [line for place in all_places for line in place.lines]
    plain = plain_qdiscs(lines) if is_plain else None
    for qdisc in [*own, *(plain or [])]:
        try:
            create(qdisc)
        except OSError as error:
            raise BuildError(str(error.strerror)) from error
    if plain is None:
        batch("tc", lines)
    for source, target in (way for place in all_places for way in place.straight):
        kernel_links.straight(source, target)
    return own


class WarpNode(MininetNode):  # type: ignore[misc]
    """A Mininet node that starts its shell only when one is needed."""

    holders: ClassVar[Holders] = Holders()
    held: int | None = None
    are_plain: ClassVar[bool] = False
    """Whether all queues of the network's nodes can be made without a process."""
    own_qdiscs: Sequence[OwnQdisc] = ()

    def startShell(self, mnopts: str | None = None) -> None:
        """Get namespaces from the process that holds those of all nodes; the shell itself waits for `_shell`."""
        if not self.inNamespace or mnopts is not None:
            super().startShell(mnopts)
            return
        try:
            self.held = self.pid = WarpNode.holders.hold()
        except OSError as error:
            raise BuildError(str(error)) from error

    def _shell(self) -> None:
        if self.shell is None and self.held is not None:
            self.inNamespace = False
            super().startShell(f"-cda{self.held}")
            self.inNamespace = True
            self.pid = self.held

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:
        self._shell()
        super().sendCmd(*args, **kwargs)

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        self._shell()
        return super().cmd(*args, **kwargs)

    def terminate(self) -> None:
        """End the shell, if there is one, and let the namespaces go."""
        if self.shell is not None:
            super().terminate()
        if self.held is not None:
            WarpNode.holders.release(self.held)
            self.held = None

    def config(self, plan: NodePlan | None = None, **params: Any) -> dict[str, Any]:
        """Addresses, routes, queues, sysctls of the plan; called by Mininet once all links are there."""
        if plan is None:
            result: dict[str, Any] = super().config(**params)
            return result
        WireLink.create_pending()
        for interface in plan.interfaces:  # what Mininet's IP(), MAC() and CLI look at
            known = self.nameToIntf[interface.name]
            known.ip, known.prefixLen, known.mac = interface.address, interface.prefix_length, interface.mac
        with entered(self.pid):
            write_sysctls(node_sysctls(plan))
            send(node_requests(plan))
            disable_offloads([interface.name for interface in plan.interfaces])
            places = [egress(i.name, i.egress) for i in plan.interfaces]
            self.own_qdiscs = configure_queues(places, WarpNode.are_plain)
        return {}


class PlannedIntf(Intf):  # type: ignore[misc]
    """An interface that its node configures as part of a batch."""

    def config(self, **_params: Any) -> dict[str, Any]:
        return {}

    def delete(self) -> None:
        """Nothing to delete: the interface goes with its namespace."""
        self.node.delIntf(self)
        self.link = None


class WireLink(MininetLink):  # type: ignore[misc]
    """A link with a namespace in the middle, where delay and loss happen; a plain veth pair without them."""

    pending: ClassVar[list[tuple[int, str, int, str, int, str, str, Direction, Direction]]] = []
    wires: WarpNode | None = None

    def __init__(
        self, node1: Any, node2: Any, forward: Direction, backward: Direction, number: int, **params: Any
    ) -> None:
        self.number, self.directions = number, (forward, backward)
        params.pop("intf", None)
        super().__init__(node1, node2, intf=PlannedIntf, **params)

    def makeIntfPair(
        self, intfname1: str, intfname2: str, addr1: str, addr2: str, node1: Any, node2: Any, deleteIntfs: bool = True
    ) -> None:
        WireLink.pending.append(
            (self.number, intfname1, node1.pid, intfname2, node2.pid, addr1, addr2, *self.directions)
        )

    def stop(self) -> None:
        """Called for every link when the network stops: the wires' namespace goes with the first."""
        super().stop()
        if WireLink.wires is not None:
            WireLink.wires.terminate()
            WireLink.wires = None

    @classmethod
    def create_pending(cls) -> None:
        """Create all links that were announced since the last call."""
        todo, cls.pending = cls.pending, []
        if not todo:
            return
        if cls.wires is None:
            cls.wires = WarpNode("wires")
        requests: list[Request] = []
        places: list[Place] = []
        names: list[str] = []
        for number, name1, pid1, name2, pid2, mac1, mac2, forward, backward in todo:
            one, other = End(name1, pid1, mac1), End(name2, pid2, mac2)
            if not (forward.has_wire or backward.has_wire):
                requests.append(veth(one, other))
                continue
            a, b = f"w{number}a", f"w{number}b"
            names += [a, b]
            requests += [veth(End(a), one), veth(End(b), other)]
            places += [wire(a, b, forward), wire(b, a, backward)]
        with entered(cls.wires.pid):
            write_sysctls({"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1"})
            send(requests)
            send([up(name) for name in names])
            disable_offloads(names)
            cls.wires.own_qdiscs = [*cls.wires.own_qdiscs, *configure_queues(places)]


def node_sysctls(plan: NodePlan) -> dict[str, str]:
    """What a node's kernel must be told before it gets its addresses, for its own namespace.

    IPv6 is off in a guest. Switched on, it says nothing by itself: no addresses of its own making, no questions for routers or for who
    else has an address.
    """
    forward = "1" if plan.node.kind == "router" else "0"
    settings = {"net.ipv4.ip_forward": forward}
    if plan.ip == 6:
        for interface in plan.interfaces:
            place = f"net.ipv6.conf.{interface.name}"
            settings |= {f"{place}.{name}": value for name, value in QUIET.items()}
        settings |= {"net.ipv6.conf.all.disable_ipv6": "0", "net.ipv6.conf.all.forwarding": forward}
    return settings


def node_requests(plan: NodePlan) -> list[Request]:
    """A node's addresses, neighbours and routes, for its own namespace."""
    requests = [up("lo")]
    for i in plan.interfaces:
        requests.append(address(i.name, i.address, i.prefix_length))
        requests.append(up(i.name))
        requests.append(neighbour(i.name, i.peer_address, i.peer_mac))
    requests += [route(r.interface, r.destination, r.via) for r in plan.routes]
    if plan.ip == 6:
        for i in plan.interfaces:
            length = ipv6.PREFIX_BITS + i.prefix_length
            requests.append(address(i.name, ipv6.of(i.address), length))
            requests.append(neighbour(i.name, ipv6.of(i.peer_address), i.peer_mac))
        requests += routes_v6(plan)
    return requests


def routes_v6(plan: NodePlan, metrics: Mapping[int, int | str] | None = None) -> list[Request]:
    """A node's routes once more, as those of IPv6."""
    return [route(r.interface, ipv6.network_of(r.destination), ipv6.of(r.via), metrics, ip=6) for r in plan.routes]


class NetworkTopo(Topo):  # type: ignore[misc]
    """A Mininet `Topo` made from a `Network`; the topology files derive theirs from it."""

    def network(self, **params: Any) -> Network:
        raise NotImplementedError

    def build(self, **params: Any) -> None:
        network = self.network(**params)
        problems = network.problems()
        if problems:
            raise BuildError("; ".join(problems))
        plans = address_plan(network)
        interfaces = (i for plan in plans.values() for i in plan.interfaces)
        lines = (line for i in interfaces for line in egress(i.name, i.egress).lines)
        WarpNode.are_plain = plain_qdiscs(lines) is not None
        for node in network.nodes:
            self.addHost(node.name, cls=WarpNode, plan=plans[node.name], ip=None)
        ports: dict[str, int] = {node.name: 0 for node in network.nodes}
        for number, link in enumerate(network.links):
            a = plans[link.a].interfaces[ports[link.a]]
            b = plans[link.b].interfaces[ports[link.b]]
            self.addLink(
                link.a,
                link.b,
                port1=ports[link.a],
                port2=ports[link.b],
                cls=WireLink,
                number=number,
                forward=link.forward,
                backward=link.backward,
                addr1=a.mac,
                addr2=b.mac,
            )
            ports[link.a] += 1
            ports[link.b] += 1
