# SPDX-License-Identifier: Apache-2.0
"""TCP time series from packet captures: `analyze` writes the records, `docs/pcap.md` describes them."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from collectors import native

if TYPE_CHECKING:
    from collectors.pcap._warpbed_pcap import FlowDict

__all__ = ["CaptureError", "Clock", "Failure", "Flow", "PathSummary", "Summary", "analyze", "compare", "generate"]

StrPath = str | os.PathLike[str]


class CaptureError(ValueError):
    """A capture that cannot be read, or a table that cannot be written; the message has offset, layer and reason."""


@functools.cache
def _let_be_found() -> None:
    """Let the compiled module be found; it is outside the checkout, and built when it is missing."""
    __path__.append(str(native.folder()))


@contextmanager
def _compiled() -> Iterator[None]:
    """The compiled module can be imported inside; its errors are this package's."""
    _let_be_found()
    from collectors.pcap import _warpbed_pcap

    try:
        yield
    except _warpbed_pcap.CaptureError as error:
        raise CaptureError(str(error)) from error


def make_ready() -> None:
    """Build and import the compiled module now, as the first use does. Raises WarpbedError where it cannot be built."""
    with _compiled():
        pass


@dataclass(frozen=True)
class Flow:
    """A flow of the experiment file, to be found in the captures; what is None matches anything.

    `src` sends the data, whoever opened the connection. The first connection that matches is called `name`, the next
    ones `name.2`, `name.3` and so on, after passing over `skip` of them (iperf3's control connection is one).
    Only a flow with `size_bytes` has a completion time.
    """

    name: str
    cca: str | None = None
    src: str | None = None
    dst: str | None = None
    src_addr: str | None = None
    src_port: int | None = None
    dst_addr: str | None = None
    dst_port: int | None = None
    size_bytes: int | None = None
    skip: int = 0


@dataclass(frozen=True)
class Clock:
    """A capture's clock against another: `time` on it is `time - offset_ns - drift_ppm (time - reference_ns) / 1e6` there."""

    reference_ns: int = 0
    offset_ns: int = 0
    drift_ppm: float = 0.0


@dataclass(frozen=True)
class Failure:
    """Where and why a capture, or a packet of it, stopped making sense.

    `offset` counts bytes of the decompressed capture, `needed` and `seen` are bytes or a limit and a value.
    """

    path: str | None
    message: str
    offset: int
    layer: str
    needed: int | None
    seen: int | None


@dataclass(frozen=True)
class Summary:
    """What was read. A capture in `errors` was used up to its error; the run that it belongs to is to be marked."""

    packets: int
    tcp_packets: int
    other_packets: int
    fragments: int
    bad_packets: int
    first_bad: Failure | None
    flows: int
    evicted_flows: int
    forgotten_segments: int
    first_ns: int | None
    last_ns: int | None
    bytes_read: int
    seconds: float
    errors: tuple[Failure, ...]

    @property
    def packets_per_s(self) -> float:
        return self.packets / self.seconds if self.seconds > 0 else 0.0


THE_SAME = Clock()


def _plain(clock: Clock) -> tuple[int, int, float]:
    return clock.reference_ns, clock.offset_ns, clock.drift_ppm * 1e3


def _wanted(flow: Flow) -> FlowDict:
    return {
        "name": flow.name,
        "cca": flow.cca,
        "src": flow.src,
        "dst": flow.dst,
        "src_addr": flow.src_addr,
        "src_port": flow.src_port,
        "dst_addr": flow.dst_addr,
        "dst_port": flow.dst_port,
        "size_bytes": flow.size_bytes,
        "skip": flow.skip,
    }


