# SPDX-License-Identifier: Apache-2.0
"""The packet collector, tshark and tcptrace on the captures of real runs: packets, bytes, retransmissions and RTT samples.

    ./warpbed exec python -m benchmarks.capture_agreement PATH... [--packets N]

PATH is a capture, a run, an experiment's results or all results; of each capture the first N packets are compared. One line per
capture and kind of difference; docs/pcap.md "Agreement" says who is right. Exit code 1 where a difference is none of those; 2
without the tools.
"""

from __future__ import annotations

import argparse
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import pyarrow.parquet as pq

from collectors.compressed import CAPTURES, opened
from collectors.pcap import analyze

PACKETS = 20_000
TOOLS = ("tshark", "tcptrace")
FIELDS = (
    "frame.time_epoch", "ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport", "tcp.len", "tcp.ack",
    "tcp.analysis.retransmission", "tcp.analysis.fast_retransmission", "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order", "tcp.analysis.ack_rtt", "tcp.analysis.keep_alive", "tcp.analysis.lost_segment",
)  # fmt: skip
TCPTRACE = {
    "total packets": "packets", "actual data bytes": "payload_bytes", "rexmt data pkts": "retransmitted_packets",
    "rexmt data bytes": "retransmitted_bytes", "outoforder pkts": "out_of_order_packets", "RTT samples": "rtt_samples",
}  # fmt: skip
COUNTED = (*TCPTRACE.values(), "gaps", "keep_alives", "zero_window_probes")
PRINTED_S = 1.5e-9
"""tshark prints nanoseconds."""

Way = tuple[str, int, str, int]
"""Sender's address and port, receiver's address and port."""


@dataclass
class Found:
    """Differences of one capture by kind: those that docs/pcap.md explains, and the others in words."""

    packets: int = 0
    samples: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)


@dataclass
class Seen:
    """What a program says of a capture: counts by direction; RTT samples (s) by the ACK's time (ns) and the data's direction."""

    counts: dict[Way, Counter[str]] = field(default_factory=dict)
    samples: dict[tuple[int, Way], float | None] = field(default_factory=dict)
    handshakes: set[tuple[int, Way]] = field(default_factory=set)


def beginning(capture: Path, out: Path, packets: int) -> Path:
    """The first packets of a pcap, as written on a machine of this byte order, compressed or not."""
    with opened(capture) as source, out.open("wb") as cut:
        cut.write(source.read(24))
        for _ in range(packets):
            head = source.read(16)
            if len(head) < 16:
                break
            cut.write(head + source.read(struct.unpack("=IIII", head)[2]))
    return out


def ours(capture: Path, out: Path) -> Seen:
    analyze(capture, out, threads=1)
    seen, ways = Seen(), {}
    for row in pq.read_table(out / "directions.parquet").to_pylist():
        way = (row["src_addr"], row["src_port"], row["dst_addr"], row["dst_port"])
        ways[row["flow"], row["forward"]] = way
        seen.counts.setdefault(way, Counter()).update({name: row[name] for name in COUNTED})
    columns = ["time_ns", "flow", "forward", "rtt_us"]
    for row in pq.read_table(out / "acks.parquet", columns=columns).to_pylist():
        rtt = row["rtt_us"]
        seen.samples[row["time_ns"], ways[row["flow"], row["forward"]]] = None if rtt is None else rtt * 1e-6
    return seen


def tshark(capture: Path) -> Seen:
    command = ["tshark", "-n", "-r", str(capture), "-T", "fields", "-E", "separator=|"]
    command += [argument for name in FIELDS for argument in ("-e", name)]
    seen = Seen()
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        time, src4, src6, sport, dst4, dst6, dport, length, ack, again, fast, spurious, late, rtt, alive, lost = (
            line.split("|")
        )
        if not sport:
            continue
        way = (src4 or src6, int(sport), dst4 or dst6, int(dport))
        count = seen.counts.setdefault(way, Counter())
        repeated = bool(again or fast or spurious)
        count["packets"] += 1
        count["payload_bytes"] += int(length)
        count["retransmitted_packets"] += repeated
        count["out_of_order_packets"] += bool(late) and not repeated
        count["retransmitted_bytes"] += int(length) * (repeated or bool(late))
        count["keep_alive_bytes"] += bool(alive) and length != "0"
        count["gaps_shown_by_acks"] += bool(lost) and length == "0"
        if rtt:
            seconds, _, part = time.partition(".")
            key = (int(seconds) * 10**9 + int(part.ljust(9, "0")[:9]), (way[2], way[3], way[0], way[1]))
            seen.samples[key] = float(rtt)
            if int(ack) == 1:
                seen.handshakes.add(key)
    return seen


def tcptrace(capture: Path) -> Seen:
    output = subprocess.run(
        ["tcptrace", "-n", "-l", "-r", str(capture)], capture_output=True, text=True, check=True
    ).stdout
    seen = Seen()
    for block in re.split(r"^TCP connection \d+:$", output, flags=re.MULTILINE)[1:]:
        hosts = re.findall(r"^\thost \S+\s+(\S+):(\d+)", block, re.MULTILINE)
        a, b = [(str(ip_address(host)), int(port)) for host, port in hosts]  # IPv6 comes with leading zeros
        rows = {
            label: values for label, *values in re.findall(r"^\s+([\w ]+?):\s+(\S+)\s+\1:\s+(\S+)", block, re.MULTILINE)
        }
        for side, way in enumerate(((*a, *b), (*b, *a))):
            count = seen.counts.setdefault(way, Counter())
            count.update({name: int(rows[label][side]) for label, name in TCPTRACE.items() if label in rows})
    return seen


