# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from base.errors import WarpbedError
from kernels import fetch, series
from kernels.apt_sources import Entry, debian_archive, read_entries
from kernels.fetch import suites_for
from kernels.source import Source, locate

ONE_LINE = """\
# deb http://192.0.2.1/debian bookworm main
deb cdrom:[Debian]/ bookworm main
deb-src http://192.0.2.1/debian bookworm main
deb http://192.0.2.1/security bookworm-security main
deb [arch=amd64 signed-by=/usr/share/keyrings/a.gpg] http://192.0.2.1/debian bookworm main contrib # ours
"""

DEB822 = """\
Types: deb
URIs: http://192.0.2.1/disabled
Suites: trixie
Components: main
Enabled: no

# a comment
Types: deb deb-src
URIs: http://192.0.2.2/debian
Suites: trixie trixie-updates
Components: main non-free-firmware
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 AAAA
"""


def test_a_one_line_source_is_found_with_its_key(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text(ONE_LINE)
    archive = debian_archive(read_entries(tmp_path / "sources.list", tmp_path / "none"), "bookworm")
    assert archive.for_suite("trixie-backports") == (
        "Types: deb\nURIs: http://192.0.2.1/debian\nSuites: trixie-backports\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/a.gpg\nTargets: Packages\n"
    )


def test_a_deb822_source_is_found_with_the_key_inside_it(tmp_path: Path) -> None:
    (tmp_path / "debian.sources").write_text(DEB822)
    archive = debian_archive(read_entries(tmp_path / "sources.list", tmp_path), "trixie")
    assert archive.uris == ("http://192.0.2.2/debian",)
    assert "Signed-By: \n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n AAAA\n" in archive.for_suite("bookworm")


def test_without_a_debian_source_the_error_names_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text("deb http://192.0.2.1/x noble main\n")
    with pytest.raises(WarpbedError, match="its suites are: noble"):
        debian_archive(read_entries(tmp_path / "sources.list", tmp_path), "bookworm")


@pytest.mark.parametrize("release", ["bookworm", "trixie"])
@pytest.mark.parametrize(("series", "suite"), [("6.1", "bookworm"), ("6.12", "trixie"), ("7.2", "trixie-backports")])
def test_every_release_takes_a_series_from_the_same_suite(release: str, series: str, suite: str) -> None:
    assert suites_for(series, release)[0] == suite


def test_checks_that_the_machine_leaves_out_are_told(tmp_path: Path) -> None:
    text = "deb [trusted=yes check-date=yes allow-weak=no check-valid-until=no] http://192.0.2.1/debian bookworm main\n"
    (tmp_path / "sources.list").write_text(text)
    archive = debian_archive(read_entries(tmp_path / "sources.list", tmp_path / "none"), "bookworm")
    assert archive.unchecked == ("Trusted: yes", "Check-Valid-Until: no")
    (tmp_path / "sources.list").write_text(ONE_LINE)
    assert debian_archive(read_entries(tmp_path / "sources.list", tmp_path / "none"), "bookworm").unchecked == ()


class Archive:
    """An apt of which the suite has two versions; it fetches what it is asked for."""

    def __init__(self, versions: list[str]) -> None:
        self.versions, self.asked = versions, ""

    def __call__(self, work: Path, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        out = ""
        if "madison" in command:
            out = "".join(f" linux-source-7.2 | {version} | somewhere\n" for version in self.versions)
        if "download" in command:
            assert cwd is not None
            self.asked = command[-1].partition("=")[2]
            (cwd / f"linux-source-7.2_{self.asked}_all.deb").write_text(f"package {self.asked}")
        return subprocess.CompletedProcess(list(command), 0, out, "")


PINNED = "7.2.12-1~bpo13+1"


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Source]:
    def take(versions: list[str], *, refresh: bool = False, options: tuple[tuple[str, str], ...] = ()) -> Source:
        entry = Entry(("http://192.0.2.1/debian",), ("trixie",), ("main",), options)
        monkeypatch.setattr(fetch, "_apt", Archive(versions))
        monkeypatch.setattr(fetch, "machine_archive", lambda: (entry, "trixie"))
        (tmp_path / "sources").mkdir(exist_ok=True)
        return fetch.fetch("7.2", tmp_path, refresh=refresh)[0]

    text = hashlib.sha256(f"package {PINNED}".encode()).hexdigest()
    monkeypatch.setitem(series.PINNED, "7.2", (PINNED, text))
    return take


def test_the_version_that_results_were_made_with_is_taken_while_it_is_there(
    fetched: Callable[..., Source], capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetched(["7.2.14-1", PINNED]).version == PINNED
    assert capsys.readouterr().err == ""
    assert fetched(["7.2.14-1", PINNED], refresh=True).version == "7.2.14-1"


def test_another_version_is_said(fetched: Callable[..., Source], capsys: pytest.CaptureFixture[str]) -> None:
    assert fetched(["7.2.14-1"]).version == "7.2.14-1"
    assert f"7.2.14-1; the project's results were made with {PINNED}" in capsys.readouterr().err


def test_a_file_with_the_pinned_name_and_other_content_is_refused(
    fetched: Callable[..., Source], tmp_path: Path
) -> None:
    source = fetched([PINNED])
    source.path.write_text("something else")
    with pytest.raises(WarpbedError, match=r"not the package that kernels/series\.json names"):
        locate("7.2", tmp_path)


def test_an_unchecked_fetch_stays_known(
    fetched: Callable[..., Source], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetched([PINNED], options=(("Trusted", "yes"),)).unchecked == ("Trusted: yes",)
    assert "not checked" in capsys.readouterr().err
    again = locate("7.2", tmp_path)
    assert again is not None and again.unchecked == ("Trusted: yes",)
