# SPDX-License-Identifier: Apache-2.0
"""From raw files to records: what both ends' captures say of a flow, samples, tracepoint pages; damaged files."""

from __future__ import annotations

import struct
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topologies
from base.netlink import (
    NLMSG_DONE,
    RTM_NEWQDISC,
    STATS_BASIC,
    STATS_QUEUE,
    TC_H_ROOT,
    TCA_KIND,
    TCA_STATS2,
    TCMSG,
    attribute,
    message,
)
from collectors import pcap as pcap_reader
from collectors import queues, sockets, tcp_probe, wire
from collectors.errors import CollectError, Damage
from collectors.samples import samples
from plan.model import FIRST_PORT, Capture, FlowPlan, Plan
from plan.samples import MAGIC, RECORD
from tests.pcap_craft import CLIENT, SERVER, Conversation, pcap

START_NS = 1_700_000_000_000_000_000
ONE_WAY_NS = 10_000_000


def plan(**more: Any) -> Plan:
    """One flow over a line of three nodes, captured at both ends."""
    network = topologies.build("line", {})
    flow = FlowPlan("f1", "iperf3", "cubic", "s1", "d1", FIRST_PORT, 0.0, **{"duration_s": 1.0, **more})
    return Plan(network, (flow,), 1.0, 1.0, 1, {}, (Capture("s1", "r1"), Capture("d1", "r1")))


def connections(lost: int | None = None) -> Conversation:
    """iperf3's control connection and then the data's, six segments, at the sender; one of them is lost on the way."""
    control = Conversation(client=(CLIENT[0], CLIENT[1] - 1))
    control.open()
    control.data(25, 0, 37)
    c = Conversation(client_isn=2**32 - 3000)
    c.open(30)
    for i in range(6):
        c.data(60 + i, 1000 * i)
    for i in range(6):
        if lost is None or i < lost:
            c.ack(80 + i, 1000 * (i + 1))
        elif i > lost:
            c.ack(80 + i, 1000 * lost, sack=[(1000 * (lost + 1), 1000 * (i + 1))])
    if lost is not None:
        c.data(90, 1000 * lost)
        c.ack(110, 6000)
    c.frames += control.frames
    return c


def at_receiver(c: Conversation, lost: int | None) -> list[tuple[int, bytes, int]]:
    """What the receiver's capture shows: the client's packets later, the server's earlier, without the lost one."""
    frames, data = [], 0
    for time_ns, frame, length in c.sorted():
        from_client = frame[26:30] == bytes([192, 0, 2, 1])
        if from_client and length > 1000:
            data += 1
            if lost is not None and data == lost + 1:
                continue
        frames.append((time_ns + (ONE_WAY_NS if from_client else -ONE_WAY_NS), frame, length))
    return sorted(frames, key=lambda item: item[0])


def raw(folder: Path, lost: int | None = None, cut: int = 0) -> Path:
    c = connections(lost)
    (folder / "s1-eth0.pcap").write_bytes(pcap(c.sorted()))
    whole = pcap(at_receiver(c, lost))
    (folder / "d1-eth0.pcap").write_bytes(whole[: len(whole) - cut])
    return folder


def read(folder: Path, damage: list[Damage] | None = None, **more: Any) -> tuple[dict[str, Any], wire.Wire]:
    wire_records = wire.read(folder, plan(**more), START_NS, [] if damage is None else damage)
    assert len(wire_records.flows["flow"]) == 1
    return {name: values[0] for name, values in wire_records.flows.items()}, wire_records


def test_both_ends_make_one_row_of_a_flow(tmp_path: Path) -> None:
    row, wired = read(raw(tmp_path, lost=1))
    assert (row["flow"], row["cca"], row["src"], row["dst"]) == ("f1", "cubic", "s1", "d1")
    assert (row["src_addr"], row["src_port"], row["dst_port"]) == (*CLIENT, SERVER[1])
    assert row["data_packets"] == 7 and row["fast_retransmissions"] == 1
    assert row["delivered_bytes"] == 6000, "bytes that arrived for the first time, by the receiver's capture"
    assert row["start_s"] == pytest.approx(0.030) and row["completion_s"] is None
    assert wired.initial_seq == {"f1": 2**32 - 3000}
    assert wired.flow_of == {(0xC0000201, CLIENT[1], SERVER[1]): "f1"}


def test_intervals_are_dense_and_know_both_ends(tmp_path: Path) -> None:
    _, wired = read(raw(tmp_path, lost=1))
    rows = wired.intervals
    assert rows["t_s"].tolist() == pytest.approx([i / 10 for i in range(10)])
    assert rows["payload_bytes"].tolist() == [7000] + [0] * 9
    # the retransmission, sent at 90 ms, arrives at 100 ms: in the next interval
    assert rows["delivered_bytes"].tolist() == [5000, 1000] + [0] * 8
    assert rows["in_flight_bytes"].tolist() == [1000] + [0] * 9, "all but the retransmission is acknowledged or SACKed"


