# SPDX-License-Identifier: Apache-2.0
"""From a resolved experiment to the agent's plan: names become nodes, texts become numbers, defaults become explicit."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from base import quantities
from base.errors import Problem, SpecError
from base.nearest import nearest
from hosts import abilities
from kernels import series as kernel_series
from kernels.conditions import version
from network.frames import FULL_FRAME_BYTES, LONGER_IN_IPV6_BYTES
from network.model import Network, idle_rtt_ns, path
from network.tc import own_modules
from plan.console import MODULES
from plan.model import (
    BATCH_MODULE,
    FIRST_PORT,
    LINK_MODULES,
    START_MODULE,
    Capture,
    ConnectionStart,
    FlowPlan,
    HostSettings,
    Module,
    Plan,
)
from schema.base import Cca
from schema.cca_params import in_tree_params, module_params
from schema.load import Document, Loc
from schema.model import ECN_SYSCTL, Experiment, Flow, HostRules
from schema.traffic import TcpEntry
from testbed import compile_bpf, compile_ipv6, compile_samplers, compile_starts, compile_traffic
from testbed.compile_context import Window
from testbed.compile_overhead import apart, with_overheads
from testbed.network import network_of

START_GRID_S = 3600
"""A run starts at a full hour of its host's clock: preparing takes a time that depends on the machine's files, and packets
must not depend on it. In virtual time waiting costs nothing."""
ACK_WAIT = "100ms"
"""What a receiver with `ack: second` waits for the next packet, where the file does not say it; ns-2's sink has the same."""
NO_PORTS = "1"
"""A port that no flow uses."""
MOST_RANGES = 16
"""warp_rxbatch takes as many; connections beyond them are read one packet at a time, which is slower and no different."""
HOLD_MS, MOST_HOLD_MS = 20, 1000
"""How long data of a batched connection waits: the module's own value, and the most for very many."""
MANY_START_BYTES = 32 * 1024
"""Twice what iperf3's control connection carries in either direction for its most streams, 128: 14 570 and 16 686 bytes."""
GRACE_S = 60.0
"""Virtual or real seconds that applications get after the end to finish by themselves."""

PINNED_SYSCTLS = {
    # what one run learns about a path must not steer the next one
    "net.ipv4.tcp_no_metrics_save": "1",
}
ECN = {"off": "0", "passive": "2", "on": "1", "accurate": "3"}
"""What net.ipv4.tcp_ecn is for each: neither way, as the kernel comes (answers, never asks), both, AccECN both ways."""
ACCURATE_ECN_FROM = "7.2"
"""The first kernel series of the project that has Accurate ECN."""
BUFFER_PER_BDP = 8
"""Socket memory per byte of BDP: twice the BDP, and skbs take up to four times their payload."""
BUFFER_MIN_BYTES = 6 << 20
DEFAULT_RATE_BPS = 10**10
"""What a path without any rate counts as when buffers are sized."""


def compile_plan(
    experiment: Experiment,
    document: Document,
    seed: int = 1,
    exact: bool = False,
    host: str | None = None,
    like: Plan | None = None,
) -> Plan:
    """The agent's plan of a resolved experiment (one without a sweep) and a seed, which random traffic comes from.

    exact: hosts take no time of the model's for a packet, as those in real time, which take their own
    host: the kind that executes it, where it is not the experiment's
    like: the plan of the same experiment and another seed, which differs in when flows and traffic are active, and in nothing else

    Raises SpecError for flows between unknown nodes, and whatever `network_of` raises.
    """
    if like is not None:
        when = _when(experiment, document, like.network, seed, exact)
        return replace(
            like,
            flows=tuple(_flows(experiment, document, when)),
            traffic=tuple(compile_traffic.traffic_plans(experiment, when, seed, document)),
        )
    network = network_of(experiment, document)
    _check_nodes(experiment, document, network)
    compile_traffic.check_names(experiment, document, [node.name for node in network.nodes])
    network = with_ack_waits(network, experiment)
    if not exact:
        network = with_overheads(network, experiment)
    network = _shared(network)
    when = _when(experiment, document, network, seed, exact)
    flows = tuple(_flows(experiment, document, when))
    ports = [compile_traffic.port(experiment, i) for i in range(len(experiment.traffic))]
    starts = compile_starts.starts(experiment, document, flows[: len(experiment.flows)], ports)
    modules = tuple(_modules(experiment, document, network, starts))
    if (host or experiment.host) == "virtual":
        _check_kernel(experiment, document, network)
    _check_ecn(experiment, document)
    compile_ipv6.check(experiment, document, starts)
    sockets_s, queues_s = compile_samplers.intervals(experiment, document, network, flows)
    buffers = socket_buffers(network, flows)
    marks = any(direction.queue.ecn for direction in network.directions())
    return Plan(
        network=network,
        flows=flows,
        duration_s=quantities.seconds(experiment.duration),
        grace_s=GRACE_S,
        start_grid_s=START_GRID_S,
        hosts={
            node.name: _host(node.name, experiment, buffers, marks, starts.get(node.name, ())) for node in network.nodes
        },
        captures=tuple(_captures(experiment, document, network, flows)),
        traffic=tuple(compile_traffic.traffic_plans(experiment, when, seed, document)),
        tcp_probe=experiment.samplers.tcp_probe and bool(flows),
        sockets_interval_s=sockets_s,
        queues_interval_s=queues_s,
        modules=modules,
        bpf=compile_bpf.objects(
            [((*loc, "cca"), cca) for loc, cca in ccas_of(experiment)], document, in_virtual=not exact
        ),
        cca_params=in_tree_params(ccas_of(experiment), document),
        recorded_by=experiment.virtual.recorded_by or "kernel",
        links=experiment.virtual.links or "events",
    )


