# SPDX-License-Identifier: Apache-2.0
"""Fetch Debian's linux-source package of a series into the cache, as any user, without touching the machine's apt.

The other suites are derived from the machine's own apt source of its release: same mirror, same signing keys.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from base.cache import locked
from base.errors import UsageError, WarpbedError
from kernels import series as series_names
from kernels.apt_sources import Entry, debian_archive, read_entries
from kernels.build_key import arguments
from kernels.source import SERIES, Source, locate, unchecked_note

OTHER_SUITES = ("trixie", "trixie-backports", "bookworm", "bookworm-backports")

PRIVATE_APT = """\
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{work}/sources";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "{work}/lists";
Dir::Cache "{work}/cache";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Default-Release;
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::http::Timeout "60";
Acquire::https::Timeout "60";
"""


def fetch(series: str, cache: Path, *, version: str | None = None, refresh: bool = False) -> tuple[Source, bool]:
    """The source of a series, from the cache if it is there, and whether anything was fetched."""
    if not SERIES.fullmatch(series):
        raise UsageError(f"kernel series {series!r} is not two numbers such as {series_names.EXAMPLES}")
    sources = cache / "sources"
    with locked(sources / ".lock"):
        source = locate(series, cache, version=version)
        if source and not refresh:
            return source, False
        for orphan in sources.glob(".apt-*"):
            shutil.rmtree(orphan)
        with tempfile.TemporaryDirectory(prefix=".apt-", dir=sources) as work:
            deb = _download(series, version, Path(work), refresh=refresh)
            fetched = not (sources / deb.name).exists()
            unchecked = machine_archive()[0].unchecked
            if unchecked:
                unchecked_note(sources / deb.name).write_text("\n".join(unchecked) + "\n")
                print(
                    f"warning: {deb.name}: this machine's apt sources say {', '.join(unchecked)}: not checked",
                    file=sys.stderr,
                )
            deb.replace(sources / deb.name)
        source = locate(series, cache, version=version)
    if source is None:
        raise WarpbedError(f"apt fetched {deb.name}, which is not version {version} of linux-source-{series}")
    return source, fetched


def suites_for(series: str, release: str) -> list[str]:
    """The suites to look into, in order."""
    suites = [series_names.HOME_SUITE.get(series, release), release, f"{release}-backports", *OTHER_SUITES]
    return list(dict.fromkeys(suites))


def _download(series: str, version: str | None, work: Path, *, refresh: bool = False) -> Path:
    """Look through the suites until one has the package, and download it with apt, which checks its signature.

    Without a version the one that the project's results were made with, or where no suite has it any more the newest.
    """
    package = f"linux-source-{series}"
    archive, release = machine_archive()
    for folder in ("sources", "lists/partial", "cache/archives/partial", "deb"):
        (work / folder).mkdir(parents=True)
    (work / "apt.conf").write_text(PRIVATE_APT.format(work=work))
    tried = []
    for suite in suites_for(series, release):
        (work / "sources/debian.sources").write_text(archive.for_suite(suite))
        update = _apt(work, "apt-get", "--quiet", "--error-on=any", "update")
        if update.returncode:
            tried.append(f"{suite}: {why(update.stderr)}")
            continue
        versions = _versions(work, package)
        if not versions or (version is not None and version not in versions):
            tried.append(f"{suite}: has " + (f"versions {', '.join(versions)}" if versions else f"no {package}"))
            continue
        wanted = version or _pinned_or_newest(series, versions, refresh=refresh)
        got = _apt(work, "apt-get", "--quiet", "download", f"{package}={wanted}", cwd=work / "deb")
        debs = list((work / "deb").glob("*.deb"))
        if got.returncode == 0 and len(debs) == 1:
            return debs[0]
        tried.append(f"{suite}: {why(got.stderr)}")
    package_version = f"{package} {version}" if version else package
    raise WarpbedError(f"cannot fetch {package_version} from {' '.join(archive.uris)}\n  " + "\n  ".join(tried))


def _pinned_or_newest(series: str, versions: Sequence[str], *, refresh: bool) -> str:
    """versions: newest first"""
    pinned, _ = series_names.PINNED.get(series, ("", ""))
    if pinned in versions and not refresh:
        return pinned
    if pinned and versions[0] != pinned:
        print(
            f"note: linux-source-{series} {versions[0]}; the project's results were made with {pinned}", file=sys.stderr
        )
    return versions[0]


def machine_archive() -> tuple[Entry, str]:
    """Where this machine takes Debian from, and the name of its release."""
    assignments = subprocess.run(
        ["apt-config", "shell", "list", "Dir::Etc::sourcelist/f", "parts", "Dir::Etc::sourceparts/d"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    places = dict(re.findall(r"^(\w+)='([^']*)'$", assignments, re.MULTILINE))
    system = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', Path("/etc/os-release").read_text(), re.MULTILINE))
    release = system.get("VERSION_CODENAME", "")
    if system.get("ID") != "debian" or not release:
        raise WarpbedError(
            f"this is {system.get('PRETTY_NAME', 'an unknown system')}; kernel sources are fetched on Debian only"
        )
    return debian_archive(read_entries(Path(places["list"]), Path(places["parts"])), release), release


def _versions(work: Path, package: str) -> list[str]:
    """The versions of a package in the fetched list, newest first."""
    table = _apt(work, "apt-cache", "madison", package).stdout
    return [columns[1].strip() for line in table.splitlines() if len(columns := line.split("|")) == 3]


def _apt(work: Path, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    program, *rest = command
    return subprocess.run(
        [program, "--config-file", str(work / "apt.conf"), *rest],
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )


def why(output: str) -> str:
    """apt's own reason, with the remedy where the cause is an old keyring."""
    lines = [line.removeprefix("E: ").removeprefix("W: ") for line in output.splitlines() if line[:2] in {"E:", "W:"}]
    reason = lines[0] if lines else output.strip() or "apt says nothing"
    if "NO_PUBKEY" in output or "Missing key" in output:
        reason += (
            "\n    This machine's keyring is older than that suite. As root: apt-get install debian-archive-keyring"
        )
    return reason


def main(argv: list[str] | None = None) -> int:
    """Fetch, and print what is in the cache as JSON."""
    parser = arguments("Fetch the kernel source of a series into the cache.")
    parser.add_argument("--refresh", action="store_true", help="look for a newer version even if one is in the cache")
    options = parser.parse_args(argv)
    try:
        if SERIES.fullmatch(options.kernel):
            source, changed = fetch(options.kernel, options.cache, version=options.version, refresh=options.refresh)
        else:
            located = locate(options.kernel, options.cache)
            assert located is not None
            source, changed = located, False
    except WarpbedError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    print(json.dumps({"changed": changed, **asdict(source), "path": str(source.path)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
