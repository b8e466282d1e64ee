# SPDX-License-Identifier: Apache-2.0
"""The path of the differential tests' guest: namespaces, links, queues; see guest.py."""

from __future__ import annotations

import os
import pathlib
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from base.linux import CLONE_NEWNET, setns

SENDERS = {"snd": ("192.0.2.1", "2001:db8:1::1"), "alt": ("198.18.0.1", "2001:db8:4::1")}
"""Namespaces that send: two hosts, so to say, on one kernel; with their addresses."""
SYSCTLS = {
    "tcp_no_metrics_save": "1",
    "tcp_rmem": "4096 16777216 67108864",
    "tcp_wmem": "4096 16777216 67108864",
}
NAMES = ("snd", "alt", "rtr", "wir", "rcv")
MAC = {name: f"02:00:00:00:00:{i:02x}" for i, name in enumerate(NAMES)}
LINKS = (
    ("snd", "192.0.2.1", "rtr", "192.0.2.2", "2001:db8:1::"),
    ("alt", "198.18.0.1", "rtr", "198.18.0.2", "2001:db8:4::"),
    ("rtr", "198.51.100.1", "wir", "198.51.100.2", "2001:db8:2::"),
    ("wir", "203.0.113.1", "rcv", "203.0.113.2", "2001:db8:3::"),
)
"""End, address, end, address, IPv6 prefix of both (::1 and ::2).  The receiver is also 203.0.113.3 and 2001:db8:3::3."""


def sh(command: str, text: str | None = None) -> str:
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False, input=text)
    if done.returncode:
        raise RuntimeError(f"{command}: exit {done.returncode}: {done.stderr.strip()} {done.stdout.strip()}")
    return done.stdout


def enter(netns: str) -> None:
    with open(f"/run/netns/{netns}") as handle:
        setns(handle.fileno(), CLONE_NEWNET)


@contextmanager
def inside(netns: str) -> Iterator[None]:
    with open("/proc/self/ns/net") as home:
        enter(netns)
        try:
            yield
        finally:
            setns(home.fileno(), CLONE_NEWNET)


def write_sysctl(name: str, value: str) -> None:
    pathlib.Path("/proc/sys/net/ipv4", name).write_text(value)


def use_ipv6(*, on: bool) -> None:
    """Off, unless a scenario wants it: its own packets would take draws from the losses."""
    for name in NAMES:
        with inside(name):
            for where in ("default", "all"):
                pathlib.Path(f"/proc/sys/net/ipv6/conf/{where}/disable_ipv6").write_text(str(int(not on)))
            if not on:
                continue
            pathlib.Path("/proc/sys/net/ipv6/conf/all/forwarding").write_text("1")
            lines = []
            for left, _, right, _, prefix in LINKS:
                for here, there, number, other in ((left, right, 1, 2), (right, left, 2, 1)):
                    if here == name:
                        dev = f"{here}-{there}"
                        lines.append(f"addr add {prefix}{number}/64 dev {dev} nodad")
                        lines.append(f"neigh add {prefix}{other} lladdr {MAC[there]} dev {dev} nud permanent")
            if name == "rcv":
                lines += ["addr add 2001:db8:3::3/64 dev rcv-wir nodad", "route add default via 2001:db8:3::1"]
            elif name in SENDERS:
                lines.append(f"route add default via {SENDERS[name][1].removesuffix('1')}2")
            elif name == "rtr":
                lines.append("route add 2001:db8:3::/64 via 2001:db8:2::2")
            else:
                lines += [f"route add 2001:db8:{n}::/64 via 2001:db8:2::1" for n in (1, 4)]
                lines.append(f"neigh add 2001:db8:3::3 lladdr {MAC['rcv']} dev wir-rcv nud permanent")
            sh("ip -6 -batch -", "\n".join(lines) + "\n")


def build_path() -> None:
    sh("ip -batch -", "".join(f"netns add {name}\n" for name in NAMES))
    use_ipv6(on=False)
    pairs = [
        f"link add {left}-{right} netns {left} address {MAC[left]} type veth "
        f"peer name {right}-{left} netns {right} address {MAC[right]}\n"
        for left, _, right, _, _ in LINKS
    ]
    sh("ip -batch -", "".join(pairs))
    lines: dict[str, list[str]] = {name: [] for name in NAMES}
    for left, left_ip, right, right_ip, _ in LINKS:
        for name, other, addr, peer in ((left, right, left_ip, right_ip), (right, left, right_ip, left_ip)):
            lines[name] += [
                f"addr add {addr}/24 dev {name}-{other}",
                f"link set {name}-{other} up",
                f"neigh add {peer} lladdr {MAC[other]} dev {name}-{other} nud permanent",
            ]
    lines["wir"].append(f"neigh add 203.0.113.3 lladdr {MAC['rcv']} dev wir-rcv nud permanent")
    lines["rcv"].append("addr add 203.0.113.3/24 dev rcv-wir")
    lines["rtr"].append("route add 203.0.113.0/24 via 198.51.100.2")
    lines["wir"] += ["route add 192.0.2.0/24 via 198.51.100.1", "route add 198.18.0.0/24 via 198.51.100.1"]
    for name in NAMES:
        with inside(name):
            sh("ip -batch -", "\n".join(lines[name]) + "\n")
            for left, _, right, _, _ in LINKS:
                if name in (left, right):
                    sh(f"ethtool -K {name}-{right if name == left else left} tso off gso off gro off")
            if name in ("rtr", "wir"):
                write_sysctl("ip_forward", "1")
            else:
                for key, value in SYSCTLS.items():
                    write_sysctl(key, value)


