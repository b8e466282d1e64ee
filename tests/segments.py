# SPDX-License-Identifier: Apache-2.0
"""TCP packets of a capture as the wire had them, read without the collectors."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NANOSECONDS = 0xA1B23C4D
ETHERNET_BYTES = 14
SYN, FIN = 2, 1
SACK = 5


@dataclass(frozen=True)
class Segment:
    """seq and ack are 32-bit numbers; t_ns counts from the capture's first packet."""

    t_ns: int
    source_port: int
    destination_port: int
    seq: int
    ack: int
    flags: int
    payload_bytes: int
    has_sack: bool


def segments(pcap: Path) -> Iterator[Segment]:
    data = pcap.read_bytes()
    (magic,) = struct.unpack_from("<I", data)
    unit_ns, offset, first_ns = 1 if magic == NANOSECONDS else 1000, 24, None
    while offset < len(data):
        seconds, part, kept, _ = struct.unpack_from("<4I", data, offset)
        packet = data[offset + 16 : offset + 16 + kept]
        offset += 16 + kept
        t_ns = seconds * 10**9 + part * unit_ns
        first_ns = t_ns if first_ns is None else first_ns
        if packet[12:14] != b"\x08\x00" or packet[23] != 6:
            continue
        total = int.from_bytes(packet[16:18], "big")
        tcp = packet[ETHERNET_BYTES + 20 :]
        source, destination, seq, ack, header, flags = struct.unpack_from("!HHIIBB", tcp)
        length = (header >> 4) * 4
        yield Segment(
            t_ns - first_ns, source, destination, seq, ack, flags, total - 20 - length, _has_sack(tcp[20:length])
        )


def _has_sack(options: bytes) -> bool:
    at = 0
    while at < len(options) and options[at]:
        if options[at] == SACK:
            return True
        at += 1 if options[at] == 1 else max(2, options[at + 1])
    return False