def _when(experiment: Experiment, document: Document, network: Network, seed: int, exact: bool) -> Mapping[str, Window]:
    """When flows and traffic are active; in virtual time no two of them start together by chance."""
    when = compile_traffic.windows(experiment, document, seed)
    return when if exact else apart(when, experiment, network, seed)


def _flows(experiment: Experiment, document: Document, when: Mapping[str, Window]) -> Iterator[FlowPlan]:
    """The plans of the experiment's flows, in their order, and behind them those of the traffic's connections."""
    flows = [_flow(i, flow, when[flow_name(i, flow)]) for i, flow in enumerate(experiment.flows)]
    values = [compile_starts.values_of(experiment, document, ("flows", i)) for i in range(len(flows))]
    yield from compile_starts.with_client_ports(flows, values, document)
    yield from compile_traffic.flow_plans(experiment, when)


@functools.lru_cache(maxsize=16)
def _shared(network: Network) -> Network:
    """The first network that was equal to this one: runs on the same graph look for its addresses and paths once."""
    return network


def socket_buffers(network: Network, flows: Iterable[FlowPlan]) -> tuple[int, int]:
    """Largest send and receive buffers (bytes) that never limit a flow: BDP and the path's queues, with overhead."""
    largest = BUFFER_MIN_BYTES
    for ends in {(flow.source, flow.destination): None for flow in flows}:
        largest = max(largest, network.once(("buffer", *ends), functools.partial(_path_buffer, network, *ends)))
    largest = min(largest, 2**31 - 1)
    return largest, largest


def _path_buffer(network: Network, source: str, destination: str) -> int:
    hops = path(network, source, destination)
    rate = min((d.rate_bps for _, _, d in hops if d.rate_bps), default=DEFAULT_RATE_BPS)
    in_flight = rate * idle_rtt_ns(network, source, destination, FULL_FRAME_BYTES) / 8e9
    queued = sum(d.buffer.full_bytes for _, _, d in hops if d.buffer)
    return int(BUFFER_PER_BDP * (in_flight + queued))


def _check_nodes(experiment: Experiment, document: Document, network: Network) -> None:
    names = [node.name for node in network.nodes]
    problems = []
    for i, flow in enumerate(experiment.flows):
        for key, node in (("from", flow.source), ("to", flow.destination)):
            if node not in names:
                line = document.line(("flows", i, key))
                problems.append(
                    Problem(document.file, line, f"flows.{i}.{key}", f"no node {node!r}; {nearest(node, names)}")
                )
        if flow.source == flow.destination:
            problems.append(
                Problem(document.file, document.line(("flows", i, "to")), f"flows.{i}", "goes to its own node")
            )
    for name in experiment.hosts.only:
        if name not in names:
            loc = ("hosts", "only", name)
            problems.append(
                Problem(document.file, document.line(loc), "hosts.only", f"no node {name!r}; {nearest(name, names)}")
            )
    if problems:
        raise SpecError(problems)


