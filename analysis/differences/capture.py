# SPDX-License-Identifier: Apache-2.0
"""Packets of a capture, one by one, in the network's words. Captures come from anywhere: nothing of a packet is taken on trust."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from analysis.errors import ResultsError
from base.small_files import require_plain
from collectors.compressed import CAPTURES, opened

MAGICS = {
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
}
"""First bytes of a capture → byte order, nanoseconds per unit of its times."""
HEADER_BYTES, RECORD_BYTES, LARGEST_BYTES = 24, 16, 1 << 20
ETHERNET_BYTES, IPV4 = 14, b"\x08\x00"
PROTOCOLS = {1: "ICMP", 6: "TCP", 17: "UDP"}
FLAGS = "FSRPAUEC"
LEAST_TCP_BYTES, LEAST_UDP_BYTES, LEAST_IP_BYTES = 20, 8, 20


@dataclass(frozen=True)
class Packet:
    """A packet as it was captured."""

    time_ns: int
    length: int
    data: bytes

    @property
    def fields(self) -> Mapping[str, int | str]:
        """What its headers say, by the names that people use, outermost first; as far as the capture holds it."""
        ip = self.data[ETHERNET_BYTES:]
        if self.data[12:14] != IPV4 or len(ip) < LEAST_IP_BYTES:
            return {"frame length": self.length}
        source, destination = (".".join(map(str, ip[at : at + 4])) for at in (12, 16))
        protocol = PROTOCOLS.get(ip[9], f"protocol {ip[9]}")
        names: dict[str, int | str] = {
            "protocol": protocol, "source": source, "destination": destination, "length": _word(ip, 2),
            "IP identification": _word(ip, 4), "ECN": ip[1] & 3, "TTL": ip[8],
        }  # fmt: skip
        inner = ip[(ip[0] & 15) * 4 :]
        if protocol == "TCP" and len(inner) >= LEAST_TCP_BYTES:
            header = (inner[12] >> 4) * 4
            names |= {
                "source port": _word(inner, 0), "destination port": _word(inner, 2), "flags": _flags(inner[13]),
                "payload bytes": _word(ip, 2) - (ip[0] & 15) * 4 - header, "sequence number": _long(inner, 4),
                "acknowledgement": _long(inner, 8), "window": _word(inner, 14), "options": inner[20:header].hex(),
            }  # fmt: skip
        elif protocol == "UDP" and len(inner) >= LEAST_UDP_BYTES:
            names |= {"source port": _word(inner, 0), "destination port": _word(inner, 2)}
        return names

    @property
    def payload(self) -> bytes:
        """What a TCP segment carries, as far as the capture holds it."""
        count = self.fields.get("payload bytes")
        if not isinstance(count, int) or count <= 0:
            return b""
        end = ETHERNET_BYTES + int(self.fields["length"])
        return self.data[end - count : end]

    def words(self, start_ns: int) -> str:
        """One line; the time counts from the run's start."""
        names = self.fields
        when = f"{(self.time_ns - start_ns) / 1e9:.9f} s"
        if "protocol" not in names:
            return f"{when}  a frame of {self.length} bytes"
        ends = [
            str(names[side]) + (f":{names[f'{side} port']}" if f"{side} port" in names else "")
            for side in ("source", "destination")
        ]
        line = f"{when}  {ends[0]} → {ends[1]}  {names['protocol']}"
        if "flags" in names:
            line += f" {names['flags']} seq {names['sequence number']} ack {names['acknowledgement']}"
            return f"{line}  {names['payload bytes']} bytes of payload"
        return f"{line}  {names['length']} bytes"


def captures(raw: Path) -> dict[str, Path]:
    """A raw folder's captures by interface, compressed ones too."""
    return {file.name.partition(".pcap")[0]: file for pattern in CAPTURES for file in raw.glob(pattern)}


@contextmanager
def _content(file: Path) -> Iterator[BinaryIO]:
    try:
        with opened(file) as content:
            yield content
    except OSError as error:
        raise ResultsError(f"{file}: cannot be read: {error}") from error


def packets(file: Path) -> Iterator[Packet]:
    """Raises ResultsError where the file is no capture or is cut off."""
    try:
        require_plain(file)
    except OSError as error:
        raise ResultsError(str(error)) from error
    with _content(file) as content:
        head = content.read(HEADER_BYTES)
        if len(head) < HEADER_BYTES or head[:4] not in MAGICS:
            raise ResultsError(f"{file}: not a capture in pcap format")
        order, unit_ns = MAGICS[head[:4]]
        while record := content.read(RECORD_BYTES):
            if len(record) < RECORD_BYTES:
                raise ResultsError(f"{file}: cut off in the middle of a packet")
            seconds, part, kept, length = struct.unpack(f"{order}4I", record)
            data = content.read(min(kept, LARGEST_BYTES))
            if len(data) != kept:
                raise ResultsError(f"{file}: cut off in the middle of a packet")
            yield Packet(seconds * 10**9 + part * unit_ns, length, data)


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big")


def _long(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")


def _flags(value: int) -> str:
    return "".join(letter for bit, letter in enumerate(FLAGS) if value >> bit & 1) or "-"
