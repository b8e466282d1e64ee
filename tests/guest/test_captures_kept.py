# SPDX-License-Identifier: Apache-2.0
"""Captures that are not kept: the same run, the same records, less disk, and a clear word where they would be needed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from base.errors import SpecError
from schema.keep import is_kept
from schema.load import load
from testbed import captures
from tests import lab, pcap_craft
from tests.pcap_scenarios import clean

AT = "captures: {at: [s1>r1, r2>d1, r1>r2]}\n"


def test_the_same_run_gives_the_same_records_whether_its_captures_are_kept_or_not(tmp_path: Path) -> None:
    kept, dropped = tmp_path / "kept", tmp_path / "dropped"
    kept.mkdir()
    dropped.mkdir()
    (one,) = lab.runs(lab.execute(kept, lab.SMALL + AT))
    experiment = lab.execute(dropped, lab.SMALL + AT.replace("]}", "], keep: never}"))
    (other,) = lab.runs(experiment)
    assert one["run"] == other["run"], "keeping is no part of what decides a run"
    files = {file: digest for file, digest in lab.digests(one["path"]).items() if file.endswith(".parquet")}
    assert lab.digests(other["path"]) == files and one["metrics"] == other["metrics"]
    assert one["packets"] == other["packets"] and one["verdict"] == other["verdict"]
    bulky = {Path(entry["file"]).name for entry in other["captures"]}
    assert sum(name.endswith(".pcap") for name in bulky) == 3
    assert bulky >= {"queues.bin", "sockets.bin", "tcp_probe.bin"} and len(bulky) == 6
    assert not any(entry["kept"] for entry in other["captures"])
    assert not {file.name for file in (other["path"] / "raw").iterdir()} & bulky
    for entry, whole in zip(other["captures"], one["captures"], strict=True):
        file = one["path"] / entry["file"]
        assert entry["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
        assert entry["bytes"] == whole["bytes"] == file.stat().st_size
        if file.suffix == ".pcap":
            assert entry["packets"] == whole["packets"] > 1000
            assert captures.count(file) == entry["packets"], "counted by the lengths as by the collector"
    # its records stay as they are, and the command says why
    before = (other["path"] / "run.json").read_bytes()
    output = lab.warpbed("collect", experiment, code=2)
    assert "its captures were read and not kept" in output
    assert (other["path"] / "run.json").read_bytes() == before
    lab.warpbed("collect", one["path"])
    assert len(list(one["path"].glob("raw/*.pcap"))) == 3
    lab.warpbed("report", experiment)


def test_compressed_captures_hold_the_same_and_the_run_can_be_collected_again(tmp_path: Path) -> None:
    plain, compressed = tmp_path / "plain", tmp_path / "compressed"
    plain.mkdir()
    compressed.mkdir()
    (one,) = lab.runs(lab.execute(plain, lab.SMALL + AT))
    (other,) = lab.runs(lab.execute(compressed, lab.SMALL + AT.replace("]}", "], compress: true}")))
    assert one["run"] == other["run"], "compressing is no part of what decides a run"
    assert one["metrics"] == other["metrics"] and one["packets"] == other["packets"]
    assert not [file for pattern in captures.GROWING for file in (other["path"] / "raw").glob(pattern)]
    for entry, whole in zip(other["captures"], one["captures"], strict=True):
        assert {**whole, "stored": f"{whole['file']}.zst", "sha256": entry["sha256"]} == entry and entry["kept"]
        with pa.input_stream(str(other["path"] / entry["stored"]), compression="zstd") as stored:
            content = stored.read()
        assert content == (one["path"] / entry["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    if tshark := shutil.which("tshark"):  # the program that people read them with, as they lie
        for entry in (entry for entry in other["captures"] if "packets" in entry):
            shown = subprocess.run(
                [tshark, "-r", other["path"] / entry["stored"], "-T", "fields", "-e", "frame.number"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                check=True,
            )
            assert len(shown.stdout.splitlines()) == entry["packets"]
    # collected again, all is as it was
    before, document = lab.digests(other["path"]), (other["path"] / "run.json").read_bytes()
    lab.warpbed("collect", other["path"])
    assert lab.digests(other["path"]) == before and (other["path"] / "run.json").read_bytes() == document
    assert {folder.name for folder in other["path"].iterdir()} == {"raw", "records", "run.json"}
    # and the two ways are one run to whoever compares them
    assert "the same packets at the same times" in lab.warpbed("diff", one["path"], other["path"])
    # a file that was changed is told, before anything is decompressed
    (other["path"] / "raw/sockets.bin.zst").write_bytes(b"no")
    assert "raw/sockets.bin.zst: was changed" in lab.warpbed("collect", other["path"], code=2)


@pytest.mark.parametrize(
    ("keep", "verdict", "size", "kept"),
    [
        (None, "valid", 10**12, True),
        ("always", "valid", 10**12, True),
        ("never", "invalid", 1, False),
        ("failed", "valid", 1, False),
        ("failed", "suspect", 1, True),
        ("failed", "invalid", 1, True),
        ("budget 200MB", "valid", 200_000_000, True),
        ("budget 200MB", "invalid", 200_000_001, False),
    ],
)
def test_what_is_kept(keep: str | None, verdict: str, size: int, kept: bool) -> None:
    assert is_kept(keep, verdict, size) == kept


@pytest.mark.parametrize("keep", ["sometimes", "budget", "budget lots", "200MB"])
def test_a_rule_that_is_none_is_refused_at_its_line(tmp_path: Path, keep: str) -> None:
    file = lab.write(tmp_path, lab.SMALL + f"captures: {{keep: {keep}}}\n")
    with pytest.raises(SpecError, match=r"experiment\.yml:\d+: captures\.keep"):
        load(file)


def test_a_capture_that_breaks_off_is_counted_up_to_there(tmp_path: Path) -> None:
    data = pcap_craft.pcap(clean().sorted())
    (tmp_path / "a.pcap").write_bytes(data)
    (tmp_path / "b.pcap").write_bytes(data[:-1])
    whole = captures.count(tmp_path / "a.pcap")
    assert whole == len(clean().sorted()) and captures.count(tmp_path / "b.pcap") == whole - 1
