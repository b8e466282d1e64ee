# SPDX-License-Identifier: Apache-2.0
"""The seeds of the fuzzers in collectors/pcap/fuzz/corpus: small captures of every container, link layer and scenario.

    python -m tests.pcap_corpus        # writes them again, after a format or scenario was added

Headers only (snap length 96), so that a mutation meets a field and not payload.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tests.pcap_craft import ACK, FIN, PSH, RST, SYN, pcap, pcapng
from tests.pcap_scenarios import SCENARIOS
from tests.unit.test_pcap_formats import FORMATS, PLAIN

CORPUS = Path(__file__).parents[1] / "collectors" / "pcap" / "fuzz" / "corpus"
SNAP = 96
PACKETS = 8
"""Of a seed that is there for its container."""


def captures() -> Iterator[tuple[str, bytes]]:
    """(name, content) of every seed of the target `capture`."""
    few = [(time, frame[:SNAP], original) for time, frame, original in PLAIN[:PACKETS]]
    for name, data in FORMATS.items():
        if not name.startswith(("gzip", "zstd", "pcapng", "pcap", "snap")):
            yield name, data[: 24 + PACKETS * (16 + SNAP)]  # a link layer; its first packets are whole, the rest is cut
    for big in (False, True):
        order = "big" if big else "little"
        for nano in (False, True):
            yield f"pcap {'ns' if nano else 'us'} {order}", pcap(few, big=big, nano=nano)
        yield f"pcapng {order}", pcapng(few, big=big, resolution=9 if big else 6)
    yield "pcapng two sections", pcapng(few[:3]) + pcapng(few[3:], big=True)
    yield "gzip", _from_unix(gzip.compress(pcap(few), mtime=0))
    yield "zstd", pa.compress(pcap(few), codec="zstd", asbytes=True)
    for name, scenario in SCENARIOS.items():
        yield name, pcap(scenario().sorted(), snap=SNAP)


def _from_unix(data: bytes) -> bytes:
    """gzip's header with Unix as the system: Python 3.13 writes none."""
    return data[:9] + b"\x03" + data[10:]


def step(side: int, flags: int, *, seq: int = 0, ack: int = 0, length: int = 0, wait: int = 10, sack: int = 0) -> bytes:
    """One packet of the target `packets` (collectors/pcap/src/fuzzing.rs): 16 bytes; seq and ack are changes."""
    return struct.pack("<BBBBhhBBBBBBBB", side, flags, wait, 20, seq, ack, length >> 3, 3, 0, 8, 100, wait, wait, sack)


def conversations() -> Iterator[tuple[str, bytes]]:
    """(name, content) of every seed of the target `packets`."""
    opened = step(0, SYN) + step(1, SYN | ACK, ack=1) + step(0, ACK, seq=1, ack=1)
    data = step(0, ACK | PSH, length=1000)
    yield "clean", opened + (data + step(1, ACK)) * 4 + step(0, FIN | ACK) + step(1, FIN | ACK, ack=1)
    yield (
        "loss",
        opened + data * 5 + step(1, ACK, ack=-4000, sack=1) * 4 + step(0, ACK, seq=-4000, length=1000) + step(1, ACK),
    )
    yield "timeout", opened + data * 2 + step(0, ACK, seq=-1000, length=1000, wait=250) + step(1, ACK, sack=2)
    yield "reset", opened + data + step(1, RST | ACK)
    yield "flows", b"".join(bytes([2 * flow]) + opened[1:] + data for flow in range(4))


def seeds() -> Iterator[tuple[str, bytes]]:
    """(path below CORPUS, content) of all."""
    for target, inputs in (("capture", captures()), ("packets", conversations())):
        for name, data in inputs:
            yield f"{target}/{name.replace(' ', '-')}", data


if __name__ == "__main__":
    for name, data in seeds():
        path = CORPUS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    print(sum(1 for _ in seeds()), "seeds in", CORPUS)
