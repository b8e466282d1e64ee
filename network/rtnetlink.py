# SPDX-License-Identifier: Apache-2.0
"""Interfaces, addresses, neighbours and routes by rtnetlink(7), many in one go and without a process for each.

Messages are made by functions and sent by `Batch`, which says which of them the kernel refused.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network

from base.netlink import (
    CREATE,
    EXCLUSIVE,
    NESTED,
    NLMSG_ERROR,
    REPLACE,
    REQUEST_ACK,
    RTM_NEWADDR,
    RTM_NEWLINK,
    RTM_NEWNEIGH,
    RTM_NEWROUTE,
    RTM_NEWRULE,
    attribute,
    message,
    messages,
)

IFF_UP = 1
IFLA_ADDRESS, IFLA_IFNAME, IFLA_LINKINFO, IFLA_NET_NS_PID, IFLA_GSO_MAX_SEGS = 1, 3, 18, 19, 40
IFLA_INFO_KIND, IFLA_INFO_DATA, VETH_INFO_PEER = 1, 2, 1
IFA_ADDRESS, IFA_LOCAL, IFA_F_NODAD = 1, 2, 2
NDA_DST, NDA_LLADDR = 1, 2
NUD_PERMANENT = 0x80
RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_METRICS, RTA_TABLE = 1, 4, 5, 8, 15
RTAX_LOCK, RTAX_SSTHRESH, RTAX_CWND, RTAX_ADVMSS, RTAX_INITCWND, RTAX_QUICKACK, RTAX_CC_ALGO = 1, 6, 7, 8, 11, 15, 16
RT_TABLE_MAIN, RTPROT_BOOT, RTN_UNICAST, RT_SCOPE_LINK = 254, 3, 1, 253
FRA_PRIORITY, FRA_TABLE, FRA_IP_PROTO, FRA_SPORT_RANGE, FRA_DPORT_RANGE = 6, 15, 22, 23, 24
FR_ACT_TO_TBL = 1
SEND_BYTES = 6 << 10
"""Questions that are sent before their answers are read: what fits into every socket's buffer."""

_IFINFO = struct.Struct("=BxHiII")


class KernelRefusedError(OSError):
    """The kernel refused a request; the text says which and why."""


@dataclass(frozen=True)
class Request:
    """One message: type, flags, body, and words for a person."""

    kind: int
    flags: int
    body: bytes
    words: str


@dataclass(frozen=True)
class End:
    """One end of a veth pair: its name, the process or thread in whose namespace it is (None: here), its MAC address."""

    name: str
    pid: int | None = None
    mac: str | None = None

    def attributes(self) -> bytes:
        payload = attribute(IFLA_IFNAME, self.name.encode() + b"\0")
        if self.mac is not None:
            payload += attribute(IFLA_ADDRESS, _mac(self.mac))
        if self.pid is not None:
            payload += attribute(IFLA_NET_NS_PID, struct.pack("=I", self.pid))
        return payload


def veth(one: End, other: End) -> Request:
    """A pair of interfaces."""
    peer = attribute(VETH_INFO_PEER | NESTED, _IFINFO.pack(0, 0, 0, 0, 0) + other.attributes())
    info = attribute(IFLA_INFO_KIND, b"veth") + attribute(IFLA_INFO_DATA | NESTED, peer)
    body = _IFINFO.pack(0, 0, 0, 0, 0) + one.attributes() + attribute(IFLA_LINKINFO | NESTED, info)
    return Request(RTM_NEWLINK, CREATE | EXCLUSIVE, body, f"veth {one.name}–{other.name}")


def up(interface: str) -> Request:
    """Switch an interface of the current namespace on."""
    body = _IFINFO.pack(0, 0, socket.if_nametoindex(interface), IFF_UP, IFF_UP)
    return Request(RTM_NEWLINK, 0, body, f"{interface} up")


def segments_at_once(interface: str, count: int) -> Request:
    """The most packets that TCP makes in one go for an interface; of sockets that are opened later."""
    body = _IFINFO.pack(0, 0, socket.if_nametoindex(interface), 0, 0)
    body += attribute(IFLA_GSO_MAX_SEGS, struct.pack("=I", count))
    return Request(RTM_NEWLINK, 0, body, f"{interface} gso_max_segs {count}")


def address(interface: str, ip: str, prefix_length: int) -> Request:
    """Add an address to an interface of the current namespace."""
    family, packed = _address(ip)
    # nobody else can have an IPv6 address here, so the kernel need not wait for a second to find out
    flags = IFA_F_NODAD if family == socket.AF_INET6 else 0
    body = struct.pack("=BBBBI", family, prefix_length, flags, 0, socket.if_nametoindex(interface))
    body += attribute(IFA_LOCAL, packed) + attribute(IFA_ADDRESS, packed)
    return Request(RTM_NEWADDR, CREATE | EXCLUSIVE, body, f"{interface} address {ip}/{prefix_length}")


