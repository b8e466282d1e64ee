# SPDX-License-Identifier: Apache-2.0
"""IPv6 addresses of a network: each is the IPv4 address of the same interface behind a fixed prefix.

A run with `ip: 6` has both. Flows and traffic use these; calibration, which measures frames, uses the others. The prefix is
a unique local one (RFC 4193), so nothing of a run can be routed to anywhere.
"""

from __future__ import annotations

import ipaddress

PREFIX = "fd57:4152:5042::"
PREFIX_BITS = 96
"""An IPv4 network of n bits is one of 96 + n."""
_BASE = int(ipaddress.IPv6Address(PREFIX))


def of(address: str) -> str:
    """The IPv6 address for an IPv4 address."""
    return str(ipaddress.IPv6Address(_BASE + int(ipaddress.IPv4Address(address))))


def to_v4(address: str) -> str:
    """The IPv4 address that `of` made an address from."""
    return str(ipaddress.IPv4Address(int(ipaddress.IPv6Address(address)) - _BASE))


def network_of(prefix: str) -> str:
    """The IPv6 prefix for an IPv4 prefix, or `default`."""
    if prefix == "default":
        return prefix
    network = ipaddress.IPv4Network(prefix)
    return f"{of(str(network.network_address))}/{PREFIX_BITS + network.prefixlen}"


def is_v6(address: str) -> bool:
    return ":" in address