def agreement(capture: Path, packets: int = PACKETS) -> Found:
    """Compare the three on the beginning of a capture."""
    report = Found()
    with tempfile.TemporaryDirectory(prefix="warpbed-") as folder:
        cut = beginning(capture, Path(folder) / "x.pcap", packets)
        mine, wireshark, ostermann = ours(cut, Path(folder)), tshark(cut), tcptrace(cut)
    for way, count in mine.counts.items():
        report.packets += count["packets"]
        report.samples += count["rtt_samples"]
        _counts(report, "tshark", way, count, wireshark.counts.get(way, Counter()))
        _counts(report, "tcptrace", way, count, ostermann.counts.get(way, Counter()))
    _samples(report, mine, wireshark)
    return report


def _counts(report: Found, tool: str, way: Way, mine: Counter[str], theirs: Counter[str]) -> None:
    def unless(same: bool, what: str) -> None:
        if not same:
            report.unexplained.append(f"{tool}: {what} of {way}: {dict(mine)} here, {dict(theirs)} there")

    unless(mine["packets"] == theirs["packets"], "packets")
    unless(mine["payload_bytes"] == theirs["payload_bytes"], "bytes")
    late, their_late = mine["out_of_order_packets"], theirs["out_of_order_packets"]
    again, their_again = mine["retransmitted_packets"], theirs["retransmitted_packets"]
    more = their_again + their_late - again - late
    if more:
        # what each of these kinds can make up for, and in which direction
        if more < 0 and -more <= theirs["keep_alive_bytes"]:
            report.explained[f"{tool}: a byte sent again called a keep-alive"] -= more
        elif more > 0 and tool == "tcptrace" and more <= mine["keep_alives"]:
            report.explained[f"{tool}: a keep-alive's byte called a retransmission"] += more
        elif more > 0 and theirs["gaps_shown_by_acks"]:
            report.explained[f"{tool}: retransmissions into a gap that only an ACK's sequence number showed"] += more
        else:
            unless(False, "retransmissions and packets out of order together")
    elif their_late > late:
        report.explained[f"{tool}: retransmissions called out of order"] += their_late - late
    elif their_late < late:
        report.explained[f"{tool}: packets out of order called retransmissions"] += late - their_late
    if not late and not more and (tool == "tshark" or not their_late):
        bytes_more = theirs["retransmitted_bytes"] - mine["retransmitted_bytes"]
        if tool == "tcptrace" and 0 < bytes_more <= again:
            report.explained["tcptrace: a SYN or FIN sent again counted as a byte"] += bytes_more
        else:
            unless(bytes_more == 0, "retransmitted bytes")
    if tool == "tcptrace":
        samples_more = theirs["rtt_samples"] - mine["rtt_samples"]
        if 0 < abs(samples_more) <= again + late:
            report.explained["tcptrace: RTT samples in a recovery"] += abs(samples_more)
        else:
            unless(samples_more == 0, "RTT samples")


def _samples(report: Found, mine: Seen, theirs: Seen) -> None:
    """Sample by sample: those of both are the same, the others of a kind that is known."""
    for key, their in theirs.samples.items():
        rtt, count = mine.samples.get(key), mine.counts[key[1]]
        if rtt is not None:
            if abs(rtt - (their or 0)) > PRINTED_S:
                report.unexplained.append(f"tshark: RTT at {key}: {rtt} here, {their} there")
        elif key in theirs.handshakes:  # counted, but no row of `acks`: no data are out yet
            continue
        elif count["retransmitted_packets"] or count["out_of_order_packets"]:
            report.explained["tshark: RTT samples that are ambiguous or waited for another segment"] += 1
        else:
            report.unexplained.append(f"tshark: RTT {their} at {key}, none here")
    for key, rtt in mine.samples.items():
        if rtt is not None and key not in theirs.samples:
            if rtt == 0:
                report.explained["tshark: no RTT of 0"] += 1
            else:
                report.unexplained.append(f"tshark: no RTT at {key}, {rtt} here")


def captures(path: Path) -> Iterator[Path]:
    """A capture itself, or all of a folder's."""
    if path.is_file():
        yield path
    else:
        found = [file for pattern in CAPTURES for file in path.rglob(pattern)]
        yield from sorted(file for file in found if ".aside" not in file.parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--packets", type=int, default=PACKETS)
    options = parser.parse_args()
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        print(f"not installed: {', '.join(missing)}; as root: apt-get install {' '.join(missing)}", file=sys.stderr)
        return 2
    total = Found()
    files = [file for path in options.paths for file in captures(path)]
    for file in files:
        agreed = agreement(file, options.packets)
        print(f"{file}: {agreed.packets} packets, {agreed.samples} RTT samples")
        for kind, count in agreed.explained.items():
            print(f"  {count} {kind}")
        for line in agreed.unexplained:
            print(f"  NOT EXPLAINED: {line}")
        total.packets += agreed.packets
        total.samples += agreed.samples
        total.explained += agreed.explained
        total.unexplained += agreed.unexplained
    print(
        f"{len(files)} captures, {total.packets} packets, {total.samples} RTT samples, {len(total.unexplained)} differences not explained"
    )
    for kind, count in total.explained.most_common():
        print(f"  {count} {kind}")
    if not files:
        print("no capture found", file=sys.stderr)
    return 2 if not files else 1 if total.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
