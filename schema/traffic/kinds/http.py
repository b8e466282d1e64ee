# SPDX-License-Identifier: Apache-2.0
"""Browsing and video over HTTP."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from base import quantities
from schema.base import Rate, Time
from schema.traffic.entry import Sizes, TcpEntry, Times

MAX_OBJECTS = 1000


class Web(TcpEntry):
    """A browser that loads pages from nginx: an HTML file, then its objects over several connections, then a pause."""

    data_comes_from_the_server: ClassVar[bool] = True
    kind: Literal["web"]
    background: Literal[True] = True
    html: Sizes = "30KB"
    objects: Annotated[int, Field(ge=0, le=MAX_OBJECTS)] = 20
    object_size: Sizes = "pareto(25KB, 1.3)"
    connections: Annotated[int, Field(ge=1, le=64)] = 6
    think: Times = "exponential(2s)"


class Video(TcpEntry):
    """A player of adaptive video (DASH-like) from nginx: segments of several rates, a buffer, a rule for the rate."""

    data_comes_from_the_server: ClassVar[bool] = True
    kind: Literal["video"]
    background: Literal[True] = True
    ladder: Annotated[list[Rate], Field(min_length=1, max_length=50)] = [
        "400kbit",
        "800kbit",
        "1500kbit",
        "3mbit",
        "6mbit",
    ]
    segment: Time = "2s"
    buffer: Time = "30s"
    start_after: Annotated[int, Field(ge=1, le=100)] = 2
    abr: Literal["rate", "buffer"] = "rate"

    @model_validator(mode="after")
    def _playable(self) -> Video:
        rates = [quantities.rate_bps(rate) for rate in self.ladder]
        if sorted(set(rates)) != rates:
            raise ValueError("the rates of `ladder` must rise")
        segment, buffer = quantities.delay_ns(self.segment), quantities.delay_ns(self.buffer)
        if segment <= 0 or buffer < segment * (self.start_after + 1):
            raise ValueError(
                f"a buffer of {self.buffer} does not hold {self.start_after + 1} segments of {self.segment}"
                " (`start_after` and the one that is loaded)"
            )
        return self
