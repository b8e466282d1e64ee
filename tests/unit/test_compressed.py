# SPDX-License-Identifier: Apache-2.0
"""Files that lie compressed in a raw folder: what is read of them, what is left, and what a stranger's may not do."""

from __future__ import annotations

import os
from collections import namedtuple
from pathlib import Path

import pytest

from analysis.differences import packets
from base.small_files import RefusedFileError
from collectors import compressed
from collectors.errors import CollectError
from tests import pcap_craft
from tests.pcap_scenarios import clean

CONTENT = b"packets " * 400_000
"""More than is read at once."""


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    (tmp_path / "raw").mkdir()
    return tmp_path / "raw"


@pytest.mark.parametrize("content", [CONTENT, os.urandom(1000), b""])
def test_what_is_compressed_has_its_content_and_only_that_lies_there(raw: Path, content: bytes) -> None:
    (raw / "a.pcap").write_bytes(content)
    assert compressed.compress(raw / "a.pcap") == raw / "a.pcap.zst"
    assert [file.name for file in raw.iterdir()] == ["a.pcap.zst"]
    with compressed.opened(raw / "a.pcap.zst") as opened:
        assert opened.read() == content
    with compressed.plain(raw, {"a.pcap": len(content)}) as place:
        assert (place / "a.pcap").read_bytes() == content


def test_a_frame_that_tshark_can_read_is_one(raw: Path) -> None:
    """It stops after the first of several. RFC 8878: four bytes begin a frame; then comes how the content's size is written."""
    (raw / "a.pcap").write_bytes(CONTENT)
    data = compressed.compress(raw / "a.pcap").read_bytes()
    assert data[:4] == bytes.fromhex("28b52ffd") and data.count(data[:4]) == 1
    assert data[4] >> 6 == 2 and len(CONTENT) in (int.from_bytes(data[at : at + 4], "little") for at in (5, 6))


def test_a_folder_without_compressed_files_is_itself(raw: Path) -> None:
    (raw / "a.pcap").write_bytes(CONTENT)
    with compressed.plain(raw, {}) as place:
        assert place == raw


def test_the_others_lie_beside_them_and_nothing_stays(raw: Path) -> None:
    (raw / "a.pcap").write_bytes(CONTENT)
    (raw / "plan.json").write_text("{}")
    compressed.compress(raw / "a.pcap")
    with compressed.plain(raw, {"a.pcap": len(CONTENT)}) as place:
        assert sorted(file.name for file in place.iterdir()) == ["a.pcap", "plan.json"]
    assert list(raw.parent.iterdir()) == [raw]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"a.pcap": len(CONTENT) - 1}, "more than 3199999 bytes of content, 3199999 according to run.json"),
        ({"a.pcap": len(CONTENT) + 1}, "3200000 bytes of content, 3200001 according to run.json"),
        ({}, "0 according to run.json"),
    ],
)
def test_content_of_another_size_is_refused(raw: Path, sizes: dict[str, int], said: str) -> None:
    (raw / "a.pcap").write_bytes(CONTENT)
    compressed.compress(raw / "a.pcap")
    with pytest.raises(CollectError, match=said), compressed.plain(raw, sizes):
        pass
    assert list(raw.parent.iterdir()) == [raw]


def test_one_that_would_fill_the_disk_is_not_begun(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (raw / "a.pcap").write_bytes(CONTENT)
    compressed.compress(raw / "a.pcap")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(1, 1, compressed.SPARE_BYTES + len(CONTENT) - 1))
    with pytest.raises(OSError, match="3 MB decompressed"), compressed.plain(raw, {"a.pcap": len(CONTENT)}):
        pass


@pytest.mark.parametrize("damage", [b"no frame at all", None])
def test_damage_is_told(raw: Path, damage: bytes | None) -> None:
    (raw / "a.pcap").write_bytes(os.urandom(1 << 22))
    file = compressed.compress(raw / "a.pcap")
    file.write_bytes(file.read_bytes()[: 1 << 20] if damage is None else damage)
    with pytest.raises(CollectError, match=r"a\.pcap\.zst"), compressed.plain(raw, {"a.pcap": 1 << 22}):
        pass


def test_a_link_is_not_followed(raw: Path) -> None:
    (raw / "a.pcap").write_bytes(CONTENT)
    compressed.compress(raw / "a.pcap")
    (raw / "b").symlink_to("/etc/passwd")
    with pytest.raises(RefusedFileError), compressed.plain(raw, {"a.pcap": len(CONTENT)}):
        pass


def test_two_runs_are_compared_whether_their_captures_are_compressed_or_not(tmp_path: Path) -> None:
    data = pcap_craft.pcap(clean().sorted())
    for name, content in (("one", data), ("same", data), ("other", data[:-1] + bytes([data[-1] ^ 1]))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.pcap").write_bytes(content)
    compressed.compress(tmp_path / "same/a.pcap")
    compressed.compress(tmp_path / "other/a.pcap")
    assert packets.first(tmp_path / "one", tmp_path / "same") is None
    parted = packets.first(tmp_path / "one", tmp_path / "other")
    assert parted is not None and parted.interface == "a" and parted.number == len(clean().sorted())
