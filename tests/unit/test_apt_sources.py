# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from base.errors import WarpbedError
from kernels.apt_sources import debian_archive, read_entries
from kernels.fetch import suites_for

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
