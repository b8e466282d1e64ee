# SPDX-License-Identifier: Apache-2.0
"""A player of adaptive video: segments of one length and several rates from an HTTP server, one connection.

Rules for the rate of the next segment:
- rate: the highest that a share of the recent throughput covers; throughput is the harmonic mean of the last segments
  (Jiang, Sekar, Zhang 2012, FESTIVE s4.3)
- buffer: a line from the lowest rate at a small buffer to the highest at a nearly full one (Huang et al. 2014, BBA-0)
"""

from __future__ import annotations

import itertools
from typing import Any

from agent.traffic import nginx
from agent.traffic.control import Control
from agent.traffic.http import HttpConnection
from agent.traffic.loop import Loop
from plan.model import TrafficPlan

RECENT_SEGMENTS = 5
SAFE_SHARE = 0.85
RESERVOIR_SHARE, CUSHION_SHARE = 0.2, 0.9


def rate_rule(ladder_bps: list[int], recent_bps: list[float]) -> int:
    """Index of the rate for the next segment."""
    if not recent_bps:
        return 0
    usable = SAFE_SHARE * len(recent_bps) / sum(1 / rate for rate in recent_bps)
    return max((i for i, rate in enumerate(ladder_bps) if rate <= usable), default=0)


def buffer_rule(ladder_bps: list[int], buffered_s: float, capacity_s: float) -> int:
    """Index of the rate for the next segment."""
    low_s, high_s = RESERVOIR_SHARE * capacity_s, CUSHION_SHARE * capacity_s
    share = min(1.0, max(0.0, (buffered_s - low_s) / (high_s - low_s)))
    line_bps = ladder_bps[0] + share * (ladder_bps[-1] - ladder_bps[0])
    return max(i for i, rate in enumerate(ladder_bps) if rate <= line_bps)


class Playback:
    """What the viewer sees: seconds in the buffer, and when playing stopped for want of them."""

    def __init__(self, start_s: float) -> None:
        self._start_s = self._here_s = start_s
        self.buffered_s = self.played_s = self.stalled_s = 0.0
        self.startup_s: float | None = None
        self.stalls = 0
        self.playing = False

    def advance(self, now_s: float) -> None:
        """Play until now; where the buffer runs dry before, stall."""
        passed = now_s - self._here_s
        self._here_s = now_s
        if self.playing:
            shown = min(passed, self.buffered_s)
            self.buffered_s -= shown
            self.played_s += shown
            if passed > shown:
                self.playing = False
                self.stalls += 1
                self.stalled_s += passed - shown
        elif self.startup_s is not None:
            self.stalled_s += passed

    def add(self, segment_s: float, count: int, start_after: int) -> None:
        """A segment has come; playing starts with the first few, and again after a stall."""
        self.buffered_s += segment_s
        if not self.playing and count >= start_after:
            if self.startup_s is None:
                self.startup_s = self._here_s - self._start_s
            self.playing = True


class Player:
    """Loads segments as long as they fit into the buffer."""

    def __init__(self, plan: TrafficPlan, address: tuple[str, int], loop: Loop) -> None:
        self._settings, self._address, self._loop = plan.settings, address, loop
        self._connection: HttpConnection | None = None
        self._asked_s = 0.0
        self._choice = 0
        self._recent: list[float] = []
        self.playback = Playback(plan.settings["start_s"])
        self.segments: list[dict[str, float]] = []
        self.errors: list[str] = []

    def load(self) -> None:
        """Ask for the next segment, or wait until there is room for it."""
        settings, now_s = self._settings, self._loop.now_s()
        self.playback.advance(now_s)
        over_s = self.playback.buffered_s + settings["segment_s"] - settings["buffer_s"]
        if over_s > 1e-9:
            self._loop.at(now_s + over_s, self.load)
            return
        if settings["abr"] == "rate":
            self._choice = rate_rule(settings["ladder_bps"], self._recent)
        else:
            self._choice = buffer_rule(settings["ladder_bps"], self.playback.buffered_s, settings["buffer_s"])
        self._asked_s = now_s
        if self._connection is None:
            self._connection = HttpConnection(self._loop, self._address, self._broken)
        size = max(1, round(settings["ladder_bps"][self._choice] * settings["segment_s"] / 8))
        self._connection.get(size, self._loaded)

    def _loaded(self, size: int) -> None:
        now_s, settings = self._loop.now_s(), self._settings
        self.playback.advance(now_s)
        self._recent = [*self._recent, size * 8 / (now_s - self._asked_s)][-RECENT_SEGMENTS:]
        rate_bps = settings["ladder_bps"][self._choice]
        self.segments.append({"asked_s": self._asked_s, "load_s": now_s - self._asked_s, "rate_bps": rate_bps})
        self.playback.add(settings["segment_s"], len(self.segments), settings["start_after"])
        self.segments[-1]["buffered_s"] = self.playback.buffered_s
        self.load()

    def _broken(self, reason: str) -> None:
        self.errors.append(reason)
        self._connection = None
        self._loop.at(self._loop.now_s() + 1.0, self.load)


def play(plan: TrafficPlan, addresses: dict[str, str], control: Control) -> dict[str, Any]:
    """The client of a video entry."""
    settings, loop = plan.settings, Loop(control)
    player = Player(plan, (addresses[settings["to"]], plan.port), loop)
    control.ready()
    if not control.wait_start():
        return {"segments": []}
    loop.at(settings["start_s"], player.load)
    loop.at(settings["stop_s"], loop.stop)
    loop.run()
    shown = player.playback
    shown.advance(settings["stop_s"])
    rates = [segment["rate_bps"] for segment in player.segments]
    watched_s = shown.played_s + shown.stalled_s
    return {
        "segments": player.segments, "segments_loaded": len(rates), "startup_delay_s": shown.startup_s,
        "rebuffer_count": shown.stalls, "rebuffer_s": shown.stalled_s, "played_s": shown.played_s,
        "rebuffer_ratio": shown.stalled_s / watched_s if watched_s else None,
        "mean_bitrate_mbps": sum(rates) / len(rates) / 1e6 if rates else None,
        "bitrate_switches": sum(a != b for a, b in itertools.pairwise(rates)), "errors": player.errors[:10],
    }  # fmt: skip


PROGRAMS = {("video", "client"): play, ("video", "server"): nginx.serve}
