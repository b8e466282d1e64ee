# SPDX-License-Identifier: Apache-2.0
"""Execute one plan: `execute(plan, out_dir)` leaves the raw files and guest.json in out_dir."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent import algorithms, environment, kernel_records, queues, sockets, tcp_memory
from agent.calibrate import calibrate, crossed
from agent.capture import TcpdumpCapture
from agent.errors import RunError
from agent.fileflow import FileFlow
from agent.flows import Iperf3Flow
from agent.kernel_records import KernelCapture, KernelProbe, KernelSampler
from agent.machine import MachineNetwork
from agent.monitor import Monitor
from agent.namespaces import entered
from agent.network import BuiltNetwork, load_module
from agent.pace import Alone
from agent.samples import Sampler
from agent.schedule import Schedule
from agent.tcp_probe import TRACING, TcpProbe
from agent.traffic.process import TrafficProcess
from agent.traffic.programs.datagrams import LINGER_S
from network.model import source_address
from plan.model import Capture, FlowPlan, Plan

FLOW_APPS = ("iperf3", "file")
"""Programs of flows; all others are kinds of traffic."""
PROBE_DRAIN_S = 0.1
SMALL_NODES = 60
"""Each sample asks the kernel about every router that is sampled."""
TRAFFIC_END_S = 10.0
"""What a traffic process gets to write its result, at least."""
TICK_S = 1.0
FLUSH_S = 2.0
"""tcpdump gets packets in blocks, at the latest after a second, and leaves those that it has not got when it is told to
end. Captures of the kernel last as long, so that they hold the same."""
IDLE_ECHOES = 20
"""In real time the shortest of so many echoes is the path's; the others met the host at something else."""
NEVER_NS = 1 << 62
"""A time of CLOCK_MONOTONIC that does not come."""
SETTLE_S = 1.0
"""Between the last preparation and the start of the run."""


AnyNetwork = BuiltNetwork | MachineNetwork


@dataclass(frozen=True)
class Setting:
    """Where and how a plan is executed.

    tracing: tracefs, or a folder of its instances; pace: when steps happen; build: makes the network, or a machine's part
    """

    tracing: Path = TRACING
    pace: Alone = field(default_factory=Alone)
    build: Callable[[Plan], AnyNetwork] = BuiltNetwork
    node: str | None = None
    """The node that this machine is; None: all of them are here."""
    host_folder: str | None = None
    """The run's folder as the machine below a guest calls it, for what the guest's kernel writes itself."""


def execute(plan: Plan, out_dir: Path, report: Callable[[str], None], setting: Setting | None = None) -> None:
    """Run the plan.

    `report` is called with one line per event ("built", "running 3.0" …). guest.json is written in any case, with
    "ok" and, where the run failed, the error.
    """
    facts: dict[str, Any] = {"ok": False, "error": None}
    try:
        for module in plan.modules:
            load_module(module.path, module.params)
        setting = setting or Setting()
        with algorithms.ready(plan, setting.node):
            _execute(plan, out_dir, report, facts, setting)
        facts["ok"] = True
    except RunError as error:
        facts["error"] = {"stage": error.stage, "subject": error.subject, "detail": error.detail}
    finally:
        (out_dir / "guest.json").write_text(json.dumps(facts, indent=1, sort_keys=True))


def _execute(plan: Plan, out_dir: Path, report: Callable[[str], None], facts: dict[str, Any], setting: Setting) -> None:
    network = setting.build(plan)
    network.start_schedules(NEVER_NS)  # until the run starts, what changes with time has its first value
    report("built")
    setting.pace.gate("built")
    facts["environment"] = _environment(plan, network)
    host_folder = setting.host_folder if plan.recorded_by == "kernel" else None
    if host_folder is not None:
        kernel_records.load()
    facts["idle_rtt"] = _idle_rtts(plan, network)
    setting.pace.gate("probed")
    if plan.calibration != "off" and isinstance(network, BuiltNetwork):  # single hops need both their ends here
        facts["calibration"] = calibrate(network, plan, plan.calibration)
        report("calibrated")
    if plan.calibration == "only":
        return
    version = facts["environment"]["tools"]["iperf3"]
    run = _Run(plan, network, out_dir, setting.tracing, host_folder, version)
    try:
        run.prepare()
        start_s = setting.pace.start_s(SETTLE_S, plan.start_grid_s)
        start_ns = round(start_s * 1e9)
        facts["start_realtime_ns"] = time.clock_gettime_ns(time.CLOCK_REALTIME) + start_ns - time.monotonic_ns()
        facts["start_monotonic_ns"] = start_ns
        facts["schedules"] = network.start_schedules(start_ns)
        run.go(start_s, report)
        if run.monitor is not None:
            facts["realtime"] = run.monitor.stop()
        facts["capture_drops"], facts["tcp_probe_lost"] = run.finish()
        facts["captures_cut"] = run.full_captures
        facts["ended_s"] = time.monotonic() - start_s
        ends = dict.fromkeys(end for flow in plan.flows for end in (flow.source, flow.destination) if network.owns(end))
        facts["tcp_shortages"] = tcp_memory.shortages({name: network.pid(name) for name in ends})
        facts["module_params_at_end"] = environment.kernel()["module_params"]
        setting.pace.gate("ended")
        facts["queue_statistics"] = {name: environment.queue_statistics(pid) for name, pid in network.pids().items()}
    finally:
        run.kill()
        if isinstance(network, MachineNetwork):
            network.stop()