def neighbour(interface: str, ip: str, mac: str) -> Request:
    """Say an address' MAC address for good, so that nobody asks for it."""
    family, packed = _address(ip)
    body = struct.pack("=BxxxiHBB", family, socket.if_nametoindex(interface), NUD_PERMANENT, 0, 0)
    body += attribute(NDA_DST, packed) + attribute(NDA_LLADDR, _mac(mac))
    return Request(RTM_NEWNEIGH, CREATE | REPLACE, body, f"{interface} neighbour {ip}")


def route(
    interface: str,
    destination: str,
    via: str | None,
    metrics: Mapping[int, int | str] | None = None,
    table: int = RT_TABLE_MAIN,
    *,
    ip: int = 4,
) -> Request:
    """Add or replace a route; destination is a prefix or `default`; via None for a neighbour; metrics by RTAX number; ip: 4 or 6."""
    default = "::/0" if ip == 6 else "0.0.0.0/0"
    network = ip_network(default if destination == "default" else destination)
    family = socket.AF_INET6 if network.version == 6 else socket.AF_INET
    scope = RT_SCOPE_LINK if via is None and family == socket.AF_INET else 0
    body = struct.pack("=BBBBBBBBI", family, network.prefixlen, 0, 0, 0, RTPROT_BOOT, scope, RTN_UNICAST, 0)
    body += attribute(RTA_TABLE, struct.pack("=I", table))
    if network.prefixlen:
        body += attribute(RTA_DST, network.network_address.packed)
    if via is not None:
        body += attribute(RTA_GATEWAY, ip_address(via).packed)
    body += attribute(RTA_OIF, struct.pack("=I", socket.if_nametoindex(interface)))
    if metrics:
        body += attribute(RTA_METRICS | NESTED, b"".join(_metric(kind, value) for kind, value in metrics.items()))
    action = f"route {destination} via {via or interface}"
    if metrics and RTAX_CC_ALGO in metrics:
        action += f" congctl {metrics[RTAX_CC_ALGO]}"
    return Request(RTM_NEWROUTE, CREATE | REPLACE, body, action)


def _address(ip: str) -> tuple[int, bytes]:
    """Family and bytes."""
    parsed = ip_address(ip)
    return (socket.AF_INET6 if parsed.version == 6 else socket.AF_INET), parsed.packed


def _metric(kind: int, value: int | str) -> bytes:
    return attribute(kind, value.encode() + b"\0" if isinstance(value, str) else struct.pack("=I", value))


def port_rule(table: int, own_ports: tuple[int, int] | None, peer_ports: tuple[int, int] | None) -> Request:
    """Let TCP connections with these ports (first and last) look into a table before all others."""
    body = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, 0, 0, 0, FR_ACT_TO_TBL, 0)
    body += attribute(FRA_PRIORITY, struct.pack("=I", table)) + attribute(FRA_TABLE, struct.pack("=I", table))
    body += attribute(FRA_IP_PROTO, struct.pack("=B", socket.IPPROTO_TCP))
    for kind, ports in ((FRA_SPORT_RANGE, own_ports), (FRA_DPORT_RANGE, peer_ports)):
        if ports is not None:
            body += attribute(kind, struct.pack("=HH", *ports))
    return Request(RTM_NEWRULE, CREATE | EXCLUSIVE, body, f"rule {table} for ports {own_ports} to {peer_ports}")


@dataclass
class Batch:
    """Requests that are sent together in the current namespace."""

    requests: list[Request] = field(default_factory=list)

    def add(self, request: Request) -> None:
        self.requests.append(request)

    def send(self) -> None:
        """Send them in their order and forget them.

        Raises KernelRefusedError for the first that the kernel refused; those behind it may have been done.
        """
        todo, self.requests = self.requests, []
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
            sock.bind((0, 0))
            first = 0
            while first < len(todo):
                text, last = b"", first
                while last < len(todo) and len(text) < SEND_BYTES:
                    request = todo[last]
                    text += message(request.kind, REQUEST_ACK | request.flags, request.body, last)
                    last += 1
                sock.send(text)
                self._answers(sock, todo, first, last)
                first = last

    def _answers(self, sock: socket.socket, todo: list[Request], first: int, last: int) -> None:
        missing, refused = last - first, None
        while missing:
            for kind, number, payload in messages(sock.recv(1 << 16)):
                if kind == NLMSG_ERROR:
                    missing -= 1
                    (code,) = struct.unpack_from("=i", payload)
                    if code and refused is None:
                        refused = KernelRefusedError(-code, f"{todo[number].words}: {os.strerror(-code)}")
        if refused is not None:
            raise refused


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