def _check_kernel(experiment: Experiment, document: Document, network: Network) -> None:
    """What the virtual host's kernel cannot do is an error of the file; other hosts are asked when they are prepared."""
    line = document.line(("topology",))
    series = kernel_series.of(experiment.kernel)
    if lacks := network.once(("lacks", series), lambda: abilities.missing(network, *_of_virtual(series))):
        raise SpecError([Problem(document.file, line, "topology", text) for text in lacks])


@functools.cache
def _of_virtual(series: str) -> tuple[Mapping[str, str], Collection[str]]:
    """Configuration and modules of the virtual host's kernel; remembered, since a sweep asks for them in each cell."""
    return abilities.virtual_config(series), abilities.project_modules()


def _check_ecn(experiment: Experiment, document: Document) -> None:
    """An older kernel takes the value and does something else."""
    series = kernel_series.of(experiment.kernel)
    rules: dict[tuple[str, ...], HostRules] = {("hosts", "ecn"): experiment.hosts}
    rules |= {("hosts", "only", name, "ecn"): rule for name, rule in experiment.hosts.only.items()}
    for loc, rule in rules.items():
        if rule.ecn == "accurate" and version(series) < version(ACCURATE_ECN_FROM):
            message = f"kernel {series} has no Accurate ECN; write kernel: '{ACCURATE_ECN_FROM}', or ecn: on"
            raise SpecError([Problem(document.file, document.line(loc), ".".join(loc), message)])


def flow_name(index: int, flow: Flow) -> str:
    return flow.name or f"f{index + 1}"


def tcp_entries(experiment: Experiment) -> list[tuple[Loc, Flow | TcpEntry]]:
    """All flows and all traffic under a congestion control algorithm, with their places in the file."""
    located: list[tuple[Loc, Flow | TcpEntry]] = [(("flows", i), flow) for i, flow in enumerate(experiment.flows)]
    entries = enumerate(experiment.traffic)
    return located + [(("traffic", i), entry) for i, entry in entries if isinstance(entry, TcpEntry)]


def ccas_of(experiment: Experiment) -> list[tuple[Loc, Cca]]:
    """The algorithms that the experiment's TCP connections use, with where the file says so."""
    return [(loc, entry.cca) for loc, entry in tcp_entries(experiment)]


def _flow(index: int, flow: Flow, window: Window) -> FlowPlan:
    start_s, size, stop_s = window.start_s, flow.size, window.stop_s
    return FlowPlan(
        name=flow_name(index, flow),
        app=flow.app,
        cca=flow.cca.name,
        source=flow.source,
        destination=flow.destination,
        port=FIRST_PORT + index,
        start_s=start_s,
        duration_s=None if size is not None else stop_s - start_s,
        size_bytes=None if size is None else quantities.size_bytes(size),
        parallel=flow.parallel,
    )


def _host(
    name: str,
    experiment: Experiment,
    buffers: tuple[int, int],
    marks: bool,
    starts: tuple[ConnectionStart, ...],
) -> HostSettings:
    send, receive = buffers
    sysctls = {
        **PINNED_SYSCTLS,
        "net.ipv4.tcp_wmem": f"4096 16384 {send}",
        "net.ipv4.tcp_rmem": f"4096 131072 {receive}",
    }
    if marks:
        sysctls[ECN_SYSCTL] = ECN["on"]  # a queue that marks is of no use to flows that do not ask for it
    ack, mss, bursts, window = "delayed", None, "linux", None
    for rule in _rules(name, experiment):
        if rule.ecn is not None:
            sysctls[ECN_SYSCTL] = ECN[rule.ecn]
        sysctls.update({key: str(value) for key, value in rule.sysctls.items()})
        ack = rule.ack or ack
        mss = rule.mss if rule.mss is not None else mss
        bursts = rule.bursts or bursts
        window = rule.initial_window or window
    return HostSettings(sysctls, ack, mss, bursts, window, starts)


def _rules(name: str, experiment: Experiment) -> list[HostRules]:
    """What the file says of a host, the more particular last."""
    return [experiment.hosts, *(rule for node, rule in experiment.hosts.only.items() if node == name)]


