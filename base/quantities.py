# SPDX-License-Identifier: Apache-2.0
"""Quantities with units, as experiment files write them: 50mbit, 48ms, 250p, 64KB, 2%.

Every function takes the text and returns a number in the unit of its name; a bad text raises ValueError that says
what was seen and what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import TypeVar

from base.errors import ParameterError

T = TypeVar("T")

RATE_UNITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
TIME_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
BYTE_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

MOST_BPS = 10**13
LONGEST_NS = 366 * 24 * 3600 * 10**9
MOST_BYTES = 10**15
MOST_BUFFER = {"packets": 10**9, "bytes": 4 * 10**9}
"""Far beyond what any network, run or disk has: more is a slip of the keyboard. The kernel counts a queue in 32 bits."""

# 20 digits are more than any quantity here needs, and few enough for exact arithmetic
_QUANTITY = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([A-Za-z%]+)")


def parameter(parameters: object, name: str, parse: Callable[[str], T]) -> T:
    """A quantity that is one of several parameters; a bad one raises ParameterError with its name."""
    try:
        return parse(getattr(parameters, name))
    except ValueError as error:
        raise ParameterError.at(name, error) from error


def _parse(text: object, units: dict[str, int], what: str) -> Decimal:
    match = _QUANTITY.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None or match[2] not in units:
        examples = ", ".join(f"10{unit}" for unit in units)
        raise ValueError(f"{text!r} is not {what}; write a number with a unit: {examples}")
    return Decimal(match[1]) * units[match[2]]


def _whole(value: Decimal, text: object, smallest: str) -> int:
    if value != value.to_integral_value():
        raise ValueError(f"{text!r} is not a whole number of {smallest}")
    return int(value)


def _at_most(value: int, most: int, text: object, what: str, allowed: str) -> int:
    if value > most:
        raise ValueError(f"{text!r}: {what} is at most {allowed}")
    return value


def rate_bps(text: str) -> int:
    """Bits per second, at least 1."""
    value = _whole(_parse(text, RATE_UNITS, "a rate"), text, "bit/s")
    if value < 1:
        raise ValueError(f"{text!r}: a rate must be above 0; leave it out or write none for no limit")
    return _at_most(value, MOST_BPS, text, "a rate", f"{MOST_BPS // 10**9}gbit")


def delay_ns(text: str) -> int:
    """Nanoseconds, zero or more."""
    value = _whole(_parse(text, TIME_UNITS_NS, "a time"), text, "nanoseconds")
    return _at_most(value, LONGEST_NS, text, "a time", f"{LONGEST_NS // TIME_UNITS_NS['h']}h, a year")


def seconds(text: str) -> float:
    return delay_ns(text) / 1e9


def size_bytes(text: str) -> int:
    value = _whole(_parse(text, BYTE_UNITS, "a size"), text, "bytes")
    return _at_most(value, MOST_BYTES, text, "a size", f"{MOST_BYTES // 10**9}GB")


def buffer_size(text: str) -> tuple[int, str]:
    """A drop-tail buffer: (size, "packets" or "bytes"), at least 1."""
    value = _whole(_parse(text, {"p": 1, **BYTE_UNITS}, "a buffer"), text, "packets or bytes")
    if value < 1:
        raise ValueError(f"{text!r}: a buffer must hold something")
    unit = "packets" if text.strip().endswith("p") else "bytes"
    most = f"{MOST_BUFFER['packets']}p, or {MOST_BUFFER['bytes'] // 10**9}GB"
    return _at_most(value, MOST_BUFFER[unit], text, "a buffer", most), unit


def ratio(text: str) -> float:
    """A share between 0 and 1, written in percent."""
    value = _parse(text, {"%": 1}, "a share")
    if value > 100:
        raise ValueError(f"{text!r}: a share is at most 100%")
    return float(value / 100)


def format_rate(bps: float) -> str:
    """The shortest text with a unit: 50000000 → 50 Mbit/s."""
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bps >= size:
            return f"{bps / size:g} {unit}"
    return f"{bps:g} bit/s"


def format_time(ns: float) -> str:
    """The shortest text with a unit: 48000000 → 48 ms."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:g} {unit}"
    return f"{ns:g} ns"