def _environment(plan: Plan, network: AnyNetwork) -> dict[str, Any]:
    nodes = {
        name: environment.node(pid, [i.name for i in network.plans[name].interfaces] if name in network.plans else [])
        for name, pid in network.pids().items()
    }
    return {"kernel": environment.kernel(), "nodes": nodes, "tools": environment.tools()}


def _idle_rtts(plan: Plan, network: AnyNetwork) -> dict[str, int]:
    pairs = dict.fromkeys((flow.source, flow.destination) for flow in plan.flows if network.owns(flow.source))
    for a, b in pairs:
        network.idle_rtt_ns(a, b)  # the first packet over a new link is 0.8 µs early in virtual time
    attempts = IDLE_ECHOES if plan.realtime else 1
    return {f"{a} {b}": min(network.idle_rtt_ns(a, b) for _ in range(attempts)) for a, b in pairs}


def _flow(flow: FlowPlan, plan: Plan, network: AnyNetwork, out_dir: Path, iperf3: str | None) -> Iperf3Flow:
    source, destination = (
        network.pid(node) if network.owns(node) else None for node in (flow.source, flow.destination)
    )
    address = network.plans[flow.destination].address
    if flow.app == "file":
        own_address = source_address(plan.network, flow.source, flow.destination)
        return FileFlow(flow, source, destination, address, out_dir, own_address)
    return Iperf3Flow(flow, source, destination, address, out_dir, iperf3)


def sampled_routers(plan: Plan) -> set[str]:
    """Routers whose queues are sampled: all of a small network, in a large one those that traffic crosses."""
    routers = {node.name for node in plan.network.nodes if node.kind == "router"}
    if len(plan.network.nodes) <= SMALL_NODES:
        return routers
    links = [plan.network.links[number] for number in crossed(plan)]
    return routers & {end for link in links for end in (link.a, link.b)}


