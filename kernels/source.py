# SPDX-License-Identifier: Apache-2.0
"""Which kernel source a name means, and its hash. Never reaches the network."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from base.cache import recall, remember, sha256_of
from base.errors import UsageError, WarpbedError
from kernels import series as series_names

SERIES = re.compile(r"\d+\.\d+")
DEB = re.compile(r"linux-source-(?P<series>\d+\.\d+)_(?P<version>[^_]+)_all\.deb")


@dataclass(frozen=True)
class Source:
    """A kernel source on this machine."""

    kind: str  # "deb", "tarball" or "tree"
    path: Path
    series: str
    sha256: str
    version: str
    unchecked: tuple[str, ...] = ()  # options of this machine's apt sources that left a check out when it was fetched

    @property
    def package(self) -> str | None:
        """The Debian package that it came in."""
        return f"linux-source-{self.series}" if self.kind == "deb" else None


def locate(kernel: str, cache: Path, *, version: str | None = None) -> Source | None:
    """The source that a kernel's name (a series such as 7.2, or a path) means; None if no package is in the cache."""
    if SERIES.fullmatch(kernel):
        return _cached_package(kernel, cache, version)
    path = Path(kernel).resolve()
    if path.is_dir():
        return _tree(path, cache)
    if path.is_file():
        return _tarball(path, cache)
    raise UsageError(
        f"kernel {kernel!r} is neither a series such as {series_names.EXAMPLES} nor a source tree or tarball"
    )


def _cached_package(series: str, cache: Path, wanted: str | None) -> Source | None:
    packages: dict[str, Path] = {}
    for path in (cache / "sources").glob(f"linux-source-{series}_*_all.deb"):
        if match := DEB.fullmatch(path.name):
            packages[match["version"].replace("%3a", ":")] = path
    if wanted is not None:
        packages = {wanted: packages[wanted]} if wanted in packages else {}
    if not packages:
        return None
    newest = max(packages, key=functools.cmp_to_key(_compare_versions))
    file = packages[newest]
    sha256 = _file_hash(file, cache)
    pinned, known = series_names.PINNED.get(series, ("", ""))
    if newest == pinned and sha256 != known:
        raise WarpbedError(
            f"{file}: not the package that kernels/series.json names (its SHA-256 is {sha256}); delete it"
        )
    note = unchecked_note(file)
    return Source("deb", file, series, sha256, newest, tuple(note.read_text().splitlines()) if note.exists() else ())


def unchecked_note(package: Path) -> Path:
    """The file beside a package that says which of apt's checks were off when it was fetched."""
    return package.with_name(f"{package.name}.unchecked")


def _compare_versions(a: str, b: str) -> int:
    """By Debian's rules, in which ~ sorts before nothing."""
    earlier = subprocess.run(["dpkg", "--compare-versions", a, "lt", b], check=False).returncode == 0
    return -1 if earlier else int(a != b)


def _file_hash(path: Path, cache: Path) -> str:
    stat = path.stat()
    question = ["sha256", str(path), stat.st_size, stat.st_mtime_ns]
    if not (known := recall(cache, question)):
        known = {"sha256": sha256_of(path)}
        remember(cache, question, known)
    return str(known["sha256"])


def _tarball(path: Path, cache: Path) -> Source:
    sha256 = _file_hash(path, cache)
    if not (known := recall(cache, ["release", sha256])):
        known = {"release": _release(_makefile_in(path), path)}
        remember(cache, ["release", sha256], known)
    return _with_release("tarball", path, sha256, str(known["release"]))


def _makefile_in(path: Path) -> str:
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                if re.fullmatch(r"(\./)?[^/]+/Makefile", member.name) and (file := archive.extractfile(member)):
                    return file.read(4096).decode(errors="replace")
    except tarfile.TarError as error:
        raise UsageError(f"{path}: not a readable tar archive: {error}") from error
    raise UsageError(f"{path}: holds no <folder>/Makefile, so it is not a kernel source")


def _tree(path: Path, cache: Path) -> Source:
    makefile = path / "Makefile"
    if not makefile.is_file() or not (path / "arch/um").is_dir():
        raise UsageError(f"{path}: holds no Makefile or no arch/um, so it is not a kernel source")
    state = hashlib.sha256()
    files = []
    for name in _files_below(path):
        stat = (path / name).lstat()
        state.update(f"{name}\0{stat.st_mode}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
        files.append(name)
    question = ["tree", str(path), state.hexdigest()]
    if not (known := recall(cache, question)):
        content = hashlib.sha256()
        for name in files:
            file = path / name
            value = f"link {file.readlink()}" if file.is_symlink() else sha256_of(file)
            content.update(f"{name}\0{file.lstat().st_mode & 0o111:o}\0{value}\n".encode())
        known = {"sha256": content.hexdigest()}
        remember(cache, question, known)
    release = _release(makefile.read_text(errors="replace"), path)
    return _with_release("tree", path, str(known["sha256"]), release)


def _files_below(path: Path) -> list[str]:
    """Every file and link below a folder, in order, without git's own."""
    files = []
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name != ".git"]
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        files += [os.path.relpath(Path(folder) / name, path) for name in [*names, *links] if name != ".git"]
    return sorted(files)


def _release(makefile: str, place: Path) -> str:
    numbers = [
        re.search(rf"^{key}\s*=\s*(\d+)\s*$", makefile, re.MULTILINE) for key in ("VERSION", "PATCHLEVEL", "SUBLEVEL")
    ]
    if not all(numbers):
        raise UsageError(f"{place}: its Makefile names no VERSION, PATCHLEVEL and SUBLEVEL")
    return ".".join(match[1] for match in numbers if match)


def _with_release(kind: str, path: Path, sha256: str, release: str) -> Source:
    return Source(kind, path, ".".join(release.split(".")[:2]), sha256, release)
