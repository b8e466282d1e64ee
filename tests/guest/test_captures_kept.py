# SPDX-License-Identifier: Apache-2.0
"""Captures that are not kept: the same run, the same records, less disk, and a clear word where they would be needed."""

from __future__ import annotations

import hashlib
from pathlib import Path

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
