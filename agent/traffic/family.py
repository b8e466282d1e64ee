# SPDX-License-Identifier: Apache-2.0
"""Sockets of the version of IP that a run's addresses have."""

from __future__ import annotations

import socket
from collections.abc import Mapping

ANY = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}  # noqa: S104 — its namespace's or its host's addresses, whichever is routed to


def family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def family_of(addresses: Mapping[str, str]) -> socket.AddressFamily:
    """That of a network's nodes, which is the same for all."""
    return family(next(iter(addresses.values())))