def with_ack_waits(network: Network, experiment: Experiment) -> Network:
    """The network with receivers that acknowledge every second packet; a router that did so too would leave every fourth."""
    waits = {node.name: _ack_wait_ns(node.name, experiment) if node.kind == "host" else None for node in network.nodes}
    if set(waits.values()) == {None} == {direction.ack_wait_ns for direction in network.directions()}:
        return network
    links = tuple(
        replace(
            link,
            forward=replace(link.forward, ack_wait_ns=waits[link.a]),
            backward=replace(link.backward, ack_wait_ns=waits[link.b]),
        )
        for link in network.links
    )
    return replace(network, links=links)


def _ack_wait_ns(name: str, experiment: Experiment) -> int | None:
    ack, wait = None, ACK_WAIT
    for rule in _rules(name, experiment):
        ack, wait = rule.ack or ack, rule.ack_wait or wait
    return quantities.delay_ns(wait) if ack == "second" else None


def _captures(
    experiment: Experiment, document: Document, network: Network, flows: tuple[FlowPlan, ...]
) -> Iterable[Capture]:
    at, snap = experiment.captures.at, experiment.captures.snap
    snap_bytes = 0 if snap == "all" else quantities.size_bytes(snap) + (LONGER_IN_IPV6_BYTES if network.ip == 6 else 0)
    if at == "none":
        return
    if at == "ends":
        places = []
        for flow in flows:
            if not flow.recorded:
                continue
            hops = path(network, flow.source, flow.destination)
            places += [(flow.source, hops[0][1]), (flow.destination, hops[-1][0])]
    else:
        links = {(link.a, link.b) for link in network.links} | {(link.b, link.a) for link in network.links}
        places = [(node, peer) for node, peer in (place.split(">") for place in at)]
        for i, place in enumerate(places):
            if place not in links:
                allowed = nearest(">".join(place), (f"{a}>{b}" for a, b in links))
                line = document.line(("captures", "at", i))
                raise SpecError(
                    [Problem(document.file, line, f"captures.at.{i}", f"no link {'>'.join(place)}; {allowed}")]
                )
    for node, peer in dict.fromkeys(places):
        yield Capture(node, peer, snap_bytes)


def _batched_ports(experiment: Experiment) -> dict[str, str]:
    """Server ports, in ranges, of connections whose receivers only read; and those among them whose programs look at nothing that they
    read, but count it. A receiver that asks for more once it has read is not told in batches: it would ask later."""
    if not experiment.virtual.batch_receivers:
        return {"ports": NO_PORTS}
    ports = [FIRST_PORT + index for index in range(len(experiment.flows))]
    unseen = [port for port, flow in zip(ports, experiment.flows, strict=True) if flow.app == "iperf3"]
    for index, entry in enumerate(experiment.traffic):
        if not entry.data_comes_from_the_server:
            ports.append(compile_traffic.port(experiment, index))
    lists = {"ports": _ranges(ports) or NO_PORTS, "unseen": _ranges(unseen)}
    return {name: ranges for name, ranges in lists.items() if ranges}


def _ranges(ports: Iterable[int]) -> str:
    """As warp_rxbatch takes them: 5201-5204,5207-5207."""
    ranges: list[list[int]] = []
    for number in ports:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{first}-{last}" for first, last in ranges[:MOST_RANGES])


def _batch_sizes(experiment: Experiment) -> dict[str, str]:
    """What makes batches of very many connections, each of which is slow: together they wake processes no more often than a hundred would.

    Nothing for fewer, which have the module's own values. The first batch begins after what iperf3's control connection may carry.
    """
    hundreds = sum(flow.parallel for flow in experiment.flows) // 100
    if not hundreds:
        return {}
    return {"start_bytes": str(MANY_START_BYTES), "hold_ms": str(min(HOLD_MS * (1 + hundreds), MOST_HOLD_MS))}


def _modules(
    experiment: Experiment, document: Document, network: Network, starts: Mapping[str, tuple[ConnectionStart, ...]]
) -> Iterable[Module]:
    def module(name: str, params: dict[str, str]) -> Module:
        return Module(f"{MODULES}/{name}.ko", params)

    # loaded in any case: with and without batching the guest then draws the same random numbers
    yield module(BATCH_MODULE, {**_batched_ports(experiment), **_batch_sizes(experiment)})
    for name in dict.fromkeys([*LINK_MODULES, *network.once("modules", lambda: own_modules(network.directions()))]):
        yield module(name, {})
    if any(start.needs_module for node in starts.values() for start in node):
        yield module(START_MODULE, {})
    for name, params in module_params(ccas_of(experiment), document).items():
        yield module(name, params)
