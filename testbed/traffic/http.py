# SPDX-License-Identifier: Apache-2.0
"""Browsing and video over HTTP."""

from __future__ import annotations

from typing import Any

from base import quantities
from schema import distributions
from schema.traffic.kinds.http import Video, Web
from testbed.compile_context import MAX_ARRIVALS, Context


def web(entry: Web, c: Context) -> None:
    sizes, thinks = c.random("sizes"), c.random("thinks")
    html, objects = distributions.sizes(entry.html), distributions.sizes(entry.object_size)
    think = distributions.times(entry.think)
    pages: list[dict[str, Any]] = []
    earliest_s = c.window.start_s
    while (
        earliest_s < c.window.stop_s and len(pages) < MAX_ARRIVALS // 10
    ):  # as many as there can be, were loading free
        pause_s = think.draw(thinks)
        object_bytes = [max(1, round(objects.draw(sizes))) for _ in range(entry.objects)]
        pages.append({"html_bytes": max(1, round(html.draw(sizes))), "object_bytes": object_bytes, "think_s": pause_s})
        earliest_s += pause_s
    largest = max([page["html_bytes"] for page in pages] + [size for page in pages for size in page["object_bytes"]])
    c.add("server", entry.source, {"blob_bytes": largest})
    settings = {"to": entry.source, "connections": entry.connections, "pages": pages}
    c.add("client", entry.destination, {**settings, "start_s": c.window.start_s, "stop_s": c.window.stop_s})


def video(entry: Video, c: Context) -> None:
    ladder = [quantities.rate_bps(rate) for rate in entry.ladder]
    segment_s = quantities.seconds(entry.segment)
    c.add("server", entry.source, {"blob_bytes": max(1, round(ladder[-1] * segment_s / 8))})
    settings = {
        "to": entry.source, "ladder_bps": ladder, "segment_s": segment_s, "buffer_s": quantities.seconds(entry.buffer),
        "start_after": entry.start_after, "abr": entry.abr, "start_s": c.window.start_s, "stop_s": c.window.stop_s,
    }  # fmt: skip
    c.add("client", entry.destination, settings)


COMPILERS = {"web": web, "video": video}
