# SPDX-License-Identifier: Apache-2.0
"""The part of a network that one machine is: a node in a namespace of its own, cabled to other machines.

Interfaces of the machine move into the namespaces, and the kernel gives them back when the namespaces end. The wire of a link
(delay and loss, hosts.nodes.cabling says at which machine) is a namespace as in agent.mininet_build, whose far end is
the machine's own interface instead of one of a pair:

    node ── tbf, buffer ──▶ namespace of the wires ── netem ──▶ the machine's interface ── cable ──▶ the other machine
"""

from __future__ import annotations

import contextlib
import select
import subprocess
from pathlib import Path

from agent.errors import RunError
from agent.mininet_build import BuildError, batch, configure_queues, node_requests, node_sysctls, send
from agent.namespaces import disable_offloads, entered, write_sysctls
from agent.network import WIRES, apply_settings, echo_rtt_ns, start_schedules
from network.model import Interface, NodePlan, address_plan
from network.qdisc_netlink import OwnQdisc
from network.tc import Place, egress, wire
from plan.model import Cabling, HostSettings, Plan

GIVE_BACK_S, HOLD_S = 20.0, 20.0
SYS_NET = Path("/sys/class/net")


class MachineNetwork:
    """One node of the plan on this machine; the same calls as `agent.network.BuiltNetwork`."""

    def __init__(self, plan: Plan, cabling: Cabling) -> None:
        self.plans: dict[str, NodePlan] = address_plan(plan.network)
        self._plan, self._cabling = plan, cabling
        self._holders: dict[str, subprocess.Popen[bytes]] = {}
        self._own_qdiscs: dict[str, list[OwnQdisc]] = {}
        self._taken: list[tuple[str, str, str, str]] = []
        node = self.plans[cabling.node]
        for interface in node.interfaces:
            self._nic(interface)  # one that must not be taken is refused before any is
        try:
            self._hold(cabling.node)
            if cabling.wires:
                self._hold(WIRES)
            for interface in node.interfaces:
                self._connect(interface)
            with entered(self.pid(cabling.node)):
                write_sysctls(node_sysctls(node))
                send(node_requests(node))
                disable_offloads([interface.name for interface in node.interfaces])
                self._keep(cabling.node, [egress(i.name, i.egress) for i in node.interfaces])
                addresses = {name: other.address for name, other in self.plans.items()}
                apply_settings(node, plan.hosts.get(cabling.node, HostSettings()), addresses)
        except BuildError as error:
            self.stop()
            raise RunError("network", cabling.node, str(error)) from error
        except BaseException:
            self.stop()
            raise

    def owns(self, name: str) -> bool:
        return name == self._cabling.node

    def pid(self, name: str) -> int:
        return self._holders[name].pid

    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._holders.items()}

    def interface(self, node: str, peer: str) -> str:
        return next(i.name for i in self.plans[node].interfaces if i.peer == peer)

    def idle_rtt_ns(self, source: str, destination: str) -> int:
        """Round-trip time of one ICMP echo through the empty network, ns."""
        return echo_rtt_ns(self.pid(source), self.plans[destination].address, self.plans[source].address)

    def stop(self) -> None:
        """Give the machine its interfaces back as they were named; where this is killed before, the kernel gives them back."""
        for holder, name, nic, mac in self._taken:
            lines = [f"link set {name} down", f"link set {name} address {mac}", f"link set {name} netns 1 name {nic}"]
            # in a process of its own: process 1 is this one, and its namespace must stay the machine's meanwhile
            with contextlib.suppress(
                subprocess.TimeoutExpired
            ):  # the kernel then does it, with the end of the namespace
                subprocess.run(
                    ["nsenter", "--target", str(self.pid(holder)), "--net", "ip", "-batch", "-"],
                    input="\n".join(lines) + "\n",
                    text=True,
                    capture_output=True,
                    timeout=GIVE_BACK_S,
                )
        self._taken = []
        for process in self._holders.values():
            process.kill()
            process.wait()

    def start_schedules(self, start_ns: int) -> list[dict[str, str]]:
        places = [(name, self.pid(name), qdiscs) for name, qdiscs in self._own_qdiscs.items()]
        return start_schedules(places, start_ns)

    def _keep(self, name: str, places: list[Place]) -> None:
        """Make queueing disciplines in the current namespace, and remember those that a schedule may need."""
        self._own_qdiscs.setdefault(name, []).extend(configure_queues(places))

    def _hold(self, name: str) -> None:
        """Start the process that holds a namespace; mnexec prints its pid once that exists."""
        process = subprocess.Popen(
            ["mnexec", "-cdnp", "sleep", "infinity"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        self._holders[name] = process
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], HOLD_S)[0]:
            raise RunError("network", name, f"mnexec did not make its namespace within {HOLD_S:.0f} s")
        process.stdout.readline()

    def _connect(self, interface: Interface) -> None:
        number, nic = self._cabling.numbers[interface.name], self._nic(interface)
        mac = (SYS_NET / nic / "address").read_text().strip()
        if number not in self._cabling.wires:
            # names are given over there, where nothing of the same name can be in the way
            batch("ip", [f"link set {nic} down", f"link set {nic} netns {self.pid(self._cabling.node)}"])
            self._taken.append((self._cabling.node, interface.name, nic, mac))
            with entered(self.pid(self._cabling.node)):
                batch(
                    "ip",
                    [f"link set {nic} name {interface.name}", f"link set {interface.name} address {interface.mac}"],
                )
            return
        link, node = self._plan.network.links[number], self.pid(self._cabling.node)
        near, far = f"w{number}a", f"w{number}b"
        there, back = link.forward, link.backward
        if link.b == self._cabling.node:
            near, far, there, back = far, near, back, there
        batch("ip", [f"link set {nic} down", f"link set {nic} netns {self.pid(WIRES)}"])
        self._taken.append((WIRES, far, nic, mac))
        with entered(self.pid(WIRES)):
            write_sysctls({"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1"})
            batch(
                "ip",
                [
                    f"link set {nic} name {far}",
                    f"link set {far} promisc on up",
                    f"link add name {near} type veth peer name {interface.name} address {interface.mac} netns {node}",
                    f"link set {near} up",
                ],
            )
            disable_offloads([near, far])
            self._keep(WIRES, [wire(near, far, there), wire(far, near, back)])

    def _nic(self, interface: Interface) -> str:
        """The machine's own interface for one of the plan, found by its name or by its MAC address."""
        wanted = self._cabling.nics[interface.name]
        for entry in SYS_NET.iterdir():
            if wanted == entry.name or (":" in wanted and (entry / "address").read_text().strip() == wanted.lower()):
                if why := self._cabling.protected.get(entry.name):
                    raise RunError("network", interface.name, f"{entry.name} {why}; it is never touched")
                return entry.name
        have = ", ".join(sorted(f"{e.name} ({(e / 'address').read_text().strip()})" for e in SYS_NET.iterdir()))
        raise RunError("network", interface.name, f"this machine has no interface {wanted}; it has {have}")
