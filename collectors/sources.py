# SPDX-License-Identifier: Apache-2.0
"""The records that quantities of a flow come from, from the best to the last (docs/records.md)."""

from __future__ import annotations

AT_RECEIVER, AT_SENDER = "capture at the receiver", "capture at the sender"
PROBE, SAMPLES, PROGRAM = "tcp_probe", "tcp_info", "application"
