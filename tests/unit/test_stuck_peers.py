# SPDX-License-Identifier: Apache-2.0
"""A host that is stuck or sends too much holds nobody up and fills no memory: every wait has an end and says what it waited for."""

from __future__ import annotations

import io
import shlex
import struct
import sys
import tarfile
import tempfile
import time
import tracemalloc
from pathlib import Path

import pytest

from hosts.nodes.merge import MergeError, _shift_capture
from hosts.remote import Remote, RemoteError
from testbed.campaign import remote
from testbed.campaign.ends import End
from tests import pcap_craft
from tests.pcap_scenarios import clean

END = End(address="192.0.2.10", host="h", agent="/var/lib/warpbed/agent.pyz")


def archive(*names: str, size: int = 100) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as files:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = size
            files.addfile(entry, io.BytesIO(bytes(size)))
    return data.getvalue()


def sends(folder: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, then: str) -> None:
    """A host that sends `data` and then does something (shell)."""
    (folder / "stream").write_bytes(data)
    script = f"cat >/dev/null; cat {shlex.quote(str(folder / 'stream'))}; {then}"
    monkeypatch.setattr(Remote, "command", lambda self, *words: ["sh", "-c", script])


@pytest.mark.parametrize("whole", [True, False])
def test_files_that_do_not_come_to_an_end_are_given_up_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    data = archive("a.pcap", "b.json")
    sends(tmp_path, monkeypatch, data if whole else data[:60], "exec sleep 60")
    begun = time.monotonic()
    with pytest.raises(
        remote.UnreachableError, match=r"a: the files of t\.a1 did not come through: not done after 1 s"
    ):
        remote.fetch("a", END, "t.a1", tmp_path / "files", limit_s=1.0)
    assert time.monotonic() - begun < 20
    assert not (tmp_path / "files").exists()


def test_a_host_that_goes_on_after_the_archives_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sends(tmp_path, monkeypatch, archive("a.pcap"), "exec cat /dev/zero")
    with pytest.raises(remote.RefusedError, match=r"a: the files of t\.a1: more than 1024 KiB after its end"):
        remote.fetch("a", END, "t.a1", tmp_path / "files", limit_s=30.0)


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_host_that_answers_without_end_fills_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    sends(tmp_path, monkeypatch, b'{"state": "absent"}\n', f"head -c 200000000 /dev/zero >&{stream}")
    tracemalloc.start()
    try:
        if stream == "1":
            with pytest.raises(remote.UnreachableError, match="a: ssh: it answers with more than 4 MiB"):
                remote.ask("a", END, "status", id="t.a1")
        else:
            assert remote.ask("a", END, "status", id="t.a1") == {"state": "absent"}
        assert tracemalloc.get_traced_memory()[1] < 30e6
    finally:
        tracemalloc.stop()


def test_errors_beside_an_archive_fill_neither_memory_nor_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sends(tmp_path, monkeypatch, b"", "head -c 200000000 /dev/zero >&2; echo no room >&2; exit 3")
    monkeypatch.setattr(tempfile, "TemporaryFile", None)
    with pytest.raises(remote.UnreachableError, match="no room"):
        remote.fetch("a", END, "t.a1", tmp_path / "files", limit_s=30.0)


def test_empty_files_without_end_are_cut_off_however_fast_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "header").write_bytes(tarfile.TarInfo("a.json").tobuf() * 1000)
    again = f"while cat {shlex.quote(str(tmp_path / 'header'))}; do :; done | gzip -1"
    sends(tmp_path, monkeypatch, b"", again)
    with pytest.raises(remote.RefusedError, match=r"a: the files of t\.a1: more than 32 files"):
        remote.fetch("a", END, "t.a1", tmp_path / "files", limit_s=30.0)
    assert not (tmp_path / "files").exists()


def test_a_capture_beyond_its_budget_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sends(tmp_path, monkeypatch, archive("a.pcap", size=2001), ":")
    with pytest.raises(remote.RefusedError, match=r"'a.pcap' has 2001 bytes, such a file at most 2000"):
        remote.fetch("a", END, "t.a1", tmp_path / "files", limit_s=30.0, capture_bytes=2000)


