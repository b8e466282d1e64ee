# SPDX-License-Identifier: Apache-2.0
"""Route aggregation: the least number of prefixes equivalent to a table of /30 networks.

Source: Draves, King, Venkatachary and Zill 1999 (ORTC), with addresses that nobody has as "any next hop will do".
"""

from __future__ import annotations

import ipaddress
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

FIRST = int(ipaddress.IPv4Address("10.0.0.0"))
NETWORK_BITS = 30


@dataclass
class _Block:
    """A block of networks: the next hops that are best for its own prefix (empty: any), and its halves."""

    first: int
    bits: int
    hops: frozenset[str]
    halves: tuple[_Block, _Block] | None = None


def aggregate(hops: Mapping[int, str]) -> list[tuple[str, str]]:
    """Prefixes with their next hops, the longest match decides.

    hops: number of a /30 in 10.0.0.0/8 → next hop; numbers that are not there may go anywhere
    """
    if not hops:
        return []
    numbers = sorted(hops)
    bits = max(numbers).bit_length()
    root = _block(0, bits, numbers, hops, 0, len(numbers))
    return list(_choose(root, None))


def _block(first: int, bits: int, numbers: list[int], hops: Mapping[int, str], low: int, high: int) -> _Block:
    via = frozenset(hops[number] for number in numbers[low:high])
    if len(via) <= 1 or bits == 0:
        return _Block(first, bits, via)
    half = first + (1 << (bits - 1))
    middle = bisect_left(numbers, half, low, high)
    halves = (
        _block(first, bits - 1, numbers, hops, low, middle),
        _block(half, bits - 1, numbers, hops, middle, high),
    )
    left, right = halves[0].hops, halves[1].hops
    return _Block(first, bits, (left & right or left | right) if left and right else left | right, halves)


def _choose(block: _Block, inherited: str | None) -> Iterator[tuple[str, str]]:
    if block.hops and inherited not in block.hops:
        inherited = min(block.hops)
        address = ipaddress.IPv4Address(FIRST + 4 * block.first)
        yield f"{address}/{NETWORK_BITS - block.bits}", inherited
    for half in block.halves or ():
        yield from _choose(half, inherited)
