# SPDX-License-Identifier: Apache-2.0
"""What both ends agreed on about ECN, as RFC 9768 table 2 has it for each answer to each request."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from collectors.pcap import analyze
from tests.pcap_craft import ACK, CWR, ECE, SYN, Conversation, pcap

NONE, CLASSIC, ACCURATE = (False, False), (True, False), (False, True)

AGREED = {
    # (AE, CWR, ECE) of the SYN and of the SYN-ACK, and what is in use then
    "neither asks": ((0, 0, 0), (0, 0, 0), NONE),
    "classic, agreed": ((0, 1, 1), (0, 0, 1), CLASSIC),
    "classic, refused": ((0, 1, 1), (0, 0, 0), NONE),
    "classic, all reflected": ((0, 1, 1), (0, 1, 1), NONE),
    "accurate, SYN came without ECT": ((1, 1, 1), (0, 1, 0), ACCURATE),
    "accurate, SYN came with ECT(1)": ((1, 1, 1), (0, 1, 1), ACCURATE),
    "accurate, SYN came with ECT(0)": ((1, 1, 1), (1, 0, 0), ACCURATE),
    "accurate, SYN came marked": ((1, 1, 1), (1, 1, 0), ACCURATE),
    "accurate, the other end is classic": ((1, 1, 1), (0, 0, 1), CLASSIC),
    "accurate, the other end has a nonce": ((1, 1, 1), (1, 0, 1), CLASSIC),
    "accurate, the other end has none": ((1, 1, 1), (0, 0, 0), NONE),
    "accurate, a broken end reflects all": ((1, 1, 1), (1, 1, 1), NONE),
}


@pytest.mark.parametrize("case", AGREED)
def test_the_handshake_says_what_was_agreed(tmp_path: Path, case: str) -> None:
    (ae, cwr, ece), (ae_back, cwr_back, ece_back), agreed = AGREED[case]
    talk = Conversation()
    talk.packet(0, "c", flags=SYN | CWR * cwr | ECE * ece, accurate=bool(ae))
    talk.packet(20, "s", flags=SYN | ACK | CWR * cwr_back | ECE * ece_back, accurate=bool(ae_back), ack=0, tsecr=1)
    talk.packet(20.1, "c", ack=0, tsecr=21)
    talk.data(21, 0)
    talk.ack(41, 1000, tsecr=22)
    (tmp_path / "x.pcap").write_bytes(pcap(talk.sorted()))
    analyze(tmp_path / "x.pcap", tmp_path)
    (flow,) = pq.read_table(tmp_path / "flows.parquet").to_pylist()
    assert (flow["ecn"], flow["accurate_ecn"]) == agreed
