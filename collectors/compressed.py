# SPDX-License-Identifier: Apache-2.0
"""Captures and samples that lie compressed in a run's raw folder: NAME.zst in the place of NAME, one frame of Zstandard.

Wireshark and tshark open such a capture as it is; `zstdcat FILE | tcpdump -r -`. One frame, because they stop after the first of several.
"""

from __future__ import annotations

import contextlib
import errno
import io
import mmap
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, cast

from base.files import folder_aside, replace_bytes
from base.small_files import require_plain
from collectors.errors import CollectError

SUFFIX = ".zst"
CAPTURES = ("*.pcap", f"*.pcap{SUFFIX}")
"""Patterns of a folder's captures."""
CODEC, LEVEL = "zstd", 3
"""A capture of 71 MB: level 1 leaves 20 MB in 0.25 s, 3 leaves 12.9 in 0.4, 4 leaves 11.6 in 0.6 (docs/records.md)."""
PIECE_BYTES = 1 << 20
SPARE_BYTES = 1 << 28
"""Stays free on the disk where something is decompressed."""


def compress(file: Path) -> Path:
    """Put a file's compressed form in its place; returns that. At no moment is there neither."""
    import pyarrow as pa

    with file.open("rb") as content:
        size = os.fstat(content.fileno()).st_size
        with mmap.mmap(content.fileno(), size, prot=mmap.PROT_READ) if size else contextlib.nullcontext(b"") as data:
            view = pa.py_buffer(data)
            compressed = pa.Codec(CODEC, compression_level=LEVEL).compress(view, asbytes=True)
            del view  # or the map cannot be closed
    target = file.with_name(file.name + SUFFIX)
    replace_bytes(target, compressed)
    file.unlink()
    return target


@contextlib.contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """The content of a file, whether it lies there compressed or not. Reading raises OSError where it cannot be decompressed."""
    import pyarrow as pa

    if file.suffix != SUFFIX:
        with file.open("rb") as content:
            yield content
        return
    with pa.OSFile(str(file)) as stored, pa.CompressedInputStream(stored, CODEC) as content:
        yield cast(BinaryIO, io.BufferedReader(content, PIECE_BYTES))


@contextlib.contextmanager
def plain(raw: Path, sizes: Mapping[str, int]) -> Iterator[Path]:
    """A raw folder without compressed files: the folder itself, or one beside it for as long as the body takes.

    sizes: bytes that each file's content has, by the file's own name; whoever sent a run may have made one that fills the disk
    Raises CollectError for a content of another size, and OSError where the disk has no room.
    """
    stored = sorted(raw.glob(f"*{SUFFIX}"))
    if not stored:
        yield raw
        return
    needed, free = sum(sizes.get(file.stem, 0) for file in stored), shutil.disk_usage(raw).free
    if needed + SPARE_BYTES > free:
        words = f"{needed / 1e6:.0f} MB decompressed, and {free / 1e6:.0f} MB are free"
        raise OSError(errno.ENOSPC, words, str(raw))
    with folder_aside(raw.parent, "decompressed") as fresh:
        for file in sorted(raw.iterdir()):
            if file.suffix == SUFFIX:
                _decompress(file, fresh / file.stem, sizes.get(file.stem, -1))
            else:
                require_plain(file)
                os.link(file, fresh / file.name)
        yield fresh


def _decompress(file: Path, target: Path, size: int) -> None:
    written = 0
    try:
        with opened(file) as content, target.open("xb") as out:
            while written <= size and (piece := content.read(PIECE_BYTES)):
                written += out.write(piece)
    except OSError as error:
        if error.errno is not None:  # of the disk; Arrow's have no number
            raise
        raise CollectError(f"{file}: cannot be decompressed: {error}") from error
    if written != size:
        told = f"more than {size}" if written > size else f"{written}"
        raise CollectError(f"{file}: {told} bytes of content, {max(size, 0)} according to run.json")
