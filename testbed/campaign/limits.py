# SPDX-License-Identifier: Apache-2.0
"""How much a campaign may send, and how fast, and what it has sent: every attempt counts in full, even a failed one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from base import quantities
from testbed.campaign.model import Campaign

DAY_S = 86400.0
ROUNDING_S = 0.001
"""Later than a day after a transfer, so that no rounding of the sum makes it a moment less than a day."""
VOLUME, VOLUME_PER_DAY = "1000GB", "100GB"
"""Of a campaign between real hosts whose file says nothing: what it may load others' networks with, so that no slip in
`every` or `pause` goes on for weeks."""
RATE_AT_MOST = "1gbit"
"""As above, for the payload of any second: what the ordinary network card of one host can send. A transfer beyond it is ended and
not slowed, for pacing changes how every algorithm sends, and what was measured would be another one."""


def volume(campaign: Campaign) -> str:
    """Payload of all attempts together, as the file or its silence has it."""
    return campaign.limits.volume or VOLUME


def volume_per_day(campaign: Campaign) -> str:
    """The same of any 24 hours."""
    return campaign.limits.volume_per_day or VOLUME_PER_DAY


def rate_at_most_bps(campaign: Campaign) -> int:
    """Payload that a sender may send in a second, repeated included, before the transfer is ended; in bit/s.

    A file that paces its transfers faster than the default has asked for that rate: a quarter above it is no slip.
    """
    if campaign.limits.rate_at_most is not None:
        return quantities.rate_bps(campaign.limits.rate_at_most)
    paced = 0 if campaign.limits.rate is None else quantities.rate_bps(campaign.limits.rate)
    return max(quantities.rate_bps(RATE_AT_MOST), paced * 5 // 4)


def _sent(events: Sequence[dict[str, Any]]) -> list[tuple[float, int]]:
    return [(float(e["time"]), int(e.get("bytes", 0))) for e in events if e["event"] == "started"]


def exceeds_total(campaign: Campaign, events: Sequence[dict[str, Any]], size: int) -> bool:
    """Whether another `size` bytes would be more than limits.volume."""
    return sum(count for _, count in _sent(events)) + size > quantities.size_bytes(volume(campaign))


def day_left_s(campaign: Campaign, events: Sequence[dict[str, Any]], size: int, now_s: float) -> float:
    """Seconds until another `size` bytes fit into any 24 hours of limits.volume_per_day; 0 where they do now.

    A transfer that is larger than the limit by itself never fits.
    """
    limit = quantities.size_bytes(volume_per_day(campaign))
    sent = [(min(time_s, now_s), count) for time_s, count in _sent(events)]  # the clock may have been set back
    recent = sorted((time_s, count) for time_s, count in sent if now_s - time_s < DAY_S)
    total = sum(count for _, count in recent)
    for time_s, count in recent:
        if total + size <= limit:
            break
        total -= count
        if total + size <= limit or total == 0:
            return max(0.0, time_s + DAY_S - now_s) + ROUNDING_S
    return 0.0
