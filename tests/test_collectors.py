# SPDX-License-Identifier: Apache-2.0
"""The first collector: captures, sequence numbers, first arrivals, RTT samples, damaged files."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import packets as pcap
from collectors import tcp
from collectors.errors import CollectError
from collectors.packets import ACK, SYN, Packets
from collectors.samples import samples
from testbed.agent.samples import MAGIC, RECORD

CLIENT, SERVER, CLIENT_PORT, SERVER_PORT, ISN = 0x0A000001, 0x0A00000A, 40000, 5201, 2**32 - 3000


def frame(
    seq: int, ack: int, flags: int, payload: int, back: bool = False, sack: tuple[int, int] | None = None
) -> bytes:
    options = b"" if sack is None else b"\x01\x01\x05\x0a" + struct.pack("!II", *sack)
    ends = ((CLIENT, CLIENT_PORT), (SERVER, SERVER_PORT))
    (source, sport), (target, dport) = ends[::-1] if back else ends
    header = struct.pack(
        "!HHIIBBHHH", sport, dport, seq % 2**32, ack % 2**32, (20 + len(options)) // 4 << 4, flags, 1000, 0, 0
    )
    length = 20 + len(header) + len(options) + payload
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, length, 0, 0, 64, 6, 0, source, target)
    return bytes(12) + b"\x08\x00" + ip + header + options + bytes(payload)


def capture(frames: list[tuple[int, bytes]], order: str = "<", snap: int = 96) -> bytes:
    magic = {"<": b"\x4d\x3c\xb2\xa1", ">": b"\xa1\xb2\x3c\x4d"}[order]
    data = magic + struct.pack(order + "HHiIII", 2, 4, 0, 0, snap, 1)
    for time_ns, packet in frames:
        head = struct.pack(order + "IIII", time_ns // 10**9, time_ns % 10**9, min(len(packet), snap), len(packet))
        data += head + packet[:snap]
    return data


def read(tmp_path: Path, frames: list[tuple[int, bytes]], order: str = "<") -> Packets:
    file = tmp_path / "a.pcap"
    file.write_bytes(capture(frames, order))
    return pcap.read(file)


HANDSHAKE = [(0, frame(ISN, 0, SYN, 0)), (100, frame(7000, ISN + 1, SYN | ACK, 0, back=True))]


@pytest.mark.parametrize("order", ["<", ">"])
def test_packets_are_read_in_either_byte_order(tmp_path: Path, order: str) -> None:
    found = read(tmp_path, [*HANDSHAKE, (5, frame(ISN + 1, 7001, ACK, 1000))], order)
    assert found.time_ns.tolist() == [0, 100, 5]
    assert found.payload_bytes.tolist() == [0, 0, 1000]
    assert found.wire_bytes.tolist() == [54, 54, 1054]


def test_sack_blocks_are_counted(tmp_path: Path) -> None:
    found = read(tmp_path, [(0, frame(1, 1, ACK, 0, back=True, sack=(500, 1500)))])
    assert found.sacked_bytes.tolist() == [1000]


def test_a_retransmission_is_told_from_new_data_across_the_wrap(tmp_path: Path) -> None:
    frames = list(HANDSHAKE)
    for i, start in enumerate([0, 1000, 2000, 3000, 1000, 4000]):  # ISN + 3000 is 2^32
        frames.append((1000 + i, frame(ISN + 1 + start, 7001, ACK, 1000)))
    found = read(tmp_path, frames)
    (connection,) = tcp.connections(found, SERVER_PORT)
    data = tcp.sent(found, connection)
    assert data.start.tolist() == [0, 1000, 2000, 3000, 1000, 4000]
    assert data.again_bytes.tolist() == [0, 0, 0, 0, 1000, 0]


def test_rtt_samples_follow_karn(tmp_path: Path) -> None:
    frames = list(HANDSHAKE)
    for time_ns, start in ((1000, 0), (1001, 1000), (1002, 2000), (1500, 1000)):
        frames.append((time_ns, frame(ISN + 1 + start, 7001, ACK, 1000)))
    frames.append((1100, frame(7001, ISN + 1001, ACK, 0, back=True)))
    frames.append((1102, frame(7001, ISN + 1001, ACK, 0, back=True)))
    frames.append((1600, frame(7001, ISN + 3001, ACK, 0, back=True)))
    found = read(tmp_path, sorted(frames, key=lambda item: item[0]))
    (connection,) = tcp.connections(found, SERVER_PORT)
    acks = tcp.acks(found, connection, tcp.sent(found, connection))
    assert acks.rtt_ns.tolist() == [100, -1, -1]
    assert acks.duplicate.tolist() == [False, True, False]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1, max_size=60))
def test_first_arrivals_equal_a_set_of_bytes(segments: list[tuple[int, int]]) -> None:
    expected, seen = [], set[int]()
    for start, length in segments:
        new = set(range(start, start + length)) - seen
        seen |= new
        expected.append(len(new))
    count = len(segments)

    def column(value: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.full(count, value, dtype=np.int64)

    seq = np.array([(ISN + 1 + start) % 2**32 for start, _ in segments], dtype=np.int64)
    payload = np.array([length for _, length in segments], dtype=np.int64)
    made = Packets(
        np.arange(count),
        payload + 54,
        column(CLIENT),
        column(SERVER),
        column(CLIENT_PORT),
        column(SERVER_PORT),
        seq,
        column(0),
        column(ACK),
        column(0),
        payload,
        column(0),
    )
    connection = tcp.Connection(CLIENT, CLIENT_PORT, SERVER, SERVER_PORT, 0, ISN)
    assert tcp.first_arrivals(made, connection)[1].tolist() == expected


@given(st.binary(max_size=400))
def test_hostile_captures_give_packets_or_an_error_with_the_byte(
    tmp_path_factory: pytest.TempPathFactory, tail: bytes
) -> None:
    file = tmp_path_factory.mktemp("hostile") / "a.pcap"
    file.write_bytes(capture(HANDSHAKE) + tail)
    try:
        pcap.read(file)
    except CollectError as error:
        assert "byte" in str(error)  # noqa: PT017 — many files have no error


def test_a_cut_capture_names_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "a.pcap"
    file.write_bytes(capture(HANDSHAKE)[:-3])
    with pytest.raises(CollectError, match="byte 94: the last record is cut"):
        pcap.read(file)


def test_cut_samples_name_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "queues.bin"
    file.write_bytes(MAGIC + RECORD.pack(1, 0, 4) + b"abcd" + RECORD.pack(2, 0, 4) + b"ab")
    with pytest.raises(CollectError, match="byte 26: the last record is cut"):
        list(samples(file))