def test_a_campaign_that_is_told_to_end_does_not_wait_for_a_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sends(tmp_path, monkeypatch, archive("a.pcap")[:60], "exec sleep 600")
    asked: list[int] = []

    def heed() -> None:
        asked.append(1)
        if len(asked) > 1:
            raise KeyError("told to end")

    with pytest.raises(KeyError, match="told to end"):
        remote.fetch("a", END, "t.a1", tmp_path / "files", limit_s=600.0, heed=heed)
    assert not (tmp_path / "files").exists()


@pytest.mark.parametrize("answer", ["[]", "7", '"x"', "[" * 100_000, "", "{"])
def test_an_answer_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    sends(tmp_path, monkeypatch, answer.encode() + b"\n", ":")
    with pytest.raises(remote.RefusedError, match=r"^a: "):
        remote.ask("a", END, "probe")


def test_files_that_come_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sends(tmp_path, monkeypatch, archive("a.pcap", "b.json"), ":")
    remote.fetch("a", END, "t.a1", tmp_path / "files", limit_s=30.0)
    assert sorted(file.name for file in (tmp_path / "files").iterdir()) == ["a.pcap", "b.json"]


class Near(Remote):
    """A machine that is this one, without SSH."""

    def command(self, *argv: str) -> list[str]:
        return list(argv) if argv[0] == "tar" else [sys.executable, *argv]


def near(folder: Path) -> Near:
    return Near("192.0.2.1", 22, "root", folder / "key", folder / "known_hosts", "m")


def test_a_machines_files_come_by_way_of_the_disk_and_only_plain_ones(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    (there / "folder").mkdir(parents=True)
    here.mkdir()
    (there / "a.pcap").write_bytes(bytes(3 << 20))
    (there / "folder/b").write_text("x")
    (there / "c").symlink_to("/etc/passwd")
    near(tmp_path).get(str(there), here)
    assert [(file.name, file.stat().st_size) for file in here.iterdir()] == [("a.pcap", 3 << 20)]
    with pytest.raises(RemoteError, match=r"tar: .*nowhere"):
        near(tmp_path).get(str(tmp_path / "nowhere"), here)


def test_a_machine_whose_files_are_too_large_is_told(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    with open(there / "guest.json", "wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(RemoteError, match=r"'guest.json' has 67108865 bytes, such a file at most 67108864") as failed:
        near(tmp_path).get(str(there), here)
    assert type(failed.value) is RemoteError, "it can be reached, and another attempt is of no use"


def test_a_capture_is_shifted_packet_by_packet(tmp_path: Path) -> None:
    frames = clean().sorted()
    (tmp_path / "a.pcap").write_bytes(pcap_craft.pcap(frames))
    _shift_capture(tmp_path / "a.pcap", tmp_path / "b.pcap", 1_500_000_000)
    moved = [(at - 1_500_000_000, frame, length) for at, frame, length in frames]
    assert (tmp_path / "b.pcap").read_bytes() == pcap_craft.pcap(moved)
    cut = pcap_craft.pcap(frames)[:-3]
    (tmp_path / "a.pcap").write_bytes(cut)
    _shift_capture(tmp_path / "a.pcap", tmp_path / "b.pcap", 0)
    assert (tmp_path / "b.pcap").read_bytes() == cut


def test_a_capture_whose_lengths_are_damaged_is_told_and_nothing_is_allocated(tmp_path: Path) -> None:
    data = bytearray(pcap_craft.pcap(clean().sorted()))
    struct.pack_into("<I", data, 24 + 8, 2**31)
    (tmp_path / "a.pcap").write_bytes(data)
    with pytest.raises(MergeError, match=r"a packet of 2147483648 bytes .* the capture is damaged"):
        _shift_capture(tmp_path / "a.pcap", tmp_path / "b.pcap", 0)
