# SPDX-License-Identifier: Apache-2.0
"""Read pages of the kernel's trace ring: layout as in include/linux/ring_buffer.h, fields as the event's format says."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence

PAGE_BYTES = 4096
PAGE_HEADER = 16
COMMIT_MASK = 0xFFFFFFF
PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31
_FIELD = re.compile(r"field:\s*\S.*?(\w+);\s*offset:(\d+);\s*size:(\d+);\s*signed:(\d);")
_CODES = {(1, 0): "B", (2, 0): "H", (4, 0): "I", (8, 0): "Q", (1, 1): "b", (2, 1): "h", (4, 1): "i", (8, 1): "q"}


def events(pages: bytes, layout: str, names: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """The named fields of every event in whole pages."""
    starts = {
        name: (int(offset), _CODES[int(size), int(signed)])
        for name, offset, size, signed in _FIELD.findall(layout)
        if (int(size), int(signed)) in _CODES
    }
    order = sorted(names, key=lambda name: starts[name])
    # one structure over all fields in the order of their offsets, with what lies between skipped
    code, at = "<", 0
    for name in order:
        offset, letter = starts[name]
        code += f"{offset - at}x{letter}"
        at = offset + struct.calcsize(letter)
    unpack = struct.Struct(code).unpack_from
    place = [order.index(name) for name in names]
    for start in range(0, len(pages), PAGE_BYTES):
        for begin in _starts(pages[start : start + PAGE_BYTES]):
            values = unpack(pages, start + begin)
            yield tuple([values[i] for i in place])


def _starts(page: bytes) -> Iterator[int]:
    words = struct.unpack(f"<{len(page) // 4}I", page)
    at, end = PAGE_HEADER // 4, (PAGE_HEADER + (words[2] & COMMIT_MASK)) // 4
    while at < end:
        kind, delta = words[at] & 31, words[at] >> 5
        if kind == PADDING:
            if not delta:
                return
            at += 1 + words[at + 1] // 4
        elif kind in (TIME_EXTEND, TIME_STAMP):
            at += 2
        else:
            length, first = (words[at + 1] // 4, at + 2) if kind == 0 else (kind, at + 1)
            yield first * 4
            at += 1 + length
