# SPDX-License-Identifier: Apache-2.0
"""A Grafana of the user's own gets the dashboards by one command, and a run has an address in it."""

from __future__ import annotations

import os
import stat
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from base.errors import UsageError
from base.paths import ROOT
from benchmarks.make_results import Case, make_results
from testbed import cli, grafana

PASSWORD = "it's: 50% \\ of $HOME"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `dashboards up` leaves: the database's address, its passwords, Grafana's port."""
    state = tmp_path / "state/dashboards"
    state.mkdir(parents=True)
    monkeypatch.setenv("WARPBED_STATE", str(tmp_path / "state"))
    for name in ("PGPASSFILE", "WARPBED_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    (state / "database.url").write_text("postgresql://127.0.0.1:15432/warpbed\n")
    written = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
    (state / "pgpass").write_text(
        f"# who may what\n127.0.0.1:15432:*:warpbed_owner:other\n127.0.0.1:15432:*:warpbed_reader:{written}\n"
    )
    (state / ".env").write_text("WARPBED_GRAFANA_PORT=3111\nWARPBED_GRAFANA_PASSWORD=x\n")
    return state


def source(folder: Path) -> dict[str, Any]:
    """The data source as Grafana reads it: YAML, in which two dollars are one."""
    content = YAML(typ="safe").load(folder / "datasources/warpbed.yml")
    (entry,) = content["datasources"]
    entry["secureJsonData"] = {name: text.replace("$$", "$") for name, text in entry["secureJsonData"].items()}
    only: dict[str, Any] = entry
    return only


def test_one_command_gives_store_and_dashboards_to_a_grafana(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "provisioning"
    folder.mkdir()
    lines = grafana.provision(folder)
    entry = source(folder)
    assert (entry["url"], entry["user"], entry["database"]) == ("127.0.0.1:15432", "warpbed_reader", "warpbed")
    assert entry["uid"] == "warpbed" and entry["secureJsonData"]["password"] == PASSWORD
    provider = YAML(typ="safe").load(folder / "dashboards/warpbed.yml")["providers"][0]
    assert provider["options"]["path"] == str(folder / "warpbed")
    ours = {file.name for file in (ROOT / "dashboards/json").glob("*.json")}
    assert {file.name for file in (folder / "warpbed").glob("*.json")} == ours and len(ours) >= 7
    assert "restart Grafana" in lines[-1] and PASSWORD not in "".join(lines)
    assert grafana.provision(folder) == lines, "again replaces what is there"


def test_reports_lie_where_grafana_serves_them_and_are_linked_only_then(store: Path, tmp_path: Path) -> None:
    folder, public = tmp_path / "provisioning", tmp_path / "public"
    folder.mkdir()
    with pytest.raises(UsageError, match=r"--public .*/usr/share/grafana/public"):
        grafana.provision(folder, public=public, results=tmp_path)
    (public / "img").mkdir(parents=True)
    results = make_results(tmp_path / "results", (Case("reno", 50, 1),), experiment="o'Neill & 50%", duration_s=3.0)
    (results / "report.html").write_text("<p>what came out</p>")
    lines = grafana.provision(folder, public=public, results=results.parent)
    assert any("1 reports" in line for line in lines)
    copied = public / "warpbed/o'Neill & 50%/report.html"
    assert copied.read_text() == "<p>what came out</p>"
    assert stat.S_IMODE(copied.stat().st_mode) == 0o644 and stat.S_IMODE(copied.parent.stat().st_mode) == 0o755
    linked = (folder / "warpbed/run.json").read_text()
    assert "/public/warpbed/${experiment:percentencode}/report.html" in linked
    grafana.provision(folder)
    unlinked = (folder / "warpbed/run.json").read_text()
    assert "report.html" not in unlinked and unlinked.count("/d/warpbed-") > 5


def test_nobody_but_owner_and_group_reads_the_password(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "provisioning"
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, 0, 1234)  # as Grafana's packages have it: root's folder, its own group
    grafana.provision(folder)
    state = (folder / "datasources/warpbed.yml").stat()
    assert stat.S_IMODE(state.st_mode) == 0o640
    assert state.st_gid == folder.stat().st_gid


def test_what_is_missing_is_named_with_the_way_on(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"no such folder; .*/etc/grafana/provisioning"):
        grafana.provision(tmp_path / "nowhere")
    monkeypatch.setenv("WARPBED_DATABASE", "postgresql://192.0.2.1:5432/warpbed")
    with pytest.raises(UsageError, match=r"no password for warpbed_reader at 192\.0\.2\.1:5432"):
        grafana.provision(tmp_path)
    monkeypatch.delenv("WARPBED_DATABASE")
    (store / "database.url").unlink()
    with pytest.raises(UsageError, match="no database is known"):
        grafana.provision(tmp_path)
    assert list(tmp_path.glob("datasources/*")) == []


def test_a_runs_address_shows_it_from_its_start_to_its_end(store: Path, tmp_path: Path) -> None:
    results = make_results(tmp_path, (Case("reno", 50, 1),), experiment="o'Neill & 50%", duration_s=3.0)
    (run,) = results.iterdir()
    parts = urllib.parse.urlsplit(grafana.address(run))
    assert (parts.netloc, parts.path) == ("127.0.0.1:3111", "/d/warpbed-run")
    assert dict(urllib.parse.parse_qsl(parts.query, strict_parsing=True)) == {
        "var-experiment": "o'Neill & 50%",
        "var-run": run.name,
        "from": "946684800000",
        "to": "946684803000",
    }
    assert grafana.address(run, "https://grafana.example/").startswith("https://grafana.example/d/warpbed-run?")
    (store / ".env").unlink()
    with pytest.raises(UsageError, match=r"dashboards up.*--url"):
        grafana.address(run)
    with pytest.raises(UsageError, match="results/EXPERIMENT/RUN"):
        grafana.address(tmp_path / "nothing")


def test_open_prints_the_address_and_has_the_desktop_open_it_where_there_is_one(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (run,) = make_results(tmp_path, (Case("reno", 50, 1),), duration_s=3.0).iterdir()
    programs = tmp_path / "programs"
    programs.mkdir()
    opener = programs / "xdg-open"
    opener.write_text('#!/bin/sh\nprintf %s "$1" >"$0.log"\nexit 3\n')
    opener.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["dashboards", "open", str(run)]) == 0
    address = capsys.readouterr().out.strip()
    assert address == grafana.address(run) and not (programs / "xdg-open.log").exists()
    monkeypatch.setenv("DISPLAY", ":0")
    assert cli.main(["dashboards", "open", str(run)]) == 0, "the address is there, whatever the desktop does"
    assert (programs / "xdg-open.log").read_text() == address
    opener.unlink()
    assert cli.main(["dashboards", "open", str(run)]) == 0
    assert cli.main(["dashboards", "open", str(tmp_path / "nothing")]) == 2
