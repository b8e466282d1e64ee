# SPDX-License-Identifier: Apache-2.0
"""Rate traces in Mahimahi's format: read them, and make synthetic ones.

A trace is a text file with one whole number per line, ascending: the millisecond at which one packet of 1504 bytes can
be delivered. The last number is also the trace's length, after which it starts over.

    ./warpbed exec python -m network.traces --mean 12mbit --deviation 30% --length 60s --seed 1 > cellular.trace
"""

from __future__ import annotations

import argparse
import contextlib
import contextvars
import math
import random
from collections.abc import Iterator
from pathlib import Path

from base.paths import inside
from base.quantities import delay_ns, rate_bps, ratio
from network.impairments import CHANCE_BYTES, RateTrace

MOST_BYTES = 32 << 20
LONGEST_GAP_MS = 60_000
"""A path that is silent for longer is broken rather than slow: TCP gives up."""

_folder: contextvars.ContextVar[Path | None] = contextvars.ContextVar("trace_folder", default=None)


@contextlib.contextmanager
def beside(folder: Path) -> Iterator[None]:
    """Within the body, names of traces are relative to a folder, that of the experiment file, and stay inside it."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def load(name: str) -> RateTrace:
    """The trace of a file.

    Raises ValueError that names the file and the line.
    """
    if not name:
        raise ValueError("trace needs the name of a file, relative to the experiment file")
    path = place(_folder.get(), name)
    try:
        if not path.is_file():
            raise ValueError(f"{path}: no such trace; names are relative to the experiment file")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise ValueError(f"{path}: more than {MOST_BYTES} bytes, which a trace has at most")
    lines = content.split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return from_times(name, _times(path, lines), str(path))


def place(folder: Path | None, name: str) -> Path:
    """The path of a trace, inside of its experiment file's folder.

    folder: None where a user names the trace on a command line

    Raises ValueError for a name that leads out of the folder, by itself or over a symbolic link.
    """
    if folder is not None:
        return inside(folder, name, "the trace")
    if "\0" in name:
        raise ValueError(f"{name!r} is not a file's name")
    return Path(name)


def _times(path: Path, lines: list[bytes]) -> list[int]:
    times: list[int] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text.isdigit() or len(text) > 10:
            shown = text[:40].decode(errors="replace")
            raise ValueError(f"{path}:{number}: {shown!r} is not a whole number of milliseconds")
        times.append(int(text))
        if len(times) > 1 and times[-1] < times[-2]:
            raise ValueError(f"{path}:{number}: {times[-1]} after {times[-2]}; times must not fall")
        gap = times[-1] - (times[-2] if len(times) > 1 else 0)
        if gap > LONGEST_GAP_MS:
            raise ValueError(
                f"{path}:{number}: a gap of {gap} ms; at most {LONGEST_GAP_MS} ms may pass between two packets; "
                "cut the gap out or add a packet to it"
            )
    return times


def from_times(name: str, times_ms: list[int], where: str) -> RateTrace:
    """Opportunities by their milliseconds; those at the very end are the next round's first."""
    if not times_ms or times_ms[-1] == 0:
        raise ValueError(f"{where}: a trace needs at least one time above 0")
    repeat = times_ms[-1]
    counts: dict[int, int] = {}
    for ms in times_ms:
        counts[ms % repeat] = counts.get(ms % repeat, 0) + 1
    ordered = sorted(counts)
    return RateTrace(name, tuple(ordered), tuple(counts[ms] for ms in ordered), repeat)


def synthetic_times(mean_bps: int, deviation: float, every_ns: int, length_ns: int, seed: int) -> list[int]:
    """Milliseconds of the opportunities of a link whose rate wanders.

    The logarithm of the rate is a stationary autoregressive process (coefficient 0.9 per `every_ns`); `deviation` is the
    rate's standard deviation over its mean. Opportunities come evenly while the rate stands.
    """
    every_ms, length_ms = every_ns // 10**6, length_ns // 10**6
    if not 1 <= every_ms <= length_ms:
        raise ValueError("every must be at least 1ms and at most length")
    if not 0 <= deviation <= 1:
        raise ValueError("deviation is at most 100%")
    if mean_bps * length_ms / 8000 / CHANCE_BYTES > MOST_BYTES / 8:
        raise ValueError(f"{mean_bps} bit/s for {length_ms / 1000:g} s are too many packets for a trace; shorten it")
    draw = random.Random(seed)  # noqa: S311 — no secret: the same seed must give the same trace
    spread = math.sqrt(math.log1p(deviation**2))
    keep = 0.9
    level, credit = draw.gauss(0, 1), 0.0
    times: list[int] = []
    for ms in range(1, length_ms + 1):
        if (ms - 1) % every_ms == 0 and ms > 1:
            level = keep * level + math.sqrt(1 - keep**2) * draw.gauss(0, 1)
        credit += mean_bps * math.exp(spread * level - spread**2 / 2) / 8000 / CHANCE_BYTES
        whole = int(credit)
        credit -= whole
        times += [ms] * whole
    if not times or times[-1] != length_ms:
        times.append(length_ms)
    return times


def synthetic(mean_bps: int, deviation: float, every_ns: int, length_ns: int, seed: int) -> RateTrace:
    """A synthetic trace without a file."""
    return from_times(
        f"synthetic seed {seed}", synthetic_times(mean_bps, deviation, every_ns, length_ns, seed), "synthetic"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Print a synthetic rate trace in Mahimahi's format.")
    parser.add_argument("--mean", default="12mbit")
    parser.add_argument("--deviation", default="30%")
    parser.add_argument("--every", default="100ms", help="how often the rate changes; default %(default)s")
    parser.add_argument("--length", default="60s")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        times = synthetic_times(
            rate_bps(options.mean),
            ratio(options.deviation),
            delay_ns(options.every),
            delay_ns(options.length),
            options.seed,
        )
    except ValueError as error:
        parser.error(str(error))
    print("\n".join(map(str, times)))


if __name__ == "__main__":
    main()
