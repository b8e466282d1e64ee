# SPDX-License-Identifier: Apache-2.0
"""The native part of `collectors.pcap`; use that package, which documents the arguments and types the results."""

from collections.abc import Sequence
from os import PathLike
from typing import TypedDict

class CaptureError(ValueError):
    """A capture that cannot be read, or a table that cannot be written; the message has offset, layer and reason."""

class ErrorDict(TypedDict):
    path: str | None
    message: str
    offset: int
    layer: str
    needed: int | None
    seen: int | None

class FlowDict(TypedDict):
    name: str
    cca: str | None
    src: str | None
    dst: str | None
    src_addr: str | None
    src_port: int | None
    dst_addr: str | None
    dst_port: int | None
    size_bytes: int | None
    skip: int

class SummaryDict(TypedDict):
    packets: int
    tcp_packets: int
    other_packets: int
    fragments: int
    bad_packets: int
    first_bad: ErrorDict | None
    flows: int
    evicted_flows: int
    forgotten_segments: int
    first_ns: int | None
    last_ns: int | None
    bytes_read: int
    seconds: float
    errors: list[ErrorDict]

def analyze(
    paths: Sequence[str | PathLike[str]],
    *,
    out: str | PathLike[str] | None,
    interval_ns: int,
    start_ns: int | None,
    threads: int,
    max_flows: int,
    flows: Sequence[FlowDict],
    live: bool,
    clock: tuple[int, int, float],
) -> SummaryDict:
    """Captures to Parquet tables in `out`. Runs without the GIL."""

class PathDict(TypedDict):
    packets_a: int
    packets_b: int
    delivered: int
    lost: int
    errors: list[ErrorDict]

def compare(
    a: str | PathLike[str],
    b: str | PathLike[str],
    *,
    out: str | PathLike[str] | None,
    start_ns: int | None,
    max_flows: int,
    flows: Sequence[FlowDict],
    max_delay_ns: int,
    clock: tuple[int, int, float],
    forward_from_a: bool | None,
) -> PathDict:
    """Two captures of a path to per-packet delay and loss in `out`. Runs without the GIL."""

def generate(
    path: str | PathLike[str],
    *,
    flows: int,
    packets: int,
    seed: int,
    snap: int,
    rate_bps: int,
    rtt_ns: int,
    queue_bytes: int,
    loss_ppm: int,
    flow_bytes: int,
    mss: int,
    ack_every: int,
) -> None:
    """A capture of simulated TCP, the same bytes for the same arguments. Runs without the GIL."""
