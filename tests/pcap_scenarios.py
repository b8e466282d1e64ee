# SPDX-License-Identifier: Apache-2.0
"""The crafted conversations on which collectors.pcap, tshark and tcptrace are compared (docs/pcap.md "Agreement").

RTT 20 ms, MSS 1000 for the arithmetic, captured at the client, who sends the data.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.pcap_craft import ACK, FIN, PSH, RST, SYN, Conversation


def clean() -> Conversation:
    """Four segments, each acknowledged 20 ms later."""
    c = Conversation()
    c.open()
    for i in range(4):
        c.data(30 + i, i * 1000)
        c.ack(50 + i, (i + 1) * 1000, tsecr=31 + i)
    c.close(60, 4000)
    return c


def one_loss() -> Conversation:
    """Segment 1 of 6 is lost; three duplicate ACKs with SACK bring it back."""
    c = Conversation()
    c.open()
    for i in range(6):
        c.data(30 + i, i * 1000)
    c.ack(50, 1000, tsecr=31)
    for i in range(2, 6):
        c.ack(50 + i, 1000, tsecr=31, sack=[(2000, (i + 1) * 1000)])
    c.data(55, 1000)
    c.ack(75, 6000, tsecr=56)
    c.close(80, 6000)
    return c


def tail_loss() -> Conversation:
    """The last of three segments is lost; only the timeout, 230 ms later, brings it back."""
    c = Conversation()
    c.open()
    for i in range(3):
        c.data(30 + i, i * 1000)
    c.ack(50, 1000, tsecr=31)
    c.ack(51, 2000, tsecr=32)
    c.data(281, 2000)
    c.ack(301, 3000, tsecr=282)
    c.close(310, 3000)
    return c


def spurious_timeout() -> Conversation:
    """The path stalls for 300 ms: the retransmission was needless, as timestamps and DSACK show."""
    c = Conversation()
    c.open()
    c.data(30, 0)
    c.data(31, 1000)
    c.data(260, 0)
    c.ack(330, 2000, tsecr=31)
    c.ack(350, 2000, tsecr=31, sack=[(0, 1000)])
    c.close(360, 2000)
    return c


def spurious_by_dsack() -> Conversation:
    """As spurious_timeout, without timestamps: only the DSACK tells."""
    c = Conversation(timestamps=False)
    c.open()
    c.data(30, 0)
    c.data(31, 1000)
    c.data(260, 0)
    c.ack(330, 2000)
    c.ack(350, 2000, sack=[(0, 1000)])
    c.close(360, 2000)
    return c


def wrap() -> Conversation:
    """Sequence numbers pass 2^32 in the second of four segments."""
    c = Conversation(client_isn=2**32 - 1501, server_isn=2**32 - 1)
    c.open()
    for i in range(4):
        c.data(30 + i, i * 1000)
        c.ack(50 + i, (i + 1) * 1000, tsecr=31 + i)
    c.close(60, 4000)
    return c


def reneging() -> Conversation:
    """The receiver reports bytes 2000-4000 by SACK, throws them away and acknowledges 2000 only."""
    c = Conversation()
    c.open()
    for i in range(4):
        c.data(30 + i, i * 1000)
    c.ack(50, 1000, tsecr=31)
    c.ack(52, 1000, tsecr=31, sack=[(2000, 3000)])
    c.ack(53, 1000, tsecr=31, sack=[(2000, 4000)])
    c.data(290, 1000)
    c.ack(310, 2000, tsecr=291)
    c.data(311, 2000)
    c.data(311.1, 3000)
    c.ack(331, 3000, tsecr=312)
    c.ack(331.1, 4000, tsecr=312)
    c.close(340, 4000)
    return c


def simultaneous_open() -> Conversation:
    """Both sides send a SYN; each answers with a SYN-ACK."""
    c = Conversation()
    c.packet(0, "c", flags=SYN)
    c.packet(5, "s", flags=SYN)
    c.packet(5.1, "c", flags=SYN | ACK, ack=0, tsecr=6)
    c.packet(20, "s", flags=SYN | ACK, ack=0, tsecr=1)
    c.data(30, 0)
    c.ack(50, 1000, tsecr=31)
    c.close(60, 1000)
    return c


def keep_alive() -> Conversation:
    """Idle for a minute: a keep-alive without and one with a byte, both answered."""
    c = Conversation()
    c.open()
    c.data(30, 0)
    c.ack(50, 1000, tsecr=31)
    c.packet(60_000, "c", seq=999, ack=0)
    c.ack(60_020, 1000, tsecr=60_001)
    c.packet(61_000, "c", seq=999, ack=0, length=1)
    c.ack(61_020, 1000, tsecr=61_001)
    c.close(61_100, 1000)
    return c


def reset() -> Conversation:
    """The server aborts after the first segment."""
    c = Conversation()
    c.open()
    c.data(30, 0)
    c.ack(50, 1000, tsecr=31)
    c.data(51, 1000)
    c.packet(71, "s", ack=1000, flags=RST | ACK)
    return c


def reordering() -> Conversation:
    """Captured at the server: segment 2 overtakes segment 1 by 1 ms; nothing was sent again."""
    c = Conversation()
    c.packet(0, "c", flags=SYN)
    c.packet(0.1, "s", flags=SYN | ACK, ack=0, tsecr=1)
    c.packet(20, "c", ack=0, tsecr=1)
    c.data(30, 0, tsval=20)
    c.ack(30.1, 1000, tsecr=20)
    c.data(31, 2000, tsval=22)
    c.ack(31.1, 1000, tsecr=20, sack=[(2000, 3000)])
    c.data(32, 1000, tsval=21)
    c.ack(32.1, 3000, tsecr=21)
    return c


def loss_upstream() -> Conversation:
    """Captured at the server: segment 1 never came, its retransmission did, 40 ms late."""
    c = Conversation()
    c.packet(0, "c", flags=SYN)
    c.packet(0.1, "s", flags=SYN | ACK, ack=0, tsecr=1)
    c.packet(20, "c", ack=0, tsecr=1)
    c.data(30, 0, tsval=20)
    c.ack(30.1, 1000, tsecr=20)
    for i in range(3):
        c.data(32 + i, (i + 2) * 1000, tsval=22 + i)
        c.ack(32.1 + i, 1000, tsecr=20, sack=[(2000, (i + 3) * 1000)])
    c.data(74, 1000, tsval=63)
    c.ack(74.1, 5000, tsecr=63)
    return c


def zero_window() -> Conversation:
    """The receiver closes its window for 100 ms and is probed once."""
    c = Conversation()
    c.open()
    c.data(30, 0)
    c.ack(50, 1000, tsecr=31, window=0)
    c.packet(100, "c", seq=999, ack=0)
    c.ack(120, 1000, tsecr=31, window=0)
    c.ack(150, 1000, tsecr=31, window=1000)
    c.data(151, 1000)
    c.ack(171, 2000, tsecr=152)
    c.close(180, 2000)
    return c


def window_limited() -> Conversation:
    """No further segment fits from 30 to 50 ms (the SYN-ACK's window is 1000 bytes) and from 52 to 72 ms (2048 bytes)."""
    c = Conversation()
    c.open()
    c.data(30, 0)
    c.ack(50, 1000, tsecr=31, window=16)
    c.data(51, 1000)
    c.data(52, 2000)
    c.ack(72, 3000, tsecr=53)
    c.close(80, 3000)
    return c


def both_ways() -> Conversation:
    """A request of 100 bytes, an answer of 3000, and the server closes."""
    c = Conversation()
    c.open()
    c.data(21, 0, 100)
    for i in range(3):
        c.packet(41 + i, "s", seq=i * 1000, ack=100, length=1000, flags=ACK | PSH, tsecr=22)
        c.packet(41.1 + i, "c", seq=100, ack=(i + 1) * 1000, tsecr=42 + i)
    c.packet(45, "s", seq=3000, ack=100, flags=FIN | ACK, tsecr=22)
    c.packet(45.1, "c", seq=100, ack=3001, flags=FIN | ACK, tsecr=46)
    c.packet(65, "s", seq=3001, ack=101, tsecr=46)
    return c


def tail_probe() -> Conversation:
    """The last segment is lost; a probe two round trips later brings it back before the timeout (RFC 8985 s7)."""
    c = Conversation()
    c.open()
    for i in range(3):
        c.data(30 + i, i * 1000)
    c.ack(50, 1000, tsecr=31)
    c.ack(51, 2000, tsecr=32)
    c.data(91, 2000)
    c.ack(111, 3000, tsecr=92)
    c.close(120, 3000)
    return c


SCENARIOS: dict[str, Callable[[], Conversation]] = {
    scenario.__name__: scenario
    for scenario in (
        clean, one_loss, tail_loss, tail_probe, spurious_timeout, spurious_by_dsack, wrap, reneging, simultaneous_open,
        keep_alive, reset,
        reordering, loss_upstream, zero_window, window_limited, both_ways,
    )
}  # fmt: skip
