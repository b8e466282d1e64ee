# SPDX-License-Identifier: Apache-2.0
"""The guest's own user land: Debian packages pinned by version and SHA-256, unpacked into a folder of the cache.

    python3 -P -m hosts.virtual.pinned [--ask | --lock]    make it (or say whether it is there; or pin today's versions); prints JSON

A guest that had this machine's programs would send other packets with another iperf3. The packages are those of one Debian release,
whatever this machine has; they come from where this machine takes its own, and from then on from the cache. WARPBED_USERLAND=host
takes this machine's file system instead. Standard library only: a role runs it with the distribution's Python.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from base.cache import aside, digest, remove, sha256_of, used
from base.errors import UsageError, WarpbedError
from base.paths import cache_dir
from kernels import suite_packages
from kernels.errors import BuildError
from kernels.steps import end_with_caller

SETTING = "WARPBED_USERLAND"
CHOICES = ("pinned", "host")
HERE = Path(__file__).parent
LOCK = HERE / "pinned_packages.json"
START = HERE / "start.py"
RECIPE = 1
WANTED = (
    *(
        "?essential",
        "bridge-utils",
        "ethtool",
        "iperf3",
        "iproute2",
        "iputils-ping",
        "kmod",
        "mininet",
        "net-tools",
        "netbase",
    ),
    *("nginx", "procps", "python3", "tcpdump", "util-linux"),
)
UNUSED = (
    *(
        "usr/lib/udev/hwdb.d",
        "usr/share/doc",
        "usr/share/i18n",
        "usr/share/info",
        "usr/share/lintian",
        "usr/share/locale",
    ),
    "usr/share/man",
)
FOLDERS = (
    "dev",
    "home",
    "mnt",
    "proc",
    "run",
    "sys",
    "tmp",
    "root",
    "var/tmp",
    "var/log/nginx",
    "var/lib/nginx",
    "warpbed/checkout",
)
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nprotocols: files\nservices: files\n",
}
COMPILE = "python3 -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python3 /usr/lib/python3.* >/dev/null"
MARKER = "warpbed/packages.json"


@dataclass(frozen=True)
class Package:
    """One pinned package."""

    name: str
    version: str
    sha256: str


def pinned() -> list[Package]:
    """The packages that the lock file names."""
    return [Package(*row) for row in json.loads(LOCK.read_text())["packages"]]


def suite() -> str:
    """The Debian release that they are of."""
    return str(json.loads(LOCK.read_text())["suite"])


def key() -> str:
    """Identifies the folder: packages, recipe and the file that a guest starts with."""
    return digest([RECIPE, LOCK.read_text(), sha256_of(START), UNUSED, FOLDERS, FILES, COMPILE])[:20]


def is_wanted() -> bool:
    """Whether guests get the pinned user land; raises UsageError for another value of the setting."""
    chosen = os.environ.get(SETTING) or CHOICES[0]
    if chosen not in CHOICES:
        raise UsageError(f"{SETTING} is {chosen!r}; it can be {' or '.join(CHOICES)}")
    return chosen == CHOICES[0]


def place() -> Path:
    """Where the folder is, or would be."""
    return cache_dir() / "userland" / key()


def root() -> Path | None:
    """The folder, None where guests get this machine's file system; raises WarpbedError where it has not been made yet."""
    if not is_wanted():
        return None
    folder = place()
    if not (folder / MARKER).exists():
        raise WarpbedError(
            "the guests' user land has not been built; ./warpbed run builds it, WARPBED_USERLAND=host uses this machine's"
        )
    return used(folder)


@functools.cache
def versions(folder: Path) -> dict[str, str]:
    """Package → version in a folder."""
    return dict(json.loads((folder / MARKER).read_text()))


def build() -> tuple[Path, bool]:
    """The folder, and whether it had to be made.

    Raises WarpbedError where the archive has another version now, or a file is not the one that was pinned.
    """
    final, changed = place(), False
    with aside(final, marker=MARKER) as folder:
        if folder:
            _build(folder[0])
            changed = True
    return final, changed


def _build(tree: Path) -> None:
    work = tree / ".fetched"
    packages = pinned()
    purpose = f"the guests' user land, {LOCK.name} ({SETTING}=host takes this machine's)"
    exact = [f"{package.name}={package.version}" for package in packages]
    debs = suite_packages.download(suite(), exact, work, purpose)
    sums = {package.name: package.sha256 for package in packages}
    for deb in debs:
        if sums.pop(deb.name.partition("_")[0], None) != sha256_of(deb):
            raise WarpbedError(
                f"{deb.name} is not the package that {LOCK.name} pins; {SETTING}=host takes this machine's user land"
            )
    if sums:
        raise WarpbedError(
            f"{LOCK.name}: {', '.join(sums)}: pinned, but not fetched; {SETTING}=host takes this machine's user land"
        )
    suite_packages.unpack(debs, tree)
    remove(work)
    for name in UNUSED:
        remove(tree / name)
    for name in FOLDERS:
        (tree / name).mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (tree / name).write_text(text)
    shutil.copy(START, tree / "warpbed/start.py")
    with contextlib.suppress(BuildError):  # without namespaces Python compiles its library at each start
        suite_packages.inside(tree, COMPILE, "compiling Python's library")
    marker = {package.name: package.version for package in packages}
    (tree / MARKER).write_text(json.dumps(marker, indent=1) + "\n")


def lock() -> None:
    """Pin the versions that the archive has now."""
    work = cache_dir() / "userland" / f".lock-{os.getpid()}"
    try:
        debs = suite_packages.download(suite(), WANTED, work, "the guests' user land")
        rows = []
        for deb in debs:
            fields = subprocess.run(
                ["dpkg-deb", "--show", "--showformat=${Package}\\t${Version}", deb],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            rows.append([*fields.split("\t"), sha256_of(deb)])
    finally:
        remove(work)
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    LOCK.write_text(f'{{\n "suite": "{suite()}",\n "packages": [\n{lines}\n ]\n}}\n')


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Make the guests' user land.")
    parser.add_argument("--ask", action="store_true", help="only say whether it is wanted and there")
    parser.add_argument("--lock", action="store_true", help="pin the versions that the archive has now")
    options = parser.parse_args(arguments)
    try:
        if options.lock:
            lock()
            return 0
        if options.ask:
            print(json.dumps({"missing": is_wanted() and not (place() / MARKER).exists()}))
            return 0
        end_with_caller()
        path, changed = build()
    except (WarpbedError, OSError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps({"changed": changed, "path": str(path)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