def test_acks_are_those_of_the_data(tmp_path: Path) -> None:
    _, wired = read(raw(tmp_path))
    assert wired.acks["flow"].unique().to_pylist() == ["f1"]
    assert wired.acks["ack"].to_pylist()[-6:] == [1000 * (i + 1) for i in range(6)]
    assert wired.acks["rtt_us"].to_pylist()[-6:] == pytest.approx([20_000.0] * 6)


def test_a_flow_with_a_size_is_complete_once_that_much_is_acknowledged(tmp_path: Path) -> None:
    row, _ = read(raw(tmp_path), duration_s=None, size_bytes=6000 - wire.IPERF3_COOKIE_BYTES)
    assert row["completion_s"] == pytest.approx(0.085 - 0.030)
    row, _ = read(tmp_path, duration_s=None, size_bytes=6000)
    assert row["completion_s"] is None


def test_a_capture_that_is_cut_is_used_up_to_there_and_told(tmp_path: Path) -> None:
    damage: list[Damage] = []
    row, _ = read(raw(tmp_path, cut=3000), damage)
    assert 0 < row["delivered_bytes"] < 6000
    (place,) = damage
    assert place.file == "d1-eth0.pcap"
    assert 0 < place.offset < (tmp_path / "d1-eth0.pcap").stat().st_size
    assert str(place).startswith(f"d1-eth0.pcap: byte {place.offset}: ")


def test_a_capture_that_the_disk_does_not_give_whole_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def analyze(*given: Any, **more: Any) -> pcap_reader.Summary:
        broken = pcap_reader.Failure(None, "byte 512: io: Input/output error", 512, "io", None, None)
        return replace(analyzed(*given, **more), errors=(broken,))

    analyzed = pcap_reader.analyze
    monkeypatch.setattr(pcap_reader, "analyze", analyze)
    with pytest.raises(CollectError, match=r"s1-eth0.pcap: byte 512: io: Input/output error"):
        read(raw(tmp_path))


def test_a_capture_that_is_missing_or_none_stops(tmp_path: Path) -> None:
    (raw(tmp_path) / "d1-eth0.pcap").write_bytes(b"nonsense" * 10)
    with pytest.raises(CollectError, match=r"d1-eth0\.pcap.*not a capture"):
        read(tmp_path)
    (tmp_path / "d1-eth0.pcap").unlink()
    with pytest.raises(CollectError, match=r"d1-eth0\.pcap: the capture is missing"):
        read(tmp_path)


