# SPDX-License-Identifier: Apache-2.0
"""`./warpbed diff` finds the first packet and record in which two runs differ, and says how in the network's words."""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.differences import packets
from analysis.differences.capture import Packet
from analysis.differences.capture import packets as read
from analysis.differences.names import Names
from analysis.errors import ResultsError
from base.errors import UsageError
from testbed.commands import diff as command
from tests import lab

START_NS = 1_767_229_200 * 10**9
SENDER, RECEIVER = "192.0.2.1", "192.0.2.2"


def segment(seq: int, *, ident: int = 7, flags: int = 0x10, payload: bytes = b"") -> bytes:
    """An Ethernet frame with a TCP segment (RFC 9293 section 3.1; checksums are left out)."""
    tcp = struct.pack("!HHIIBBHHH", 10001, 5201, seq, 77, 5 << 4, flags, 502, 0, 0) + payload
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), ident, 0x4000, 64, 6, 0)
    return bytes(12) + b"\x08\x00" + ip + socket.inet_aton(SENDER) + socket.inet_aton(RECEIVER) + tcp


def capture(file: Path, frames: list[tuple[int, bytes]], order: str = "<") -> Path:
    """A capture in nanoseconds of (ns since the run's start, frame)."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = struct.pack(f"{order}IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
    for at_ns, frame in frames:
        seconds, part = divmod(START_NS + at_ns, 10**9)
        content += struct.pack(f"{order}4I", seconds, part, len(frame), len(frame)) + frame
    file.write_bytes(content)
    return file


ANSWER = b"".join(
    (
        segment(77)[:26],
        socket.inet_aton(RECEIVER),
        socket.inet_aton(SENDER),
        struct.pack("!HH", 5201, 10001),
        segment(77)[38:],
    )
)
FLOWS = {((SENDER, 10001), (RECEIVER, 5201)): ("f1", "iperf3")}
PLAIN = [(1000 * number, segment(1000 + number)) for number in range(10)]


def changed(number: int, at_ns: int, frame: bytes) -> list[tuple[int, bytes]]:
    return [*PLAIN[:number], (at_ns, frame), *PLAIN[number + 1 :]]


def run_folder(folder: Path, frames: list[tuple[int, bytes]], cwnd: int = 10, **inputs: Any) -> Path:
    capture(folder / "raw/s1-eth0.pcap", frames)
    (folder / "records").mkdir()
    rows = [{"t_s": 0.1 * number, "flow": "f1", "cwnd_packets": cwnd if number == 3 else 10} for number in range(5)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "records/sockets.parquet")
    flow = {
        "flow": "f1",
        "src": "s1",
        "src_addr": SENDER,
        "src_port": 10001,
        "dst": "d1",
        "dst_addr": RECEIVER,
        "dst_port": 5201,
    }
    pq.write_table(pa.Table.from_pylist([flow]), folder / "records/flows.parquet")
    document = {"format": 1, "experiment": "x", "run": "a", "status": "complete", "inputs": inputs}
    (folder / "run.json").write_text(json.dumps({**document, "facts": {"start_realtime_ns": START_NS}}))
    return folder


def diff(one: Path, other: Path) -> int:
    return command.main(argparse.Namespace(first=one, second=other))


def words(
    tmp_path: Path, frames: list[tuple[int, bytes]], sender: str = "s1", first: list[tuple[int, bytes]] = PLAIN
) -> str:
    parted = packets.parting(capture(tmp_path / "a/s1-eth0.pcap", first), capture(tmp_path / "b/s1-eth0.pcap", frames))
    assert parted is not None
    return parted.words(Names({SENDER: sender}, FLOWS if sender == "s1" else {}))


def test_equal_captures_do_not_part(tmp_path: Path) -> None:
    assert packets.parting(capture(tmp_path / "a.pcap", PLAIN), capture(tmp_path / "b.pcap", PLAIN, ">")) is None


def test_a_packet_that_leaves_later_is_said_to(tmp_path: Path) -> None:
    said = words(tmp_path, changed(4, 4000 + 10_720, PLAIN[4][1]))
    assert said == "s1-eth0: packet 5, ACK of f1: in the second run s1 sent it 10.72 µs later"
    assert words(tmp_path, changed(4, 3999, PLAIN[4][1])).endswith("s1 sent it 1 ns earlier")
    assert words(tmp_path, changed(4, 4500, PLAIN[4][1]), "s10").endswith("it came from s10 500 ns later")


def test_each_header_field_that_differs_is_named(tmp_path: Path) -> None:
    said = words(tmp_path, changed(2, 2000, segment(4_000_000_000, ident=9, flags=0x11)))
    for part in ("IP identification 7, 9", "flags A, FA", "sequence number 1002, 4000000000"):
        assert part in said
    assert "later" not in said
    assert words(tmp_path, changed(2, 2000, PLAIN[2][1] + b"x")).endswith("other content")


def answered(quiet_ns: int, late_ns: int, content: bytes = b"data") -> list[tuple[int, bytes]]:
    """The receiver's packet, and after a time the sender's."""
    return [*PLAIN, (20_000, ANSWER), (20_000 + quiet_ns + late_ns, segment(2000, payload=content))]


def test_it_says_whether_something_had_made_a_node_send(tmp_path: Path) -> None:
    said = words(tmp_path, answered(20_000_000, 10_720), first=answered(20_000_000, 0))
    assert said == (
        "s1-eth0: packet 12, data of f1: in the second run s1 sent it 10.72 µs later; "
        "nothing had arrived at s1 for 20 ms, so iperf3 or a timer of the kernel woke 10.72 µs later"
    )
    said = words(tmp_path, answered(30_000, 500), first=answered(30_000, 0))
    assert said.endswith("s1 sent it 500 ns later; a packet had arrived at s1 30 µs before")


def test_other_payload_is_told_from_other_headers(tmp_path: Path) -> None:
    said = words(tmp_path, answered(0, 0, b"daTa"), first=answered(0, 0))
    assert said == "s1-eth0: packet 12, data of f1: in the second run other payload from its byte 3 on"


def test_what_programs_reported_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = run_folder(tmp_path / "one", PLAIN), run_folder(tmp_path / "other", PLAIN)
    for folder, at_s in ((one, 2.0), (other, 2.5)):
        row = {"flow": "web", "app": "web", "pages": [{"start_s": 1.0}, {"start_s": at_s}]}
        (folder / "records/applications.json").write_text(json.dumps([{"flow": "ping"}, row]))
    assert diff(one, other) == 1
    said = capsys.readouterr().out.strip()
    assert said == "applications: record 2 (flow web): pages entry 2: {'start_s': 2.0}, {'start_s': 2.5}"
    (other / "records/applications.json").write_text("{")
    with pytest.raises(UsageError, match=r"applications\.json"):
        diff(one, other)


def test_a_packet_of_one_run_only_is_said_to_be(tmp_path: Path) -> None:
    assert words(tmp_path, PLAIN[:7]) == "s1-eth0: packet 8, ACK of f1, exists only in the first run"
    assert (
        words(tmp_path, [*PLAIN, (99_000, segment(1))])
        == "s1-eth0: packet 11, ACK of f1, exists only in the second run"
    )


def test_the_earliest_of_all_interfaces_comes_first(tmp_path: Path) -> None:
    for run, late in (("a", 0), ("b", 5)):
        capture(tmp_path / run / "d1-eth0.pcap", changed(8, 8000 + late, PLAIN[8][1]))
        capture(tmp_path / run / "s1-eth0.pcap", changed(6, 6000 + late, PLAIN[6][1]))
    parted = packets.first(tmp_path / "a", tmp_path / "b")
    assert parted is not None and (parted.interface, parted.number) == ("s1-eth0", 7)
    assert [packet.time_ns - START_NS for packet in parted.before] == [3000, 4000, 5000]


def test_the_command_shows_both_sides_and_the_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = run_folder(tmp_path / "one", PLAIN, userland={"iperf3": "3.12-1"})
    same = run_folder(tmp_path / "same", PLAIN, userland={"iperf3": "3.12-1"})
    other = run_folder(tmp_path / "other", changed(4, 14_720, PLAIN[4][1]), 11, userland={"iperf3": "3.18-2"})
    assert diff(one, same) == 0
    assert capsys.readouterr().out == "the same packets at the same times, and the same records\n"
    said = lab.warpbed("diff", one, other, code=1).splitlines()
    assert said[0] == "input userland iperf3: 3.12-1, 3.18-2"
    assert said[1] == "s1-eth0: packet 5, ACK of f1: in the second run s1 sent it 10.72 µs later"
    assert (
        f"  both    0.000003000 s  {SENDER}:10001 → {RECEIVER}:5201  TCP A seq 1003 ack 77  0 bytes of payload" in said
    )
    assert any(line.startswith("  first   0.000004000 s") for line in said)
    assert any(line.startswith("  second  0.000014720 s") for line in said)
    assert said[-1].startswith("sockets: record 4 (t_s 0.3") and said[-1].endswith("cwnd_packets 10, 11")


def test_a_missing_capture_is_a_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = run_folder(tmp_path / "one", PLAIN), run_folder(tmp_path / "other", PLAIN)
    capture(other / "raw/d1-eth0.pcap", PLAIN)
    assert diff(one, other) == 1
    assert "only one of the runs has raw/d1-eth0.pcap" in capsys.readouterr().out


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    one, other = run_folder(tmp_path / "one", PLAIN), run_folder(tmp_path / "other", PLAIN)
    with pytest.raises(UsageError, match=r"no run\.json"):
        diff(one, tmp_path)
    (other / "raw/s1-eth0.pcap").write_bytes((one / "raw/s1-eth0.pcap").read_bytes()[:-3])
    with pytest.raises(UsageError, match="cut off in the middle of a packet"):
        diff(one, other)
    (other / "raw/s1-eth0.pcap").write_bytes(b"\x0a\x0d\x0d\x0a" + bytes(40))
    assert "not a capture in pcap format" in lab.inside("diff", one, other, code=2)


@given(st.binary(max_size=120), st.integers(0, 2**16))
def test_any_bytes_have_words(data: bytes, length: int) -> None:
    assert "1.000000000 s" in Packet(START_NS + 10**9, length, data).words(START_NS)
    ip = bytes(12) + b"\x08\x00" + data
    assert "1.000000000 s" in Packet(START_NS + 10**9, length, ip).words(START_NS)


@given(data=st.binary(max_size=200))
def test_a_file_of_any_bytes_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any.pcap"
    for start in (b"", struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)):
        file.write_bytes(start + data)
        with contextlib.suppress(ResultsError):  # and nothing else
            assert sum(len(packet.data) for packet in read(file)) <= len(data)
