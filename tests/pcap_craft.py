# SPDX-License-Identifier: Apache-2.0
"""Captures written packet by packet, for the tests of collectors.pcap. Addresses are of RFC 5737 and 3849."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

CLIENT = ("192.0.2.1", 40000)
SERVER = ("198.51.100.1", 5201)
CLIENT6 = ("2001:db8::1", 40000)
SERVER6 = ("2001:db8::2", 5201)

FIN, SYN, RST, PSH, ACK, ECE, CWR = 1, 2, 4, 8, 16, 64, 128


@dataclass
class Conversation:
    """One connection; `seq` and `ack` count from the first byte of each side, times are milliseconds."""

    client_isn: int = 1000
    server_isn: int = 5000
    timestamps: bool = True
    client: tuple[str, int] = CLIENT
    server: tuple[str, int] = SERVER
    frames: list[tuple[int, bytes, int]] = field(default_factory=list)

    def packet(
        self,
        ms: float,
        side: str,
        *,
        seq: int = 0,
        ack: int | None = None,
        length: int = 0,
        flags: int = ACK,
        window: int = 1000,
        sack: Sequence[tuple[int, int]] = (),
        tsval: int | None = None,
        tsecr: int = 0,
        tos: int = 0,
        accurate: bool = False,
        syn_options: bytes = b"\x02\x04\x05\xb4\x01\x03\x03\x07\x04\x02",
    ) -> None:
        """A packet of side "c" or "s" at the capture. TSval is the time in ms unless given; accurate: the flag AE."""
        mine, theirs = (self.client_isn, self.server_isn) if side == "c" else (self.server_isn, self.client_isn)
        src, dst = (self.client, self.server) if side == "c" else (self.server, self.client)
        options = syn_options if flags & SYN else b""
        if self.timestamps:
            options += b"\x01\x01\x08\x0a" + struct.pack("!II", round(ms) + 1 if tsval is None else tsval, tsecr)
        if sack:
            options += b"\x01\x01\x05" + bytes([2 + 8 * len(sack)])
            for left, right in sack:
                options += struct.pack("!II", (theirs + 1 + left) & 0xFFFFFFFF, (theirs + 1 + right) & 0xFFFFFFFF)
        options += b"\x00" * (-len(options) % 4)
        number = (mine + seq) & 0xFFFFFFFF if flags & SYN else (mine + 1 + seq) & 0xFFFFFFFF
        answer = 0 if ack is None else (theirs + 1 + ack) & 0xFFFFFFFF
        tcp = struct.pack(
            "!HHIIBBHHH", src[1], dst[1], number, answer, (20 + len(options)) // 4 << 4 | accurate, flags, window, 0, 0
        )
        segment = tcp + options + bytes(length)
        source, destination = ipaddress.ip_address(src[0]), ipaddress.ip_address(dst[0])
        if source.version == 4:
            total, ident = 20 + len(segment), len(self.frames) + 1
            ip = struct.pack("!BBHHHBBH", 0x45, tos, total, ident, 0x4000, 64, 6, 0)
            ethertype = b"\x08\x00"
        else:
            ip = struct.pack("!IHBB", 6 << 28 | tos << 20, len(segment), 6, 64)
            ethertype = b"\x86\xdd"
        ethernet = b"\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01" + ethertype
        frame = ethernet + ip + source.packed + destination.packed + segment
        self.frames.append((round(ms * 1_000_000), frame, len(frame)))

    def open(self, at_ms: float = 0.0, rtt_ms: float = 20.0) -> None:
        """The handshake as captured at the client."""
        self.packet(at_ms, "c", flags=SYN)
        self.packet(at_ms + rtt_ms, "s", flags=SYN | ACK, ack=0, tsecr=round(at_ms) + 1)
        self.packet(at_ms + rtt_ms + 0.1, "c", ack=0, tsecr=round(at_ms + rtt_ms) + 1)

    def data(self, ms: float, seq: int, length: int = 1000, **more: object) -> None:
        """Data of the client."""
        self.packet(ms, "c", seq=seq, ack=0, length=length, flags=ACK | PSH, **more)  # type: ignore[arg-type]

    def ack(self, ms: float, ack: int, **more: object) -> None:
        """An ACK of the server."""
        self.packet(ms, "s", ack=ack, **more)  # type: ignore[arg-type]

    def close(self, ms: float, seq: int, rtt_ms: float = 20.0) -> None:
        self.packet(ms, "c", seq=seq, ack=0, flags=FIN | ACK)
        self.packet(ms + rtt_ms, "s", ack=seq + 1, flags=FIN | ACK, tsecr=round(ms) + 1)
        self.packet(ms + rtt_ms + 0.1, "c", seq=seq + 1, ack=1, tsecr=round(ms + rtt_ms) + 1)

    def sorted(self) -> list[tuple[int, bytes, int]]:
        return sorted(self.frames, key=lambda frame: frame[0])


START_S = 1_700_000_000


def pcap(
    frames: Sequence[tuple[int, bytes, int]], *, big: bool = False, nano: bool = True, link: int = 1, snap: int = 262144
) -> bytes:
    """A classic pcap."""
    order = ">" if big else "<"
    out = struct.pack(f"{order}IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, snap, link)
    for time_ns, frame, original in frames:
        seconds, part = divmod(time_ns, 1_000_000_000)
        captured = frame[:snap]
        head = (START_S + seconds, part if nano else part // 1000, len(captured), original)
        out += struct.pack(f"{order}IIII", *head) + captured
    return out


def pcapng(
    frames: Sequence[tuple[int, bytes, int]], *, big: bool = False, resolution: int = 9, link: int = 1, snap: int = 0
) -> bytes:
    """A pcapng of one section and one interface, with a block that is to be skipped."""
    order = ">" if big else "<"

    def block(kind: int, body: bytes) -> bytes:
        body += b"\x00" * (-len(body) % 4)
        length = len(body) + 12
        return struct.pack(f"{order}II", kind, length) + body + struct.pack(f"{order}I", length)

    out = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
    options = struct.pack(f"{order}HHB3xHH", 9, 1, resolution, 0, 0)
    out += block(1, struct.pack(f"{order}HHI", link, 0, snap) + options)
    out += block(0x0BAD, b"custom")
    for time_ns, frame, original in frames:
        ticks = (START_S * 1_000_000_000 + time_ns) // 10 ** (9 - resolution)
        captured = frame[: snap or None]
        head = struct.pack(f"{order}IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(captured), original)
        out += block(6, head + captured)
    return out


def write(path: Path, conversation: Conversation) -> Path:
    path.write_bytes(pcap(conversation.sorted()))
    return path