def test_what_is_needed_meanwhile_lies_where_it_is_told_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of the run's, which goes where this process is killed; in the machine's own folder it would stay."""
    place, there = tmp_path / "place", tmp_path / "raw"
    place.mkdir()
    there.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    wired = wire.read(raw(there), plan(), START_NS, [], {"d1": "elsewhere"}, scratch=place)
    assert wired.clocks.known.keys() >= {"elsewhere"}
    assert list(place.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        wire.read(there, plan(), START_NS, [])


def test_too_few_connections_in_a_whole_capture_stop(tmp_path: Path) -> None:
    with pytest.raises(CollectError, match="flow f1: 1 data connections in the capture, 2 expected"):
        wire.read(raw(tmp_path), plan(parallel=2), START_NS, [])


def test_cut_samples_are_used_up_to_there(tmp_path: Path) -> None:
    file = tmp_path / "queues.bin"
    file.write_bytes(MAGIC + RECORD.pack(1, 0, 4) + b"abcd" + RECORD.pack(2, 0, 4) + b"ab")
    damage: list[Damage] = []
    assert [bytes(sample.answer) for sample in samples(file, damage)] == [b"abcd"]
    assert [(place.file, place.offset) for place in damage] == [("queues.bin", 26)]


FORMAT = "\n".join(
    f"\tfield:{kind} {name};\toffset:{offset};\tsize:{size};\tsigned:0;"
    for kind, name, offset, size in (
        ("__u8", "saddr[28]", 8, 28), ("__u16", "sport", 36, 2), ("__u16", "dport", 38, 2), ("__u32", "snd_nxt", 40, 4),
        ("__u32", "snd_una", 44, 4), ("__u32", "snd_cwnd", 48, 4), ("__u32", "ssthresh", 52, 4),
        ("__u32", "snd_wnd", 56, 4), ("__u32", "srtt", 60, 4), ("char", "data", 16, 4080),
    )
)  # fmt: skip


def tracepoint_page(events: int, commit: int | None = None) -> bytes:
    """A page of tcp_probe events of 64 bytes, 1 µs apart; cwnd counts from 10."""
    body = b""
    for i in range(events):
        address = struct.pack("<HH4s20x", 2, 0, bytes([192, 0, 2, 1]))
        event = (
            bytes(8)
            + address
            + struct.pack("<HHIIIIII", CLIENT[1], SERVER[1], 1001, 1001, 10 + i, 2**31 - 1, 65535, 20000)
        )
        body += struct.pack("<I", 1000 << 5 | len(event) // 4) + event
    head = struct.pack("<QQ", 5000, len(body) if commit is None else commit)
    return (head + body).ljust(4096, b"\0")


def probe(folder: Path, content: bytes) -> tuple[list[int], list[Damage]]:
    (folder / "tcp_probe.format").write_text(FORMAT)
    (folder / "tcp_probe.bin").write_bytes(content)
    damage: list[Damage] = []
    flow_of = {(0xC0000201, CLIENT[1], SERVER[1]): "f1"}
    rows = tcp_probe.rows(folder, flow_of, {"f1": 1000}, 0, 0, damage)
    return rows["cwnd_packets"].tolist(), damage


def test_tracepoint_pages_give_their_events(tmp_path: Path) -> None:
    assert probe(tmp_path, tracepoint_page(3) + tracepoint_page(2)) == ([10, 11, 12, 10, 11], [])


def test_a_cut_or_broken_tracepoint_page_is_reported_with_its_byte(tmp_path: Path) -> None:
    events, damage = probe(tmp_path, tracepoint_page(3) + tracepoint_page(2)[:-100])
    assert events == [10, 11, 12] and [place.offset for place in damage] == [4096]
    events, damage = probe(tmp_path, tracepoint_page(3, commit=5000) + tracepoint_page(1))
    assert events == [10] and [place.offset for place in damage] == [0]
    events, damage = probe(tmp_path, tracepoint_page(3, commit=2 * 68 + 8))
    assert events == [10, 11] and [place.offset for place in damage] == [16 + 2 * 68]


@given(st.binary(max_size=200), st.integers(0, 4000))
def test_hostile_tracepoint_pages_give_events_or_damage(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int
) -> None:
    page = bytearray(tracepoint_page(20))
    page[at : at + len(junk)] = junk
    probe(tmp_path_factory.mktemp("probe"), bytes(page[:4096]))


@given(st.lists(st.tuples(st.integers(0, 20), st.binary(max_size=30), st.integers(0, 1400)), min_size=1, max_size=6))
def test_pages_read_at_once_give_what_event_by_event_gives(
    tmp_path_factory: pytest.TempPathFactory, damaged: list[tuple[int, bytes, int]]
) -> None:
    pages = [bytearray(tracepoint_page(events)) for events, _, _ in damaged]
    for page, (_, junk, at) in zip(pages, damaged, strict=True):
        page[at : at + len(junk)] = junk
    content = b"".join(bytes(page[:4096]) for page in pages)
    folder = tmp_path_factory.mktemp("probe")
    at_once = probe(folder, content)
    with pytest.MonkeyPatch.context() as patch:
        nothing = np.zeros(0, dtype=np.int64)
        patch.setattr(tcp_probe, "_even_pages", lambda words, _: (np.zeros(len(words), dtype=bool), nothing, nothing))
        assert probe(folder, content) == at_once


@given(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 3), st.binary(max_size=120)), max_size=8),
    st.binary(max_size=20),
)
def test_hostile_samples_give_rows_or_damage(
    tmp_path_factory: pytest.TempPathFactory, answers: list[tuple[int, int, bytes]], tail: bytes
) -> None:
    file = tmp_path_factory.mktemp("samples") / "queues.bin"
    file.write_bytes(MAGIC + b"".join(RECORD.pack(t, n, len(a)) + a for t, n, a in answers) + tail)
    damage: list[Damage] = []
    queues.rows(file, ["a", "r"], {"a": {}, "r": {}}, 0, damage)
    sockets.rows(file, {(0, 0, 0): "f1"}, 0, damage)
    assert damage or not tail


def queue_answer(*queues: tuple[int, str, int, tuple[int, ...]]) -> bytes:
    """An answer about queueing disciplines: interface, kind, parent, and (sent bytes, sent packets, packets and bytes that
    wait, drops)."""
    answer = b""
    for interface, kind, parent, (sent_bytes, sent_packets, *queued) in queues:
        statistics = attribute(STATS_BASIC, struct.pack("=QI", sent_bytes, sent_packets))
        statistics += attribute(STATS_QUEUE, struct.pack("=IIIII", *queued, 0, 0))
        body = TCMSG.pack(0, interface, 0, parent, 1) + attribute(TCA_KIND, kind.encode() + b"\0")
        answer += message(RTM_NEWQDISC, 2, body + attribute(TCA_STATS2, statistics))
    return answer + message(NLMSG_DONE, 2, bytes(4))


def test_each_sample_of_queues_is_read_by_its_own_shape(tmp_path: Path) -> None:
    """Answers of one length and node: the same queues with other numbers, then another kind, another interface, another order."""
    root, child = TC_H_ROOT, 1
    answers = [
        queue_answer((1, "tbf", root, (10, 1, 2, 20, 3)), (1, "bfifo", child, (11, 4, 5, 21, 6))),
        queue_answer((1, "tbf", root, (30, 7, 8, 22, 9)), (1, "bfifo", child, (2**40, 2**31, 70000, 23, 10))),
        queue_answer((1, "tbf", root, (10, 1, 2, 20, 12)), (1, "pfifo", child, (11, 4, 5, 21, 6))),
        queue_answer((2, "tbf", root, (10, 1, 2, 20, 3)), (2, "bfifo", child, (11, 4, 5, 21, 6))),
        queue_answer((1, "bfifo", child, (11, 4, 5, 21, 6)), (1, "tbf", root, (10, 1, 2, 20, 3))),
    ]
    assert len({len(answer) for answer in answers}) == 1
    records = [RECORD.pack(when, 0, len(answer)) + answer for when, answer in enumerate(answers)]
    (tmp_path / "queues.bin").write_bytes(MAGIC + b"".join(records))
    damage: list[Damage] = []
    columns = queues.rows(tmp_path / "queues.bin", ["r1"], {"r1": {"1": "r1-eth0"}}, 0, damage)
    assert damage == []
    names = ("interface", "qdisc", "sent_bytes", "sent_packets", "backlog_packets", "backlog_bytes", "drops")
    assert list(zip(*(columns[name] for name in names), strict=True)) == [
        ("r1-eth0", "bfifo", 11, 4, 5, 21, 6),
        ("r1-eth0", "bfifo", 2**40, 2**31, 70000, 23, 10),
        ("r1-eth0", "pfifo", 11, 4, 5, 21, 12),
        ("2", "bfifo", 11, 4, 5, 21, 6),
        ("r1-eth0", "bfifo", 11, 4, 5, 21, 6),
    ]


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from("abcx"), st.integers(1, 9)), max_size=12),
    st.integers(0, 2**31),
)
def test_samples_that_are_read_together_say_what_each_says_alone(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[int, str, int]], number: int
) -> None:
    """Stretches of one kind of answer, of two nodes in turn: read in blocks, and each from a file of its own."""
    folder, answers = tmp_path_factory.mktemp("samples"), []
    kinds = {
        "a": [("tbf", TC_H_ROOT), ("bfifo", 1)],
        "b": [("bfifo", 1), ("tbf", TC_H_ROOT)],
        "c": [("pfifo", TC_H_ROOT)],
    }
    for node, kind, times in runs:
        for _ in range(times):
            number = (number * 1103515245 + 12345) % 2**31
            counts = tuple(number >> shift for shift in range(5))
            given_to = [(1 + number % 2, name, parent, counts) for name, parent in kinds.get(kind, [])]
            answers.append((node, queue_answer(*given_to) if kind != "x" else message(RTM_NEWQDISC, 2, b"")))

    def read(chosen: list[tuple[int, bytes]]) -> tuple[dict[str, list[Any]], int]:
        records = [RECORD.pack(5, node, len(answer)) + answer for node, answer in chosen]
        (folder / "queues.bin").write_bytes(MAGIC + b"".join(records))
        damage: list[Damage] = []
        columns = queues.rows(folder / "queues.bin", ["r1", "r2"], {"r1": {"1": "r1-eth0"}, "r2": {}}, 0, damage)
        return {name: list(values) for name, values in columns.items()}, len(damage)

    together, damaged = read(answers)
    alone = [read([answer]) for answer in answers]
    assert damaged == sum(number for _, number in alone)
    for name, values in together.items():
        assert values == [value for columns, _ in alone for value in columns[name]], name


def test_statistics_that_are_cut_are_damage(tmp_path: Path) -> None:
    whole = queue_answer((1, "bfifo", TC_H_ROOT, (11, 4, 5, 21, 6)))
    body = TCMSG.pack(0, 1, 0, TC_H_ROOT, 1) + attribute(TCA_KIND, b"bfifo\0")
    cut = message(RTM_NEWQDISC, 2, body + attribute(TCA_STATS2, attribute(STATS_BASIC, bytes(8))))
    (tmp_path / "queues.bin").write_bytes(MAGIC + b"".join(RECORD.pack(1, 0, len(a)) + a for a in (whole, cut, whole)))
    damage: list[Damage] = []
    columns = queues.rows(tmp_path / "queues.bin", ["r1"], {"r1": {}}, 0, damage)
    assert columns["sent_bytes"] == [11, 11]
    assert [place.offset for place in damage] == [len(MAGIC) + RECORD.size + len(whole)]
