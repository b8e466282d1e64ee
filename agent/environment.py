# SPDX-License-Identifier: Apache-2.0
"""The environment of a run's host: kernel, modules, sysctls, offloads, queues, tools. Recorded, not assumed."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent import queue_words
from agent.errors import RunError
from agent.namespaces import entered, read_offloads, read_sysctls

RECORDED_SYSCTLS = (
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_dsack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_frto",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_pacing_ca_ratio",
    "net.ipv4.ip_forward",
)
ANSWER_S = 30.0
"""Of a program that only tells something."""
TOOLS = {
    "iperf3": ["iperf3", "--version"],
    "tcpdump": ["tcpdump", "--version"],
    "ip": ["ip", "-V"],
    "mnexec": ["mnexec", "-v"],
    "nginx": ["/usr/sbin/nginx", "-v"],
}


def kernel() -> dict[str, Any]:
    """Release, version and the parameters of the congestion control and batching modules."""
    uname = os.uname()
    params: dict[str, dict[str, str]] = {}
    for path in sorted(Path("/sys/module").glob("*/parameters/*")):
        module = path.parts[-3]
        if module.startswith(("tcp_", "warp_")):
            try:
                params.setdefault(module, {})[path.name] = path.read_text().strip()
            except OSError:
                continue
    return {
        "release": uname.release,
        "version": uname.version,
        "machine": uname.machine,
        "module_params": params,
        "srcversions": {path.parts[-2]: path.read_text().strip() for path in Path("/sys/module").glob("*/srcversion")},
    }


def node(pid: int, interfaces: list[str]) -> dict[str, Any]:
    """Sysctls, offloads and queueing disciplines of a node.

    A process for each node, although agent.queue_words could do without: it draws random numbers before the first echo, and so decides the
    IP identifications of a run's pings.
    """
    with entered(pid):
        try:
            done = subprocess.run(["tc", "qdisc", "show"], capture_output=True, text=True, timeout=ANSWER_S)
        except subprocess.TimeoutExpired as error:
            raise RunError("environment", "tc", f"tc qdisc show: not done after {ANSWER_S:.0f} s") from error
        return {
            "interfaces": {str(index): name for index, name in socket.if_nameindex()},
            "sysctls": read_sysctls(RECORDED_SYSCTLS),
            "offloads": read_offloads(interfaces),
            "qdiscs": [line.strip() for line in done.stdout.splitlines() if "noqueue" not in line],
        }


def queue_statistics(pid: int) -> list[dict[str, Any]]:
    """What every queueing discipline of a node has sent and dropped: kind, device, bytes, packets, drops."""
    with entered(pid):
        return queue_words.statistics()


def tools() -> Mapping[str, str | None]:
    """First line of what each tool says of its version; None where it is not there."""
    versions: dict[str, str | None] = {}
    for name, command in TOOLS.items():
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_S)
        except (OSError, subprocess.TimeoutExpired):
            versions[name] = None
            continue
        lines = (done.stdout + done.stderr).splitlines()
        versions[name] = lines[0] if lines else ""
    return versions
