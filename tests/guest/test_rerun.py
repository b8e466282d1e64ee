# SPDX-License-Identifier: Apache-2.0
"""A bundle's runs, made again, give the same figures; changed results do not pass."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from hosts.virtual.launch import GuestKernel
from tests import kept_results, lab


@pytest.fixture(scope="module")
def bundle(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rerun")
    kept_results.results(root, lab.SMALL)
    target = root / "small.zip"
    lab.warpbed("bundle", root / "experiment.yml", "--results", root / "results", "--out", target)
    return target


def test_the_same_runs_give_the_same_figures(bundle: Path, tmp_path: Path) -> None:
    output = lab.warpbed("rerun", bundle, "--results", tmp_path / "new", "--format", "json", timeout_s=600)
    rows = json.JSONDecoder().raw_decode(output[output.index("[\n") :])[0]
    assert {row["outcome"] for row in rows} == {"same"}
    assert {"cwnd", "queue", "rtt", "throughput", "metrics", "packets"} <= {row["figure"] for row in rows}
    assert "kernel, modules and programs are the same" in output
    assert len(lab.runs(tmp_path / "new/small")) == 1

    changed = with_changed_metric(bundle, tmp_path / "changed.zip")
    output = lab.warpbed("rerun", changed, "--results", tmp_path / "new", code=1)
    assert "differs" in output and "utilization: 0.123 →" in output


def with_changed_metric(bundle: Path, target: Path) -> Path:
    """The bundle of somebody who has written a better number into run.json, digests and all."""
    with zipfile.ZipFile(bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    (name,) = [name for name in files if name.endswith("/run.json")]
    document = json.loads(files[name])
    document["metrics"]["utilization"] = 0.123
    files[name] = json.dumps(document).encode()
    manifest = json.loads(files["bundle.json"])
    manifest["files"][name] = {"bytes": len(files[name]), "sha256": hashlib.sha256(files[name]).hexdigest()}
    files["bundle.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return target
