# SPDX-License-Identifier: Apache-2.0
"""Debian packages of any suite, fetched and unpacked into a folder as any user, without touching the machine's apt.

The archive is the one from which this machine takes its own release (kernels.apt_sources). No package's installation scripts run.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from base.errors import UsageError, WarpbedError
from kernels.errors import BuildError
from kernels.fetch import PRIVATE_APT, machine_archive, why
from kernels.steps import telling_lines

SUITE = re.compile(r"[a-z][a-z-]{1,40}")
ALTERNATIVES = {"awk": "mawk", "cc": "gcc", "which": "which.debianutils"}
"""What packages leave to their installation scripts."""
MERGED = ("bin", "sbin", "lib", "lib64")
CHROOT = """\
mount --rbind /dev dev && mount -t proc proc proc && mount -t tmpfs tmpfs tmp &&
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C TERM=dumb chroot . /bin/bash -euc "$1"
"""


def checked_suite(suite: str) -> str:
    """The suite; raises UsageError where it cannot be one."""
    if not SUITE.fullmatch(suite):
        raise UsageError(f"suite {suite!r} is not the name of one, such as bookworm, trixie, trixie-backports or sid")
    return suite


def download(suite: str, packages: Sequence[str], work: Path, purpose: str) -> list[Path]:
    """The packages (`name` or `name=version`) with what they depend on, as .deb files in a folder of `work`, sorted.

    purpose: what is fetched, for the message. Raises WarpbedError with apt's reason.
    """
    archive, _ = machine_archive()
    for folder in ("sources", "lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True)
    bases = [checked_suite(suite).removesuffix("-backports"), suite]  # backports have the kernel, not the compiler
    (work / "sources/debian.sources").write_text("\n".join(archive.for_suite(name) for name in dict.fromkeys(bases)))
    (work / "status").touch()
    private = PRIVATE_APT.format(work=work) + f'Dir::State::status "{work}/status";\nDebug::NoLocking "true";\n'
    (work / "apt.conf").write_text(private)
    install = ["install", "--download-only", "--yes", "--target-release", suite, *packages]
    for arguments in (["update", "--error-on=any"], install):
        command = ["apt-get", "--config-file", str(work / "apt.conf"), "--quiet", "--no-install-recommends", *arguments]
        completed = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
        if completed.returncode:
            raise WarpbedError(f"cannot fetch {purpose}: {why(completed.stderr)}")
    return sorted((work / "cache/archives").glob("*.deb"))


def unpack(debs: Iterable[Path], root: Path) -> None:
    """Unpack packages into the root of a file system whose /bin, /sbin and /lib* lie in /usr."""
    for name in MERGED:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for name in ("dev", "proc", "tmp", "root", "etc"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for deb in debs:
        script = 'dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink --no-same-owner -C "$2"'
        subprocess.run(["bash", "-euo", "pipefail", "-c", script, "unpack", deb, root], check=True)
    for name, target in ALTERNATIVES.items():
        if not (root / "usr/bin" / name).exists():
            (root / "usr/bin" / name).symlink_to(target)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    (root / "etc/group").write_text("root:x:0:\n")


def inside(root: Path, script: str, purpose: str) -> str:
    """Run a script with `root` as the root of its file system; returns what it printed.

    purpose: what the script does, for the message. Raises BuildError with its words.
    """
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    completed = subprocess.run(
        ["unshare", *user, "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", CHROOT, "chroot", script],
        cwd=root,
        capture_output=True,
        text=True,
        errors="replace",
    )
    output = completed.stdout + completed.stderr
    if completed.returncode:
        raise BuildError(f"{purpose} in {root.name} failed:\n{telling_lines(output)}")
    return output
