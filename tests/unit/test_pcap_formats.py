# SPDX-License-Identifier: Apache-2.0
"""Every container and encapsulation of the same packets gives the same records; bad ones give what is good of them."""

from __future__ import annotations

import gzip
import itertools
import os
import struct
import subprocess
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collectors.pcap import CaptureError, Flow, analyze, compare, generate
from tests import lab
from tests.pcap_craft import CLIENT6, SERVER6, Conversation, pcap, pcapng
from tests.pcap_scenarios import one_loss

ROOT = Path(__file__).parents[2]
Frames = list[tuple[int, bytes, int]]


def records(data: bytes, folder: Path, **options: Any) -> dict[str, list[dict[str, Any]]]:
    path = folder / "x.cap"
    path.write_bytes(data)
    summary = analyze(path, folder, **options)
    assert not summary.errors, summary.errors
    assert not summary.bad_packets, summary.first_bad
    return {t: pq.read_table(folder / f"{t}.parquet").to_pylist() for t in ("flows", "acks", "intervals", "directions")}


def link(frames: Frames, head: bytes, keep: int = 14) -> Frames:
    """The frames under another link header."""
    return [(time, head + frame[keep:], original - keep + len(head)) for time, frame, original in frames]


PLAIN = one_loss().sorted()
SLL = b"\x00\x00\x00\x01\x00\x06\x02\x00\x00\x00\x00\x01\x00\x00\x08\x00"
SLL2 = b"\x08\x00\x00\x00\x00\x00\x00\x01\x00\x01\x00\x06\x02\x00\x00\x00\x00\x01\x00\x00"
VLAN = PLAIN[0][1][:12] + b"\x81\x00\x00\x07\x08\x00"
QINQ = PLAIN[0][1][:12] + b"\x88\xa8\x00\x09\x81\x00\x00\x07\x08\x00"
FORMATS = {
    "pcap ns little": pcap(PLAIN),
    "pcap us big": pcap(PLAIN, big=True, nano=False),
    "pcap us little": pcap(PLAIN, nano=False),
    "pcap ns big": pcap(PLAIN, big=True),
    "snap 80": pcap(PLAIN, snap=80),
    "pcapng little": pcapng(PLAIN),
    "pcapng big us": pcapng(PLAIN, big=True, resolution=6),
    "pcapng two sections": pcapng(PLAIN[:5]) + pcapng(PLAIN[5:], big=True),
    "gzip": gzip.compress(pcap(PLAIN)),
    "gzip members": gzip.compress(pcap(PLAIN)[:100]) + gzip.compress(pcap(PLAIN)[100:]),
    "zstd": pa.compress(pcap(PLAIN), codec="zstd", asbytes=True),
    "zstd frames": b"".join(
        pa.compress(part, codec="zstd", asbytes=True) for part in (pcap(PLAIN)[:100], pcap(PLAIN)[100:])
    ),
    "sll": pcap(link(PLAIN, SLL), link=113),
    "sll2": pcap(link(PLAIN, SLL2), link=276),
    "raw": pcap(link(PLAIN, b""), link=101),
    "loopback": pcap(link(PLAIN, b"\x02\x00\x00\x00"), link=0),
    "vlan": pcap(link(PLAIN, VLAN)),
    "qinq": pcap(link(PLAIN, QINQ)),
}


