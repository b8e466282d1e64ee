# SPDX-License-Identifier: Apache-2.0
"""Which lines for tc are sent as rtnetlink messages instead, and what these hold. tests/guest/test_queue_words.py has what they make."""

from __future__ import annotations

import pytest

from network.link_words import direction
from network.plain_netlink import plain_qdiscs
from network.tc import egress


def test_a_token_bucket_with_its_fifo_has_the_bytes_of_the_kernels_structures() -> None:
    """10 Mbit/s are 1 250 000 = 0x1312d0 bytes a second; a bucket of 3028 = 0xbd4 bytes; 1 GiB at most; a FIFO of 50 packets."""
    lines = egress("s1-eth0", direction({"rate": "10mbit", "buffer": "50p"})).lines
    found = plain_qdiscs(lines)
    assert found is not None
    bucket, fifo = found
    rate, none = "00 01 0000 ffff 0000 d0121300", "00" * 12
    parms = bytes.fromhex(f"{rate} {none} 00000040 00000000 00000000")
    assert (bucket.kind, bucket.parent, bucket.handle) == ("tbf", 0xFFFFFFFF, 0x10000)
    assert bucket.attributes == ((1, parms), (6, bytes.fromhex("d40b0000")))
    assert (fifo.kind, fifo.parent, fifo.handle) == ("pfifo", 0x10001, 0x100000)
    assert fifo.plain == bytes.fromhex("32000000") and fifo.attributes == ()


@pytest.mark.parametrize("queue", ["codel", "fq_codel", "pie", "policer"])
def test_what_draws_random_numbers_or_has_other_words_is_left_to_tc(queue: str) -> None:
    lines = egress(
        "r1-eth0", direction({"rate": "10mbit", "buffer": "60KB" if queue == "policer" else "50p", "queue": queue})
    ).lines
    assert lines and plain_qdiscs(lines) is None


def test_a_burst_in_other_words_is_left_to_tc() -> None:
    assert plain_qdiscs(["qdisc add dev a root handle 1: tbf rate 1mbit burst 3028 limit 9"]) is None
    assert plain_qdiscs(["qdisc add dev a root handle 1: pfifo limit 9 and more"]) is None
    assert plain_qdiscs([]) == []