def analyze(
    paths: StrPath | Sequence[StrPath],
    out: StrPath | None = None,
    *,
    interval_s: float = 0.1,
    start_ns: int | None = None,
    threads: int | None = None,
    max_flows: int = 16384,
    flows: Iterable[Flow] = (),
    live: bool = False,
    clock: Clock = THE_SAME,
) -> Summary:
    """Write acks, intervals, flows and directions of captures to Parquet files in the folder `out`.

    Several captures go into the same files, each analysed by itself (column `capture` of flows and directions).
    "-" is the standard input. `start_ns` is second 0 of the run, by default the first packet; `live` takes what a pipe
    has instead of waiting for full buffers. `threads` is by default one or two, as there are CPUs. `out=None` only
    counts. Raises CaptureError when a file is no capture or the folder cannot be written; a capture that breaks
    off later is used up to there and listed in `Summary.errors`. `clock` is theirs against the run's.
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not interval_s > 0:
        raise ValueError(f"interval_s is {interval_s}, must be above 0")
    with _compiled():
        from collectors.pcap import _warpbed_pcap

        raw = _warpbed_pcap.analyze(
            [Path(path) for path in several],
            out=None if out is None else Path(out),
            interval_ns=max(1, round(interval_s * 1e9)),
            start_ns=start_ns,
            threads=threads or min(2, len(os.sched_getaffinity(0))),
            max_flows=max_flows,
            flows=[_wanted(flow) for flow in flows],
            live=live,
            clock=_plain(clock),
        )
    first_bad = raw["first_bad"]
    return Summary(
        packets=raw["packets"],
        tcp_packets=raw["tcp_packets"],
        other_packets=raw["other_packets"],
        fragments=raw["fragments"],
        bad_packets=raw["bad_packets"],
        first_bad=None if first_bad is None else Failure(**first_bad),
        flows=raw["flows"],
        evicted_flows=raw["evicted_flows"],
        forgotten_segments=raw["forgotten_segments"],
        first_ns=raw["first_ns"],
        last_ns=raw["last_ns"],
        bytes_read=raw["bytes_read"],
        seconds=raw["seconds"],
        errors=tuple(Failure(**error) for error in raw["errors"]),
    )


@dataclass(frozen=True)
class PathSummary:
    """What two captures of a path have in common."""

    packets_a: int
    packets_b: int
    delivered: int
    lost: int
    errors: tuple[Failure, ...]


def compare(
    a: StrPath,
    b: StrPath,
    out: StrPath | None = None,
    *,
    start_ns: int | None = None,
    max_delay_s: float = 10.0,
    clock: Clock = THE_SAME,
    forward_from_a: bool | None = None,
    max_flows: int = 16384,
    flows: Iterable[Flow] = (),
) -> PathSummary:
    """Write loss, one-way delay and queue delay of each packet between two captures to `out`.

    Writes `path.parquet` and `path_flows.parquet`. Both captures are files (they are read twice). A packet not found at
    the other point within `max_delay_s` is lost. `clock` is that of `b` against `a`'s. `forward_from_a` says whether the
    data of `flows`, and the initiators' packets of others, pass `a` first, so that it is not told from the times; delays are
    negative then where clocks say so.
    """
    with _compiled():
        from collectors.pcap import _warpbed_pcap

        raw = _warpbed_pcap.compare(
            Path(a),
            Path(b),
            out=None if out is None else Path(out),
            start_ns=start_ns,
            max_flows=max_flows,
            flows=[_wanted(flow) for flow in flows],
            max_delay_ns=round(max_delay_s * 1e9),
            clock=_plain(clock),
            forward_from_a=forward_from_a,
        )
    return PathSummary(
        packets_a=raw["packets_a"],
        packets_b=raw["packets_b"],
        delivered=raw["delivered"],
        lost=raw["lost"],
        errors=tuple(Failure(**error) for error in raw["errors"]),
    )


def generate(
    path: StrPath,
    *,
    flows: int = 1,
    packets: int = 1_200_000,
    seed: int = 1,
    snap: int = 96,
    rate_bps: int = 1_000_000_000,
    rtt_ns: int = 40_000_000,
    queue_bytes: int = 2_500_000,
    loss_ppm: int = 20,
    flow_bytes: int = 0,
    mss: int = 1448,
    ack_every: int = 2,
) -> None:
    """Write a capture of simulated TCP (Reno with SACK over one bottleneck), for benchmarks and tests.

    The same arguments give the same bytes. `snap=0` captures whole packets, `flow_bytes=0` is a flow without end.
    """
    with _compiled():
        from collectors.pcap import _warpbed_pcap

        _warpbed_pcap.generate(
            Path(path),
            flows=flows,
            packets=packets,
            seed=seed,
            snap=snap,
            rate_bps=rate_bps,
            rtt_ns=rtt_ns,
            queue_bytes=queue_bytes,
            loss_ppm=loss_ppm,
            flow_bytes=flow_bytes,
            mss=mss,
            ack_every=ack_every,
        )
