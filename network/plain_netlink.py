# SPDX-License-Identifier: Apache-2.0
"""A token bucket and its FIFO by rtnetlink, from the words that tc would be given: a tc process for each node is most of what it takes to
build a large network (docs/virtual-time.md).

Only where every queue of a network's nodes is one of these: what tc draws when it starts comes before what other kinds draw when they are
made. In making these nothing is drawn.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable

from network.qdisc_netlink import LEVELS as NUMBERS
from network.qdisc_netlink import OwnQdisc
from network.tc import LEVELS as WORDS

TBF_PARMS, TBF_BURST = 1, 6
LINKLAYER_ETHERNET = 1
RATE_SPEC, LIMITS = struct.Struct("=BBHhHI"), struct.Struct("=III")
"""struct tc_ratespec; the rest of struct tc_tbf_qopt: limit, and bucket and MTU in ticks, which the burst in bytes replaces."""
PLACES = dict(zip(WORDS, NUMBERS, strict=True))
LINE = re.compile(rf"qdisc add dev (\S+) ({'|'.join(PLACES)}) (tbf|pfifo|bfifo) (.*)")
TBF = re.compile(r"rate (\d+)bit burst (\d+) limit (\d+)")
FIFO = re.compile(r"limit (\d+)")


def plain_qdiscs(lines: Iterable[str]) -> list[OwnQdisc] | None:
    """What the lines make; None where one of them makes something else."""
    found = [_plain(line) for line in lines]
    return None if None in found else [qdisc for qdisc in found if qdisc is not None]


def _plain(line: str) -> OwnQdisc | None:
    if (words := LINE.fullmatch(line)) is None:
        return None
    interface, place, kind, options = words.groups()
    if kind == "tbf":
        if (asked := TBF.fullmatch(options)) is None:
            return None
        rate_bps, burst, limit = map(int, asked.groups())
        rate = RATE_SPEC.pack(0, LINKLAYER_ETHERNET, 0, -1, 0, rate_bps // 8)
        parms = rate + bytes(RATE_SPEC.size) + LIMITS.pack(limit, 0, 0)
        attributes = ((TBF_PARMS, parms), (TBF_BURST, struct.pack("=I", burst)))
        return OwnQdisc(interface, kind, attributes, (), *PLACES[place])
    if (asked := FIFO.fullmatch(options)) is None:
        return None
    return OwnQdisc(interface, kind, (), (), *PLACES[place], plain=struct.pack("=I", int(asked[1])))
