# SPDX-License-Identifier: Apache-2.0
"""Samples of the TCP sockets of the flows' ends: what `ss -ti` shows, asked of the kernel directly."""

from __future__ import annotations

import socket
import struct

from base.netlink import dump_request

PROTOCOL = 4
"""NETLINK_SOCK_DIAG"""
SOCK_DIAG_BY_FAMILY = 20
INET_DIAG_INFO, INET_DIAG_VEGASINFO, INET_DIAG_CONG, INET_DIAG_SKMEMINFO = 2, 3, 4, 7
TCP_ESTABLISHED = 1
TCP_CLOSING_STATES = (1 << 4) | (1 << 5) | (1 << 8) | (1 << 9) | (1 << 11)  # FIN_WAIT1/2, CLOSE_WAIT, LAST_ACK, CLOSING


def question(peer_port: int = 0, ip: int = 4) -> bytes:
    """Established and closing TCP sockets of a version of IP with tcp_info, algorithm, its own phase and memory.

    peer_port: only sockets whose other end has this port; 0 for all
    """
    wanted = (INET_DIAG_INFO, INET_DIAG_VEGASINFO, INET_DIAG_CONG, INET_DIAG_SKMEMINFO)
    extensions = sum(1 << (kind - 1) for kind in wanted)
    states = 1 << TCP_ESTABLISHED | TCP_CLOSING_STATES
    # struct inet_diag_req_v2: family, protocol, ext, pad, states, then a 48-byte socket id: own and peer's port, the rest left empty
    payload = struct.pack(
        "=BBBxI", socket.AF_INET6 if ip == 6 else socket.AF_INET, socket.IPPROTO_TCP, extensions, states
    )
    payload += struct.pack("!HH", 0, peer_port) + bytes(44)
    return dump_request(SOCK_DIAG_BY_FAMILY, payload)
