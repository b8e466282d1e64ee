# SPDX-License-Identifier: Apache-2.0
"""What a machine sends as its files lands in one folder, as plain files, and takes bounded memory, room and time."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from hosts import archive
from hosts.archive import Limits, TooLargeError, unpack
from tests.unit.test_remote import archive as packed

HEADER = 512


class Endless:
    """A stream of which no more is there than was asked for."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks, self._rest, self.taken = iter(chunks), b"", 0

    def read(self, size: int = -1, /) -> bytes:
        while len(self._rest) < size and (chunk := next(self._chunks, b"")):
            self._rest += chunk
        given, self._rest = self._rest[:size], self._rest[size:]
        self.taken += len(given)
        return given


def again(chunk: bytes) -> Iterator[bytes]:
    while True:
        yield chunk


def described(kind: bytes, size: int) -> bytes:
    """The header of an entry that says something of the next one."""
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = kind, size
    return entry.tobuf(tarfile.USTAR_FORMAT)


def test_only_plain_files_with_plain_names_land_and_only_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    refused: list[str] = []
    folder.mkdir()
    hostile = ["../escape", "/escape", "sub/escape", "..", "."]
    files = packed(
        *((name, tarfile.REGTYPE, b"x" * 2000) for name in hostile),
        ("link", tarfile.SYMTYPE, b""),
        ("hard", tarfile.LNKTYPE, b""),
        ("dir", tarfile.DIRTYPE, b""),
        ("fifo", tarfile.FIFOTYPE, b""),
        ("./a.pcap", tarfile.REGTYPE, b"packets"),
    )
    unpack(io.BytesIO(files), folder, refused.append)
    assert sorted(refused) == sorted([*hostile, "link", "hard", "dir", "fifo"])
    assert [path.name for path in tmp_path.rglob("*")] == ["inner", "a.pcap"]
    assert (folder / "a.pcap").read_bytes() == b"packets"


@pytest.mark.parametrize("is_compressed", [False, True])
def test_more_bytes_than_a_machine_may_send_are_refused_packed_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_compressed: bool
) -> None:
    monkeypatch.setattr(archive, "LARGEST_FETCH_BYTES", 3 << 20)
    files = packed(*((name, tarfile.REGTYPE, bytes(2 << 20)) for name in ("first", "second")))
    stream = io.BytesIO(gzip.compress(files) if is_compressed else files)
    with pytest.raises(TooLargeError, match="more than 3 MiB"):
        unpack(stream, tmp_path, lambda name: None, is_compressed=is_compressed)
    assert (tmp_path / "first").stat().st_size == 2 << 20


def test_endless_empty_files_end_at_a_number_of_files_and_take_no_memory(tmp_path: Path) -> None:
    stream = Endless(again(tarfile.TarInfo("a").tobuf() * 20))
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError, match="more than 5000 files"):
            unpack(stream, tmp_path, lambda name: None, Limits(files=5000))
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()
    assert stream.taken < 5020 * HEADER + 20_000


def test_endless_gzip_members_with_nothing_in_them_end_at_the_bytes_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LARGEST_FETCH_BYTES", 1 << 20)
    with pytest.raises(TooLargeError, match="more than 1 MiB"):
        unpack(Endless(again(gzip.compress(b"") * 100)), tmp_path, lambda name: None, is_compressed=True)


def test_a_file_larger_than_its_kind_is_refused_before_it_is_there(tmp_path: Path) -> None:
    files = packed(("a.pcap", tarfile.REGTYPE, bytes(3000)), ("console.log", tarfile.REGTYPE, bytes(2001)))
    with pytest.raises(TooLargeError, match=r"'console.log' has 2001 bytes, such a file at most 2000"):
        unpack(io.BytesIO(files), tmp_path, lambda name: None, Limits(largest={".log": 2000}))
    assert [path.name for path in tmp_path.iterdir()] == ["a.pcap"]


SPARSE = described(tarfile.GNUTYPE_SPARSE, 0)
PAX_SPARSE = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"


@pytest.mark.parametrize(
    "head",
    [
        described(tarfile.XHDTYPE, 100 << 20),
        described(tarfile.XGLTYPE, 100 << 20),
        described(tarfile.GNUTYPE_LONGNAME, 100 << 20),
        described(tarfile.XHDTYPE, len(PAX_SPARSE)) + PAX_SPARSE.ljust(HEADER, b"\0") + described(tarfile.REGTYPE, 0)
        + b"999999999\n".ljust(HEADER, b"1"),
    ],
    ids=["attributes", "attributes of all", "name", "map of a sparse file"],
)  # fmt: skip
def test_names_and_attributes_that_fill_memory_are_refused(tmp_path: Path, head: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError, match="more than 64 KiB of names and attributes before a file"):
            unpack(Endless(iter([head, *[b"1\n" * 5120] * 10_000])), tmp_path, lambda name: None)
        assert tracemalloc.get_traced_memory()[1] < 3e6
    finally:
        tracemalloc.stop()


def test_descriptions_of_descriptions_without_end_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TooLargeError, match="more than 64 KiB of names and attributes"):
        unpack(Endless(again(described(tarfile.GNUTYPE_LONGNAME, 0))), tmp_path, lambda name: None)


def test_a_sparse_file_whose_size_was_not_sent_is_refused(tmp_path: Path) -> None:
    entry = bytearray(SPARSE)
    entry[345 + 138 : 345 + 138 + 12] = b"77777777777\0"  # real size: 8 GiB, none of which is there
    entry[148:156] = b" " * 8
    entry[148:156] = b"%06o\0 " % sum(entry)
    with pytest.raises(tarfile.ReadError, match="a sparse file"):
        unpack(Endless(iter([bytes(entry), bytes(10240)])), tmp_path, lambda name: None)
    assert not list(tmp_path.iterdir())


def test_what_is_compressed_otherwise_is_not_tried(tmp_path: Path) -> None:
    files = packed(("a", tarfile.REGTYPE, b"x"))
    for is_compressed in (False, True):
        with pytest.raises(tarfile.ReadError):
            unpack(io.BytesIO(lzma.compress(files)), tmp_path, lambda name: None, is_compressed=is_compressed)


def test_a_damaged_stream_is_told_as_one(tmp_path: Path) -> None:
    whole = gzip.compress(packed(("a", tarfile.REGTYPE, bytes(range(256)) * 200)))
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    for data in (whole[:-30], b"", b"no archive", bytes(flipped)):
        with pytest.raises(tarfile.TarError):
            unpack(io.BytesIO(data), tmp_path, lambda name: None, is_compressed=True)
