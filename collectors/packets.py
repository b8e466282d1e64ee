# SPDX-License-Identifier: Apache-2.0
"""Read a capture of TCP over IPv4 over Ethernet into columns, one entry per packet.

Written for the captures that the agent makes: classic pcap, microseconds or nanoseconds, either byte order.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from collectors.errors import CollectError

Array = npt.NDArray[np.int64]

MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
"""First bytes → byte order, nanoseconds per unit of the fraction."""
FILE_HEADER, RECORD_HEADER, ETHERNET, LINK_ETHERNET = 24, 16, 14, 1
MAX_RECORD = 1 << 18
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
OPTION_SACK = 5
MAX_OPTIONS = 40


@dataclass(frozen=True)
class Packets:
    """Columns of equal length. Addresses and ports are numbers; `seq` and `ack` are as on the wire (mod 2^32).

    wire_bytes: length of the frame on the wire, with its Ethernet header
    sacked_bytes: bytes that the packet's SACK blocks cover (0 without any)
    """

    time_ns: Array
    wire_bytes: Array
    source: Array
    destination: Array
    source_port: Array
    destination_port: Array
    seq: Array
    ack: Array
    flags: Array
    window: Array
    payload_bytes: Array
    sacked_bytes: Array

    def __len__(self) -> int:
        return len(self.time_ns)

    def select(self, mask: npt.NDArray[np.bool_]) -> Packets:
        return Packets(*(getattr(self, field.name)[mask] for field in fields(self)))


def read(path: Path) -> Packets:
    """All TCP packets of a capture.

    Raises CollectError with the byte offset where the file is not such a capture or is cut.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise CollectError(f"{path}: {error.strerror}") from error
    if len(raw) < FILE_HEADER or raw[:4] not in MAGICS:
        raise CollectError(f"{path}: byte 0: not a pcap file (starts with {raw[:4].hex() or 'nothing'})")
    order, unit_ns = MAGICS[raw[:4]]
    link = struct.unpack_from(order + "I", raw, 20)[0] & 0xFFFF
    if link != LINK_ETHERNET:
        raise CollectError(f"{path}: byte 20: link type {link}; only Ethernet ({LINK_ETHERNET}) is read here")
    starts = _record_starts(path, raw, order)
    # a pad behind the end lets fields of short records be read without leaving the array; they are dropped below
    data = np.frombuffer(raw + bytes(256), dtype=np.uint8)
    return _columns(data, starts, order, unit_ns)


def _record_starts(path: Path, raw: bytes, order: str) -> Array:
    starts, offset, end = [], FILE_HEADER, len(raw)
    captured = struct.Struct(order + "I").unpack_from
    while offset + RECORD_HEADER <= end:
        length = captured(raw, offset + 8)[0]
        if length > MAX_RECORD:
            raise CollectError(f"{path}: byte {offset}: a record of {length} bytes; the file is damaged")
        starts.append(offset)
        offset += RECORD_HEADER + length
    if offset != end:
        raise CollectError(
            f"{path}: byte {starts[-1] if starts else FILE_HEADER}: the last record is cut; {end} bytes in all"
        )
    return np.array(starts, dtype=np.int64)


def _number(data: npt.NDArray[np.uint8], at: Array, size: int, order: str = ">") -> Array:
    positions = range(size) if order == ">" else range(size - 1, -1, -1)
    value = np.zeros(len(at), dtype=np.int64)
    for position in positions:
        value = value << 8 | data[at + position]
    return value


def _columns(data: npt.NDArray[np.uint8], starts: Array, order: str, unit_ns: int) -> Packets:
    captured = _number(data, starts + 8, 4, order)
    ip = starts + RECORD_HEADER + ETHERNET
    header = (data[ip] & 15).astype(np.int64) * 4
    tcp = ip + header
    tcp_header = (data[tcp + 12] >> 4).astype(np.int64) * 4
    whole = captured >= ETHERNET + header + np.maximum(tcp_header, 20)
    keep = (
        (captured >= ETHERNET + 40)
        & (_number(data, ip - 2, 2) == 0x0800)
        & (data[ip] >> 4 == 4)
        & (data[ip + 9] == 6)
        & (_number(data, ip + 6, 2) & 0x1FFF == 0)
        & (tcp_header >= 20)
        & whole
    )
    starts, ip, tcp, header, tcp_header = (column[keep] for column in (starts, ip, tcp, header, tcp_header))
    seconds, fraction = _number(data, starts, 4, order), _number(data, starts + 4, 4, order)
    return Packets(
        time_ns=seconds * 10**9 + fraction * unit_ns,
        wire_bytes=_number(data, starts + 12, 4, order),
        source=_number(data, ip + 12, 4),
        destination=_number(data, ip + 16, 4),
        source_port=_number(data, tcp, 2),
        destination_port=_number(data, tcp + 2, 2),
        seq=_number(data, tcp + 4, 4),
        ack=_number(data, tcp + 8, 4),
        flags=data[tcp + 13].astype(np.int64),
        window=_number(data, tcp + 14, 2),
        payload_bytes=_number(data, ip + 2, 2) - header - tcp_header,
        sacked_bytes=_sacked(data, tcp + 20, tcp + tcp_header),
    )


def _sacked(data: npt.NDArray[np.uint8], start: Array, end: Array) -> Array:
    """Bytes covered by SACK blocks, walking all packets' options in step."""
    sacked, at = np.zeros(len(start), dtype=np.int64), start.copy()
    active = np.flatnonzero(at < end)
    for _ in range(MAX_OPTIONS):
        if not len(active):
            break
        here = at[active]
        kind, length = data[here], data[here + 1].astype(np.int64)
        is_sack = (kind == OPTION_SACK) & (length >= 10) & (here + length <= end[active])
        for index in active[is_sack]:
            for block in range(int(at[index]) + 2, int(at[index]) + int(data[at[index] + 1]) - 7, 8):
                left, right = (int.from_bytes(data[block + i : block + i + 4].tobytes(), "big") for i in (0, 4))
                sacked[index] += (right - left) & 0xFFFFFFFF
        step = np.where(kind <= 1, 1, np.maximum(length, 2))
        at[active] = np.where(kind == 0, end[active], here + step)
        active = active[at[active] < end[active]]
    return sacked