class _Run:
    """The processes and samplers of one run."""

    def __init__(
        self,
        plan: Plan,
        network: AnyNetwork,
        out_dir: Path,
        tracing: Path,
        host_folder: str | None,
        iperf3: str | None,
    ) -> None:
        self._plan, self._network, self._out_dir, self._tracing = plan, network, out_dir, tracing
        self._host_folder, self._iperf3 = host_folder, iperf3
        self.monitor: Monitor | None = None
        self._captures: list[TcpdumpCapture | KernelCapture] = []
        self.full_captures: list[str] = []
        """Interfaces whose captures ended before the run, because they hold as many packets as they may."""
        self._flows: list[Iperf3Flow] = []
        self._traffic: list[TrafficProcess] = []
        self._samplers: list[tuple[Sampler | KernelSampler, float]] = []
        self._probe: TcpProbe | KernelProbe | None = None

    def prepare(self) -> None:
        plan, network = self._plan, self._network
        for capture in plan.captures:
            if not network.owns(capture.node):
                continue
            self._captures.append(self._capture(capture))
        for flow in plan.flows:
            if flow.app not in FLOW_APPS:
                continue
            self._flows.append(_flow(flow, plan, network, self._out_dir, self._iperf3))
            self._flows[-1].start_server()
        self._prepare_traffic()
        if plan.tcp_probe and any(network.owns(flow.source) for flow in plan.flows):
            self._probe = self._tcp_probe([flow.port for flow in plan.flows])
        self._prepare_samplers()

    def _capture(self, capture: Capture) -> TcpdumpCapture | KernelCapture:
        pid, interface = self._network.pid(capture.node), self._network.interface(capture.node, capture.peer)
        most = capture.packets_at_most
        if self._host_folder is not None:
            return KernelCapture(pid, interface, capture.snap_bytes, self._host_folder, most)
        virtual = not self._plan.realtime
        return TcpdumpCapture(pid, interface, capture.snap_bytes, self._out_dir, most, virtual=virtual)

    def _tcp_probe(self, ports: list[int]) -> TcpProbe | KernelProbe:
        first, last = min(ports), max(ports)
        if self._host_folder is not None:
            return KernelProbe(self._out_dir, self._host_folder, first, last)
        return TcpProbe(self._out_dir, first, last, self._tracing)

    def _sampler(self, name: str, protocol: int, question: bytes) -> Sampler | KernelSampler:
        if self._host_folder is not None:
            return KernelSampler(f"{self._host_folder}/{name}", protocol, question)
        return Sampler(open(self._out_dir / name, "wb", buffering=1 << 20), protocol, question)

    def _prepare_traffic(self) -> None:
        addresses = {name: node.address for name, node in self._network.plans.items()}
        for traffic in sorted(self._plan.traffic, key=lambda traffic: traffic.side, reverse=True):  # servers first
            if not self._network.owns(traffic.node):
                continue
            pid = self._network.pid(traffic.node)
            self._traffic.append(TrafficProcess(traffic, pid, addresses, self._out_dir))
        for process in self._traffic:
            process.wait_ready()

    def _prepare_samplers(self) -> None:
        plan, network = self._plan, self._network
        index = {node.name: i for i, node in enumerate(plan.network.nodes)}
        if plan.sockets_interval_s is not None:
            sampler = self._sampler("sockets.bin", sockets.PROTOCOL, sockets.question(ip=plan.network.ip))
            for name in dict.fromkeys(flow.source for flow in plan.flows if network.owns(flow.source)):
                with entered(network.pid(name)):
                    sampler.add(index[name])
            self._samplers.append((sampler, plan.sockets_interval_s))
        if plan.queues_interval_s is not None:
            sampler = self._sampler("queues.bin", queues.PROTOCOL, queues.question())
            sampled = sampled_routers(plan)
            for node in plan.network.nodes:
                if node.name in sampled and network.owns(node.name):
                    with entered(network.pid(node.name)):
                        sampler.add(index[node.name])
            self._samplers.append((sampler, plan.queues_interval_s))

    def go(self, start_s: float, report: Callable[[str], None]) -> None:
        plan, schedule = self._plan, Schedule()
        end_s = start_s + plan.duration_s
        if plan.realtime:
            self.monitor = Monitor()
        for process in self._traffic:
            process.start(round(start_s * 1e9))
        for flow in self._flows:
            schedule.at(start_s + flow.plan.start_s, flow.start_client)
        for sampler, interval_s in self._samplers:
            if isinstance(sampler, KernelSampler):
                sampler.start(start_s, interval_s, end_s)
            else:
                schedule.every(start_s, interval_s, end_s, sampler.sample)
        if isinstance(self._probe, TcpProbe):
            schedule.every(start_s, PROBE_DRAIN_S, end_s, self._probe.drain)

        def tick() -> None:
            for flow in self._flows:
                flow.check_running()
            for process in self._traffic:
                process.check_running()
            for capture in self._captures:
                capture.check_running()
            report(f"running {time.monotonic() - start_s:.1f}")
            if plan.ends_with_flows and all(flow.has_ended() for flow in self._flows):
                schedule.stop()

        schedule.every(start_s, TICK_S, end_s, tick)
        schedule.run(end_s)
        for flow in self._flows:
            flow.wait(max(0.0, end_s + plan.grace_s - time.monotonic()))
        self._end_traffic(end_s + plan.grace_s)

    def _end_traffic(self, until_s: float) -> None:
        """Clients end by themselves; servers are told to once nothing can be under way any more."""
        for side in ("client", "server"):
            for process in self._traffic:
                if process.plan.side == side:
                    if side == "server":
                        process.finish()
                    process.wait(max(TRAFFIC_END_S, until_s - time.monotonic()))
            if side == "client" and self._traffic:
                time.sleep(LINGER_S)

    def finish(self) -> tuple[dict[str, int], int]:
        """Stop everything; returns packets that captures lost and events that the trace ring lost."""
        lost = 0 if self._probe is None else self._probe.close()
        for sampler, _ in self._samplers:
            sampler.close()
        if self._captures:
            time.sleep(FLUSH_S)
        self.full_captures = [capture.interface for capture in self._captures if capture.is_full()]
        drops = {capture.interface: capture.stop() for capture in self._captures}
        return drops, lost

    def kill(self) -> None:
        for flow in self._flows:
            flow.kill()
        for process in self._traffic:
            process.kill()
        for capture in self._captures:
            capture.kill()
        if isinstance(self._probe, KernelProbe):
            self._probe.close()
        for sampler, _ in self._samplers:
            if isinstance(sampler, KernelSampler):
                sampler.close()
        if self.monitor is not None:
            self.monitor.kill()
