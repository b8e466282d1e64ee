# SPDX-License-Identifier: Apache-2.0
"""Lengths of frames and headers, bytes. The frame check sequence is counted nowhere."""

from __future__ import annotations

FRAME_HEADER_BYTES = 14
"""Ethernet header, which tc counts in a packet's length."""
MTU_BYTES = 1500
FULL_FRAME_BYTES = MTU_BYTES + FRAME_HEADER_BYTES
IP_TCP_HEADER_BYTES = 20 + 20
"""IPv4 and TCP without options."""
LONGER_IN_IPV6_BYTES = 20
"""What an IPv6 header is longer than one of IPv4."""
IP_UDP_HEADER_BYTES = 20 + 8
SYN_BYTES = FRAME_HEADER_BYTES + IP_TCP_HEADER_BYTES + 12
"""Linux' SYN without time stamps: options for the largest segment, SACK and the window's scale."""
BARE_ACK_BYTES = FRAME_HEADER_BYTES + IP_TCP_HEADER_BYTES
"""The shortest frame of a TCP connection."""
