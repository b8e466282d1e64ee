# SPDX-License-Identifier: Apache-2.0
"""What this machine's kernel and packages lack for a plan, tried in a temporary network namespace.

python -m hosts.local.probe     tries each thing and prints, as JSON, what does not work
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from base.linux import CLONE_NEWNET, unshare
from base.paths import ROOT
from hosts.abilities import QUEUE_OPTIONS
from network.tc import own_modules, own_work
from plan.model import START_MODULE, Plan

TOOLS = {
    "mnexec": "mininet",
    "iperf3": "iperf3",
    "tcpdump": "tcpdump",
    "ip": "iproute2",
    "tc": "iproute2",
    "modprobe": "kmod",
}
ATTEMPTS: dict[str, list[str]] = {
    # in this order: each may need what was made before
    "veth": ["ip link add wbp0 type veth peer name wbp1"],
    "tbf": ["tc qdisc add dev wbp0 root handle 1: tbf rate 10mbit burst 3028 limit 100000"],
    "pfifo": ["tc qdisc add dev wbp0 parent 1:1 handle 10: pfifo limit 5"],
    **{
        kind: [f"tc qdisc replace dev wbp0 parent 1:1 handle {20 + number}: {kind}{words}"]
        for number, (kind, words) in enumerate(
            {
                "red": " limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.02",
                "codel": "",
                "fq_codel": "",
                "pie": "",
                "cake": "",
            }.items()
        )
    },
    "dualpi2": ["tc qdisc replace dev wbp0 parent 1:1 handle 30: dualpi2"],
    "policer": [
        "tc qdisc replace dev wbp1 root handle 1: prio bands 2",
        "tc filter add dev wbp1 parent 1: protocol all matchall classid 1:1 action police rate 1mbit burst 10000 conform-exceed drop/ok",
        "tc qdisc del dev wbp1 root",
    ],
    "netem": ["tc qdisc add dev wbp1 root netem limit 1000 delay 1ms"],
    "ingress": ["tc qdisc add dev wbp1 ingress"],
    "matchall": ["tc filter add dev wbp1 ingress matchall action mirred egress redirect dev wbp0"],
    "port rules": ["ip rule add ipproto tcp sport 10001-10002 lookup 1000"],
}
ATTEMPTS_S = 120.0
"""For all of them, which load modules."""
NEEDS = {
    "veth": "CONFIG_VETH",
    "tbf": "CONFIG_NET_SCH_TBF",
    "pfifo": "CONFIG_NET_SCHED",
    "netem": "CONFIG_NET_SCH_NETEM",
    **QUEUE_OPTIONS,
    "ingress": "CONFIG_NET_SCH_INGRESS",
    "matchall": "CONFIG_NET_CLS_MATCHALL and CONFIG_NET_ACT_MIRRED",
    "port rules": "CONFIG_IP_MULTIPLE_TABLES",
}
ALGORITHMS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
DESCRIBED = Path("/sys/kernel/btf/vmlinux")
ELSEWHERE = "run it with --host virtual or --host vm"


def problems(plan: Plan) -> list[str]:
    """Why the plan cannot be executed on this machine, each with a remedy."""
    if os.geteuid() != 0:
        return ["network namespaces in real time need root; start ./warpbed as root"]
    missing = sorted({package for tool, package in TOOLS.items() if shutil.which(tool) is None})
    if missing:
        return [f"Debian packages are missing. As root: apt-get install --no-install-recommends {' '.join(missing)}"]
    return [*_kernel_problems(plan), *_module_problems(plan), *_algorithm_problems(plan)]


def _kernel_problems(plan: Plan) -> Iterator[str]:
    line = [sys.executable, "-P", "-m", "hosts.local.probe"]
    try:
        completed = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, timeout=ATTEMPTS_S)
    except subprocess.TimeoutExpired:
        yield f"what this kernel ({os.uname().release}) can do was not found out within {ATTEMPTS_S:.0f} s; {ELSEWHERE}"
        return
    if completed.returncode:
        yield f"no network namespace can be made here: {completed.stderr.strip().splitlines()[-1:]}; {ELSEWHERE}"
        return
    failed: dict[str, str] = json.loads(completed.stdout)
    for name in sorted(needed(plan) & set(failed)):
        yield f"this kernel ({os.uname().release}) lacks {name} ({NEEDS[name]}): {failed[name]}; {ELSEWHERE}"


def needed(plan: Plan) -> set[str]:
    """Which of the attempts the plan's links and connections need."""
    directions = [d for link in plan.network.links for d in (link.forward, link.backward)]
    names = {"veth"}
    if any(d.rate_bps is not None for d in directions):
        names |= {"tbf", "pfifo"}
    if any(d.has_wire for d in directions):
        names |= {"netem", "ingress", "matchall"}
    if any(host.starts for host in plan.hosts.values()):
        names.add("port rules")
    return names | {d.queue.kind for d in directions if d.queue.kind in QUEUE_OPTIONS}


def _module_problems(plan: Plan) -> Iterator[str]:
    for name in own_modules(plan.network.directions()):
        if not has_module(name):
            what = ", ".join(sorted({own_work(name, direction) for direction in plan.network.directions()} - {""}))
            yield (
                f"{what} needs the module {name}, and none is installed for this kernel ({os.uname().release}); "
                f"install it (docs/kernels.md), or {ELSEWHERE}"
            )

    if any(start.needs_module for host in plan.hosts.values() for start in host.starts) and not has_module(
        START_MODULE
    ):
        yield (
            f"a first ssthresh or a largest window needs the module {START_MODULE}, and none is installed for this kernel "
            f"({os.uname().release}); install it (docs/kernels.md), or {ELSEWHERE}"
        )


def _algorithm_problems(plan: Plan) -> Iterator[str]:
    available = [*ALGORITHMS.read_text().split(), *(one.cca for one in plan.bpf)]
    if plan.bpf and not DESCRIBED.exists():
        yield (
            f"this kernel ({os.uname().release}) does not describe itself (CONFIG_DEBUG_INFO_BTF), which BPF congestion controls "
            f"need; boot another, or run it with --host vm and a distribution's own (docs/hosts.md#bpf)"
        )
    for name in dict.fromkeys(flow.cca for flow in plan.flows):
        if name not in available and not has_module(f"tcp_{name}"):
            yield (
                f"this kernel ({os.uname().release}) has no {name}, and no module tcp_{name} is installed for it; "
                f"install it (docs/kernels.md), or {ELSEWHERE}"
            )


def has_module(name: str) -> bool:
    """Whether modprobe finds a module for the running kernel."""
    completed = subprocess.run(["modprobe", "--dry-run", "--quiet", name], capture_output=True)
    return completed.returncode == 0


def main() -> int:
    """Try everything in a namespace that goes with this process."""
    try:
        unshare(CLONE_NEWNET)
    except OSError as error:
        print(error.strerror, file=sys.stderr)
        return 1
    failed = {}
    for name, lines in ATTEMPTS.items():
        for line in lines:
            completed = subprocess.run(line.split(), capture_output=True, text=True)
            if completed.returncode:
                failed[name] = (completed.stderr.strip().splitlines() or ["refused"])[-1].rstrip(".")
    print(json.dumps(failed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
