# SPDX-License-Identifier: Apache-2.0
"""A bundle holds what it says, the same bytes each time; one of somebody else is refused for whatever is wrong about it."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.report import static
from analysis.results import load_experiment
from base.errors import UsageError
from benchmarks.make_results import Case, make_results
from testbed.bundle import manifest as manifests
from testbed.bundle.contents import Part
from testbed.bundle.manifest import CRATE, NAME, name_problem
from testbed.bundle.same import compare
from testbed.bundle.unpack import unpack
from testbed.bundle.write import write
from testbed.experiments import prepare
from tests import lab
from tests.few_figures import draw_few

LIMIT = 1 << 30
ANY_RUN = "results/small/cubic-40p-s1-00000001"
Change = Callable[[dict[str, bytes]], object]


@pytest.fixture(scope="module", autouse=True)
def two_sweeps() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        draw_few(patch)
        yield


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory) -> Part:
    root = tmp_path_factory.mktemp("made")
    file = lab.write(root, lab.SMALL, "small.yml")
    folder = make_results(
        root / "results", [Case("cubic", 40, 1), Case("reno", 40, 1)], experiment="small", duration_s=4.0
    )
    raw = folder / "cubic-40p-s1-00000001" / "raw"
    raw.mkdir(exist_ok=True)
    (raw / "s1-eth0.pcap").write_bytes(b"packets")
    (raw / "plan.json").write_text("{}")
    return Part("experiments/small.yml", prepare(file), load_experiment(folder), 0, folder)


@pytest.fixture(scope="module")
def bundle(part: Part, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("bundle") / "small.zip"
    write(target, "Small", [part], captures=False, licence="CC0-1.0")
    return target


def content(bundle: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def described(files: dict[str, bytes], **more: Any) -> dict[str, bytes]:
    """The files with a manifest that agrees with them."""
    manifest = json.loads(files[NAME])
    manifest["files"] = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in files.items()
        if name != NAME
    }
    return {**files, NAME: json.dumps({**manifest, **more}).encode()}


def packed(target: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return target


def refused(bundle: Path, folder: Path, limit: int = LIMIT) -> str:
    folder.mkdir(exist_ok=True)
    before = set(folder.parent.rglob("*"))
    with pytest.raises(UsageError) as error:
        unpack(bundle, folder, limit)
    outside = {path for path in set(folder.parent.rglob("*")) - before if not path.is_relative_to(folder)}
    assert outside == set(), "nothing is written outside of the folder"
    return str(error.value)


def test_it_comes_out_as_it_went_in(bundle: Path, part: Part, tmp_path: Path) -> None:
    manifest = unpack(bundle, tmp_path, LIMIT)
    there = {str(file.relative_to(tmp_path)): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert there == {name: data for name, data in content(bundle).items() if name != NAME}
    assert manifest.experiments[0].runs == [run.path.name for run in part.runs]
    for run in part.runs:
        for file in (run.path / "records").iterdir():
            assert there[f"results/small/{run.path.name}/records/{file.name}"] == file.read_bytes()
    assert there["experiments/small.yml"].decode() == lab.SMALL
    assert f"{ANY_RUN}/raw/plan.json" in there and f"{ANY_RUN}/raw/s1-eth0.pcap" not in there
    assert {
        "figures/small/figures/cwnd.svg",
        "figures/small/report.html",
        "environment/requirements.lock",
    } <= there.keys()
    assert (tmp_path / f"{ANY_RUN}/run.json").stat().st_mode & 0o7777 == 0o644


def test_captures_go_in_where_they_are_asked_for(part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "KINDS", ())  # figures, which take seconds to draw, are no matter here
    manifest = write(tmp_path / "b.zip", "Small", [part], captures=True, licence="CC0-1.0")
    assert manifest.files[f"{ANY_RUN}/raw/s1-eth0.pcap"].bytes == len(b"packets")


def test_nothing_is_overwritten(bundle: Path, part: Part) -> None:
    before = bundle.read_bytes()
    with pytest.raises(UsageError, match="never overwritten"):
        write(bundle, "Small", [part], captures=False, licence="CC0-1.0")
    assert bundle.read_bytes() == before


def test_the_crate_describes_every_file(bundle: Path) -> None:
    files = content(bundle)
    graph = {one["@id"]: one for one in json.loads(files[CRATE])["@graph"]}
    assert {name for name in files if name not in (NAME, CRATE)} <= graph.keys()
    root = graph["./"]
    assert {one["@id"] for one in root["hasPart"]} >= {"experiments/small.yml", f"{ANY_RUN}/run.json"}
    assert root["license"] == {"@id": "https://spdx.org/licenses/CC0-1.0"} and root["datePublished"]
    run_json = graph[f"{ANY_RUN}/run.json"]
    assert run_json["sha256"] == hashlib.sha256(files[f"{ANY_RUN}/run.json"]).hexdigest()
    (action,) = [one for one in graph.values() if one["@type"] == "CreateAction"]
    assert action["object"] == {"@id": "experiments/small.yml"} and action["instrument"] == {"@id": "#warpbed"}
    from rocrate.rocrate import (
        ROCrate,
    )  # reads it back: another program's view would be better, this is the library's own

    with zipfile.ZipFile(io.BytesIO(bundle.read_bytes())):
        assert ROCrate(bundle).root_dataset["name"] == "Small"


@pytest.mark.parametrize(
    "name",
    [
        "../x", "results/../../x", "/etc/passwd", "results//x", "results/./x", "results/.x", "x", "home/x", "results/a\\b",
        "results/a\x00b", "results/a\nb", "results/\u202ex", "results/a:b", "results/" + "a" * 241, "results/" + "a/" * 10 + "b",
        "results/" + "ab/" * 9 + "c" * 600, "C:/x", "results/x ", "results/x.", "bundle.json", "",
    ],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_refused(bundle: Path, tmp_path: Path, name: str) -> None:
    assert name_problem(name)
    files = content(bundle) | ({name: b"x"} if name not in ("bundle.json", "") else {})
    if "\x00" not in name and name not in ("bundle.json", ""):  # zipfile cuts names at a zero
        refused(packed(tmp_path / "b.zip", described(files)), tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda files: files.pop(NAME), "has no bundle.json"),
        (lambda files: files.update({NAME: b"{}"}), "Field required"),
        (lambda files: files.update({NAME: b"[" * 100_000}), "not a bundle"),
        (lambda files: files.update({"results/x": b""}), "not in bundle.json"),
        (lambda files: files.pop("experiments/small.yml"), "not in the archive"),
        (lambda files: files.update({f"{ANY_RUN}/run.json": files[f"{ANY_RUN}/run.json"] + b" "}), "bundle.json says"),
        (
            lambda files: files.update({f"{ANY_RUN}/run.json": files[f"{ANY_RUN}/run.json"][:-1] + b" "}),
            "is not what bundle.json says: SHA-256",
        ),
    ],
)
def test_what_does_not_agree_with_the_manifest_is_refused(
    bundle: Path, tmp_path: Path, change: Change, says: str
) -> None:
    files = content(bundle)
    change(files)
    assert says in refused(packed(tmp_path / "b.zip", files), tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda files: files.pop(f"{ANY_RUN}/run.json"), "has no run.json"),
        (lambda files: files.update({"results/SMALL/x": b"", "results/small/x": b""}), "capitals do not count"),
        (lambda files: files.update({"results/y": b"", "results/y/z": b""}), "is a file and a folder"),
    ],
)
def test_a_manifest_that_describes_nonsense_is_refused(bundle: Path, tmp_path: Path, change: Change, says: str) -> None:
    files = content(bundle)
    change(files)
    assert says in refused(packed(tmp_path / "b.zip", described(files)), tmp_path / "out")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("warpbed_bundle", 2), ("experiments", []), ("title", "x" * 401), ("commit", "; rm -rf"), ("more", 1),
        ("experiments", [{"name": "small", "file": "experiments/other.yml", "host": "virtual", "runs": ["s1"], "missing": 0}]),
        ("experiments", [{"name": "small", "file": "README.md", "host": "virtual", "runs": ["s1"], "missing": 0}]),
        ("experiments", [{"name": "../x", "file": "experiments/small.yml", "host": "virtual", "runs": ["s1"], "missing": 0}]),
        ("experiments", [{"name": "small", "file": "experiments/small.yml", "host": "virtual", "runs": ["../s1"], "missing": 0}]),
        ("experiments", [{"name": "small", "file": "experiments/small.yml", "host": "virtual", "runs": [], "missing": 0}]),
    ],
)  # fmt: skip
def test_values_of_the_manifest_have_bounds(bundle: Path, tmp_path: Path, key: str, value: object) -> None:
    refused(packed(tmp_path / "b.zip", described(content(bundle), **{key: value})), tmp_path / "out")


@pytest.mark.parametrize(
    "mode", [stat.S_IFLNK | 0o777, stat.S_IFIFO | 0o644, stat.S_IFBLK | 0o644, stat.S_IFDIR | 0o755]
)
def test_links_pipes_devices_and_folders_are_refused(bundle: Path, tmp_path: Path, mode: int) -> None:
    files = described(content(bundle) | {"results/small/x": b"/etc/passwd"})
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (mode if name == "results/small/x" else 0o100644) << 16
            archive.writestr(entry, data)
    assert "plain files only" in refused(tmp_path / "b.zip", tmp_path / "out")


def test_a_bomb_is_refused_before_it_is_unpacked(bundle: Path, tmp_path: Path) -> None:
    files = described(content(bundle) | {"results/small/zeros": bytes(50_000_000)})
    bomb = packed(tmp_path / "b.zip", files)
    assert bomb.stat().st_size < 3_000_000
    assert "--limit allows more" in refused(bomb, tmp_path / "out", 20_000_000)
    assert list((tmp_path / "out").iterdir()) == []


def test_headers_that_lie_about_lengths_are_refused(bundle: Path, tmp_path: Path) -> None:
    """The directory and the manifest say ten bytes, the packed data have a million."""
    files = content(bundle)
    lie = described(files | {"results/small/x": b"0123456789"})
    target = packed(tmp_path / "b.zip", lie | {"results/small/x": bytes(1_000_000)})
    data = bytearray(target.read_bytes())
    at = data.rfind(b"results/small/x") - 46
    assert data[at : at + 4] == b"PK\x01\x02"
    struct.pack_into("<L", data, at + 24, 10)
    target.write_bytes(data)
    refused(target, tmp_path / "out")
    written = sum(file.stat().st_size for file in (tmp_path / "out").rglob("x"))
    assert written <= 10


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods_and_double_entries_are_refused(bundle: Path, tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        for name, data in content(bundle).items():
            archive.writestr(name, data, method)
    assert "allowed: stored, deflate" in refused(tmp_path / "b.zip", tmp_path / "out")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_that_is_in_it_twice_is_refused(bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(packed(tmp_path / "b.zip", content(bundle)), "a") as archive:
        archive.writestr("experiments/small.yml", b"other")
    assert "twice" in refused(tmp_path / "b.zip", tmp_path / "out")


def test_a_file_without_a_name_is_refused(bundle: Path, tmp_path: Path) -> None:
    """A name ends before its first NUL: of this one nothing is left. Guided fuzzing found it."""
    file = packed(tmp_path / "b.zip", content(bundle) | {"~nameless": b"x"})
    file.write_bytes(file.read_bytes().replace(b"~nameless", b"\0nameless"))
    assert "has no name" in refused(file, tmp_path / "out")


def test_a_directory_without_bound_is_not_read(bundle: Path, tmp_path: Path) -> None:
    data = bytearray(bundle.read_bytes())
    at = data.rfind(b"PK\x05\x06")
    struct.pack_into("<L", data, at + 12, 0xFFFF0000)
    (tmp_path / "b.zip").write_bytes(data)
    assert "its directory has" in refused(tmp_path / "b.zip", tmp_path / "out")


def test_damage_anywhere_is_an_error_with_words(bundle: Path, tmp_path: Path) -> None:
    whole = bundle.read_bytes()
    for number, at in enumerate(range(0, len(whole), len(whole) // 40)):
        (tmp_path / "b.zip").write_bytes(whole[:at])
        refused(tmp_path / "b.zip", tmp_path / f"out{number}")
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        (tmp_path / "b.zip").write_bytes(damaged)
        (tmp_path / f"flip{number}").mkdir()
        try:
            unpack(tmp_path / "b.zip", tmp_path / f"flip{number}", LIMIT)
        except UsageError:
            continue  # what is no part of any file's content, such as a date, may change


def test_recorded_and_new_runs_are_compared_figure_by_figure(part: Part, tmp_path: Path) -> None:
    runs = part.runs
    rows = {row.figure: row for row in compare(runs, runs)}
    assert {"cwnd", "queue", "rtt", "metrics"} <= rows.keys()
    assert {row.outcome for row in rows.values()} == {"same"}
    other = load_experiment(
        make_results(tmp_path, [Case("cubic", 40, 1), Case("reno", 40, 2)], experiment="small", duration_s=4.0)
    )
    figures = compare(runs, other)
    assert [row.where for row in figures if row.outcome == "not made"] == ["cca=reno, buffer=40p, seed 1"]
    assert {row.outcome for row in figures if row.figure == "cwnd"} == {"same"}


def test_a_difference_is_told_with_its_place_and_both_values(part: Part) -> None:
    cubic, reno = part.runs
    swapped = dataclasses.replace(reno, params=cubic.params, run=cubic.run)
    rows = {row.figure: row for row in compare([cubic], [swapped])}
    assert rows["cwnd"].outcome == "differs"
    assert rows["cwnd"].where.startswith("cca=cubic, buffer=40p, seed 1, flow f1: from ") and "→" in rows["cwnd"].where
    changed = dataclasses.replace(cubic, metrics={**cubic.metrics, "utilization": 0.5, "new": 1}, packets="aa")
    rows = {row.figure: row for row in compare([dataclasses.replace(cubic, packets="bb")], [changed])}
    assert rows["metrics"].where.startswith("cca=cubic, buffer=40p, seed 1: utilization: ")
    assert rows["packets"].outcome == "differs" and rows["cwnd"].outcome == "same"


def test_the_command_checks_a_bundle_without_running_anything(bundle: Path, tmp_path: Path) -> None:
    environment = {"TMPDIR": str(tmp_path)}
    output = lab.warpbed("rerun", bundle, "--no-run", environment=environment)
    assert "files are what the bundle says" in output and "2 runs recorded" in output
    assert list(tmp_path.iterdir()) == [], "nothing is left"
    packed(tmp_path / "b.zip", content(bundle) | {"results/x": b""})
    output = lab.warpbed("rerun", tmp_path / "b.zip", "--no-run", code=2, environment=environment)
    assert "not in bundle.json" in output and "Traceback" not in output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (lab.SMALL.replace("name: small", "name: other"), "is experiment other, not small"),
        (lab.SMALL + "host: lab\n", "asks for host lab"),
        (lab.SMALL.replace("rate: 20mbit", "rate: trace ../../../../etc/passwd"), "experiments/small.yml"),
        (lab.SMALL.replace("cubic", "nosuch"), "there is no algorithm"),
    ],
)
def test_a_strangers_experiment_file_is_checked_before_anything_runs(
    bundle: Path, tmp_path: Path, text: str, says: str
) -> None:
    files = described(content(bundle) | {"experiments/small.yml": text.encode()})
    output = lab.inside("rerun", packed(tmp_path / "b.zip", files), code=2)
    assert says in output and "Traceback" not in output


def test_a_host_that_is_not_virtual_has_to_be_asked_for(bundle: Path, tmp_path: Path) -> None:
    experiments = json.loads(content(bundle)[NAME])["experiments"]
    experiments[0]["host"] = "lab"
    files = described(
        content(bundle) | {"experiments/small.yml": (lab.SMALL + "host: lab\n").encode()}, experiments=experiments
    )
    assert "only with --host lab" in lab.inside("rerun", packed(tmp_path / "b.zip", files), code=2)


def test_what_is_not_there_is_said_before_anything_is_written(tmp_path: Path) -> None:
    file = lab.write(tmp_path, lab.SMALL, "small.yml")
    for arguments, says in (
        ((file,), "0 runs are complete"),
        (("nosuch2000",), "neither an experiment file nor a thesis"),
        ((file, "--license", "my own"), "an SPDX identifier"),
    ):
        assert says in lab.inside(
            "bundle", *arguments, "--results", tmp_path / "r", "--out", tmp_path / "b.zip", code=2
        )
    assert [path.name for path in tmp_path.iterdir()] == ["small.yml"]


def test_every_name_that_a_bundle_gets_is_one_that_it_may_have(bundle: Path) -> None:
    assert [name for name in content(bundle) if name != NAME and name_problem(name)] == []
    assert manifests.parse(content(bundle)[NAME], "b").version