@pytest.mark.parametrize("name", FORMATS)
def test_all_containers_and_links_give_the_same(name: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    read, expected = records(FORMATS[name], tmp_path / "a"), records(FORMATS["pcap ns little"], tmp_path / "b")
    frames = {"wire_bytes", "throughput_mbps"}
    for table, rows in expected.items():
        for mine, theirs in itertools.zip_longest(read[table], rows):
            drop = frames if table in ("flows", "directions", "intervals") else set()
            assert {k: v for k, v in mine.items() if k not in drop} == {
                k: v for k, v in theirs.items() if k not in drop
            }


def test_ipv6_with_extension_headers_gives_the_same(tmp_path: Path) -> None:
    six = one_loss()
    six.client, six.server = CLIENT6, SERVER6
    plain = Conversation(client=CLIENT6, server=SERVER6)
    assert plain.client == CLIENT6
    # The same calls with IPv6 ends: the frames are made on the way, so run the scenario's steps again.
    frames: Frames = []
    for time, frame, _ in PLAIN:
        tcp = frame[34:]
        ends = (CLIENT6, SERVER6) if tcp[:2] == struct.pack("!H", 40000) else (SERVER6, CLIENT6)
        from ipaddress import ip_address

        options = b"\x06\x00\x01\x04\x00\x00\x00\x00"
        head = struct.pack("!IHBB", 6 << 28, len(tcp) + 8, 60, 64)
        packet = head + ip_address(ends[0][0]).packed + ip_address(ends[1][0]).packed + options + tcp
        frames.append((time, frame[:12] + b"\x86\xdd" + packet, 14 + len(packet)))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    six_records, four = records(pcap(frames), tmp_path / "a"), records(pcap(PLAIN), tmp_path / "b")
    assert six_records["flows"][0]["src_addr"] == "2001:db8::1"
    for key in ("packets", "payload_bytes", "fast_retransmissions", "rtt_samples", "duplicate_acks"):
        assert six_records["flows"][0][key] == four["flows"][0][key]


def test_fragments_and_other_packets_are_counted(tmp_path: Path) -> None:
    time, frame, _ = PLAIN[3]
    later = frame[:20] + b"\x00\x10" + frame[22:]
    udp = frame[:23] + b"\x11" + frame[24:]
    arp = frame[:12] + b"\x08\x06" + bytes(28)
    (tmp_path / "x.pcap").write_bytes(pcap([*PLAIN, *((time, f, len(f)) for f in (later, udp, arp))]))
    summary = analyze(tmp_path / "x.pcap", tmp_path)
    assert (summary.fragments, summary.other_packets, summary.tcp_packets) == (1, 2, len(PLAIN))


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_every_truncation_uses_the_good_prefix_and_says_where(make: Any, tmp_path: Path) -> None:
    short = [(time, frame[:90], original) for time, frame, original in PLAIN[:5]]
    data, whole = make(short), [len(make(short[:n])) for n in range(6)]
    # A pcapng may also end after its section, interface and custom blocks.
    clean = {*whole, *((28, 60) if make is pcapng else ())}
    for cut in range(24, len(data)):
        (tmp_path / "x").write_bytes(data[:cut])
        try:
            summary = analyze(tmp_path / "x")
        except CaptureError as error:
            assert "byte 0" in str(error) or cut < whole[0]  # noqa: PT017 — most cuts have no error
            continue
        good = sum(cut >= end for end in whole) - 1
        assert summary.packets == max(good, 0)
        if cut not in clean:
            (error_,) = summary.errors
            assert error_.offset <= cut and error_.needed and error_.needed > (error_.seen or 0)


def test_a_corrupt_length_names_its_byte(tmp_path: Path) -> None:
    data = bytearray(pcap(PLAIN))
    at = 24 + 16 + len(PLAIN[0][1])
    data[at + 8 : at + 12] = b"\xff\xff\xff\x7f"
    (tmp_path / "x").write_bytes(data)
    summary = analyze(tmp_path / "x", tmp_path / "out")
    (failure,) = summary.errors
    assert (summary.packets, failure.offset, failure.layer, failure.seen) == (1, at + 8, "pcap record", 0x7FFFFFFF)
    assert pq.read_table(tmp_path / "out" / "flows.parquet").num_rows == 1


@pytest.mark.parametrize("data", [b"", b"x", b"not a capture, but long enough for a header"])
def test_what_is_no_capture_is_refused_and_nothing_is_written(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(CaptureError, match="byte 0: pcap header"):
        analyze(tmp_path / "x", tmp_path / "out")
    assert not list((tmp_path / "out").glob("*"))


def test_a_named_flow_gets_its_names_direction_and_completion(tmp_path: Path) -> None:
    wanted = Flow("bulk", cca="cubic", src="h1", dst="h2", dst_port=5201, size_bytes=6000)
    row = records(pcap(PLAIN), tmp_path, flows=[wanted])["flows"][0]
    assert (row["flow"], row["cca"], row["src"], row["dst"]) == ("bulk", "cubic", "h1", "h2")
    assert row["completion_s"] == pytest.approx(0.075)
    row = records(pcap(PLAIN), tmp_path, flows=[Flow("bulk", dst_port=5201)])["flows"][0]
    assert row["completion_s"] is None


def test_sums_over_intervals_are_those_of_the_flow(tmp_path: Path) -> None:
    generate(tmp_path / "x.pcap", flows=5, packets=20_000, loss_ppm=2000, rate_bps=100_000_000)
    analyze(tmp_path / "x.pcap", tmp_path, interval_s=0.01)
    flows = {row["flow"]: row for row in pq.read_table(tmp_path / "flows.parquet").to_pylist()}
    sums: dict[str, dict[str, int]] = {}
    for row in pq.read_table(tmp_path / "intervals.parquet").to_pylist():
        assert row["width_s"] == 0.01
        for key in ("payload_bytes", "retransmitted_bytes", "delivered_bytes"):
            if row["forward"]:
                mine = sums.setdefault(row["flow"], {})
                mine[key] = mine.get(key, 0) + row[key]
    assert sums == {name: {key: flows[name][key] for key in mine} for name, mine in sums.items()}
    assert len(sums) == 5


def test_threads_do_not_change_a_byte(tmp_path: Path) -> None:
    generate(tmp_path / "x.pcap", flows=20, packets=300_000)
    for threads in (1, 2, 4):
        analyze(tmp_path / "x.pcap", tmp_path / str(threads), threads=threads)
    for table in ("acks", "intervals", "flows", "directions"):
        first, *others = ((tmp_path / str(n) / f"{table}.parquet").read_bytes() for n in (1, 2, 4))
        assert all(first == other for other in others), table


def test_a_pipe_is_read_while_the_capture_runs(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    data = pcap(PLAIN)

    def feed() -> None:
        with fifo.open("wb", buffering=0) as out:
            for at in range(0, len(data), 700):
                out.write(data[at : at + 700])

    feeder = threading.Thread(target=feed)
    feeder.start()
    summary = analyze(fifo, tmp_path / "out", live=True)
    feeder.join()
    assert (summary.packets, summary.errors) == (len(PLAIN), ())


def test_two_captures_of_a_path_give_delay_queue_and_loss(tmp_path: Path) -> None:
    """B sees every packet of A 10 ms later, the third data packet 13 ms, and never the fifth."""
    frames = [frame for frame in PLAIN if frame[1][34:36] == struct.pack("!H", 40000)]
    far = [
        (time + 10_000_000 + 3_000_000 * (n == 4), frame, length)
        for n, (time, frame, length) in enumerate(frames)
        if n != 6
    ]
    end = frames[-1][0] + 20_000_000_000
    tail = (end, frames[-1][1][:18] + b"\xff\xff" + frames[-1][1][20:], frames[-1][2])
    (tmp_path / "a.pcap").write_bytes(pcap([*frames, tail]))
    (tmp_path / "b.pcap").write_bytes(pcap(far))
    path = compare(tmp_path / "a.pcap", tmp_path / "b.pcap", tmp_path)
    assert (path.delivered, path.lost) == (len(far), 1)
    rows = pq.read_table(tmp_path / "path.parquet").to_pylist()
    delays = [row["delay_us"] for row in rows if row["delay_us"] is not None]
    assert sorted(delays) == [10_000.0] * (len(far) - 1) + [13_000.0]
    assert sorted(row["queue_us"] for row in rows if row["queue_us"] is not None)[-1] == 3000.0
    flow = pq.read_table(tmp_path / "path_flows.parquet").to_pylist()[0]
    assert (flow["a_to_b"], flow["lost_packets"]) == (True, 1)


def test_the_command_prints_the_rate_and_tells_bad_files(tmp_path: Path) -> None:
    (tmp_path / "x.pcap").write_bytes(pcap(PLAIN))
    (tmp_path / "cut.pcap").write_bytes(pcap(PLAIN)[:-5])
    (tmp_path / "bad.pcap").write_bytes(b"nonsense" * 10)

    def command(name: str) -> subprocess.CompletedProcess[str]:
        arguments = lab.command("collect", tmp_path / name, "--out", tmp_path / "out")
        return subprocess.run(arguments, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)

    done = command("x.pcap")
    assert done.returncode == 0 and done.stdout.startswith(f"{len(PLAIN)} packets, 1 flows, ")
    cut = command("cut.pcap")
    assert cut.returncode == 1 and "the packets before it were used" in cut.stderr
    bad = command("bad.pcap")
    assert bad.returncode == 2 and "not a capture" in bad.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x.pcap"], "need --out DIR"),
        (["x.pcap", ".", "--out", "out"], "give captures or folders, not both"),
        ([".", "--out", "out"], "--out is for captures"),
        (["nowhere.pcap", "--interval", "1"], "--interval is for captures"),
        (["x.pcap", "--out", "out", "--interval", "0"], "must be above 0"),
        (["x.pcap", "--out", "out", "--threads", "-1"], "must be at least 1"),
    ],
)
def test_wrong_use_of_collect_is_reported(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "x.pcap").write_bytes(pcap(PLAIN))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        lab.command("collect", *arguments), capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()
