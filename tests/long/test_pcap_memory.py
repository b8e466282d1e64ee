# SPDX-License-Identifier: Apache-2.0
"""The collector's memory does not grow with a capture's flows."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

from base.paths import ROOT
from collectors.pcap import generate
from tests.pcap_craft import Conversation, pcap


def test_memory_stays_bounded_with_many_flows(tmp_path: Path) -> None:
    """Hundreds of busy flows, and a flood of SYNs that are each a flow of its own, below 200 MB."""
    generate(tmp_path / "x.pcap", flows=2000, packets=500_000, rate_bps=10_000_000_000)
    syns = Conversation()
    syns.packet(0, "c", flags=2)
    (_time, frame, original) = syns.frames[0]
    flood = bytearray(pcap([]))
    for n in range(200_000):
        head = struct.pack("<IIII", 1_700_000_000 + n // 10_000, n % 10_000, len(frame), original)
        flood += head + frame[:26] + struct.pack("!I", 0xC6120000 + n) + frame[30:]
    (tmp_path / "flood.pcap").write_bytes(flood)
    script = (
        "import re, sys; from collectors.pcap import analyze\n"
        "s = analyze(sys.argv[2:], sys.argv[1])\n"
        # not ru_maxrss: that starts from the process that forked
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], s.flows, s.evicted_flows)"
    )
    arguments: list[str | Path] = [
        sys.executable,
        "-c",
        script,
        tmp_path / "out",
        tmp_path / "x.pcap",
        tmp_path / "flood.pcap",
    ]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=120, cwd=ROOT)
    peak_kib, flows, evicted = map(int, done.stdout.split())
    assert flows > 200_500 and evicted > 100_000
    assert peak_kib < 200_000