def netem(
    netns: str,
    dev: str,
    delay_ms: float,
    rate_mbit: float,
    loss_percent: float,
    seed: int,
    reorder_percent: float = 0.0,
) -> None:
    """Replace the root qdisc; tc of Debian 12 cannot say the seed of the losses, so this speaks netlink itself."""

    def attribute(kind: int, body: bytes) -> bytes:
        return struct.pack("=HH", 4 + len(body), kind) + body + bytes(-len(body) % 4)

    loss = min(2**32 - 1, round(loss_percent / 100 * 2**32))
    gap = int(reorder_percent > 0)
    options = struct.pack("=IIIIII", 0, 1_000_000, loss, gap, 0, 0)
    if gap:
        options += attribute(3, struct.pack("=II", round(reorder_percent / 100 * 2**32), 0))  # TCA_NETEM_REORDER
    options += attribute(10, struct.pack("=q", round(delay_ms * 1e6)))  # TCA_NETEM_LATENCY64
    options += attribute(14, struct.pack("=Q", seed))  # TCA_NETEM_PRNG_SEED
    if rate_mbit:
        options += attribute(6, struct.pack("=IiIi", round(rate_mbit * 125_000), 0, 0, 0))  # TCA_NETEM_RATE
    with inside(netns), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
        body = struct.pack("=BBHiIII", 0, 0, 0, socket.if_nametoindex(dev), 0, 0xFFFFFFFF, 0)  # struct tcmsg, root
        body += attribute(1, b"netem\0") + attribute(2, options)  # TCA_KIND, TCA_OPTIONS
        # RTM_NEWQDISC; REQUEST, ACK, REPLACE, CREATE
        link.send(struct.pack("=IHHII", 16 + len(body), 36, 0x505, 1, 0) + body)
        error = struct.unpack_from("=i", link.recv(4096), 16)[0]
    if error:
        raise OSError(-error, f"netem on {dev}: {os.strerror(-error)}")


def prepare(s: dict[str, Any]) -> None:
    """Make the path what the scenario says."""
    mss = s["packet_bytes"] - 40
    quick = " quickack 1" if s["quickack"] else ""
    frame = s["packet_bytes"] + 14
    for name, (address, _) in SENDERS.items():
        with inside(name):
            sh(f"ip route replace default via {address.removesuffix('1')}2 advmss {mss}")
            write_sysctl("tcp_sack", str(int(s["sack"])))
            write_sysctl("tcp_ecn", "1" if s["ecn"] else "2")
    with inside("snd"):
        subprocess.run(["tc", "qdisc", "del", "dev", "snd-rtr", "root"], capture_output=True, check=False)
        if s["sender_mbit"]:
            sh(f"tc qdisc add dev snd-rtr root tbf rate {s['sender_mbit']}mbit burst {2 * frame} limit 100000000")
        elif s["sender_qdisc"]:
            sh(f"tc qdisc add dev snd-rtr root {s['sender_qdisc']}")
    with inside("rcv"):
        sh(f"ip route replace default via 203.0.113.1 advmss {mss}{quick}")
        write_sysctl("tcp_sack", str(int(s["sack"])))
    with inside("rtr"):
        subprocess.run(["tc", "qdisc", "del", "dev", "rtr-wir", "root"], capture_output=True, check=False)
        if s["rate_mbit"]:
            queue = s["queue"] or f"pfifo limit {s['buffer_packets']}"
            sh(
                "tc -batch -",
                f"qdisc add dev rtr-wir root handle 1: tbf rate {s['rate_mbit']}mbit burst {2 * frame} "
                f"limit 100000000\nqdisc add dev rtr-wir parent 1:1 handle 10: {queue}\n",
            )
    if s["ipv6"]:
        use_ipv6(on=True)
    netem("wir", "wir-rcv", s["delay_ms"], s["rate_mbit"], s["loss_percent"], s["seed"], s["reorder_percent"])
    netem("wir", "wir-rtr", s["delay_ms"], 0, s["ack_loss_percent"], s["seed"] + 1)


def counters(netns: str) -> dict[str, int]:
    """The kernel's TCP counters of a namespace, and those of IP that are no part of MIB-II."""
    result: dict[str, int] = {}
    with inside(netns):
        text = pathlib.Path("/proc/net/netstat").read_text() + pathlib.Path("/proc/net/snmp").read_text()
    lines = text.splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        if names.startswith(("TcpExt:", "Tcp:", "IpExt:")):
            result.update(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
    return result
