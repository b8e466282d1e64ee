# SPDX-License-Identifier: Apache-2.0
"""Build the modules with DKMS for the stock kernel of a Debian suite, as any user and without installing anything.

    python -m kernels.stock bookworm trixie sid

The suite's headers, DKMS and compiler are unpacked into a folder of the cache, which serves as the root of a file
system: a kernel of Debian 13 wants the compiler of Debian 13. The archive is the one from which this machine takes
its own release (kernels.apt_sources).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from base.cache import aside, digest, remove
from base.errors import UsageError, WarpbedError
from base.paths import ROOT, cache_dir
from kernels.build_key import module_sources
from kernels.errors import BuildError
from kernels.fetch import PRIVATE_APT, machine_archive, why
from kernels.steps import telling_lines

SUITE = re.compile(r"[a-z][a-z-]{1,40}")
PACKAGES = ("linux-headers-amd64", "dkms", "gcc", "make", "libc6-dev", "kmod", "libelf1", "?essential")
ALTERNATIVES = {"awk": "mawk", "cc": "gcc", "which": "which.debianutils"}
"""What packages leave to their installation scripts, none of which is run."""
MERGED = ("bin", "sbin", "lib", "lib64")
CHROOT = """\
mount --rbind /dev dev && mount -t proc proc proc && mount -t tmpfs tmpfs tmp &&
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C TERM=dumb chroot . /bin/bash -euc "$1"
"""
DKMS = """\
dkms add -m warpbed -v 1 >/dev/null
dkms install -m warpbed -v 1 -k {release} --no-depmod >/tmp/dkms.log 2>&1 || {{
    cat /var/lib/dkms/warpbed/1/build/make.log /tmp/dkms.log; exit 1; }}
cat /var/lib/dkms/warpbed/1/{release}/x86_64/log/make.log
"""
STRICT = "make -C /lib/modules/{release}/build M=/usr/src/warpbed-1 W=1 modules"


@dataclass(frozen=True)
class Result:
    """What came out for one suite: the kernel, its headers' version, its compiler, modules built, warnings (W=1 too)."""

    suite: str
    release: str
    version: str
    compiler: str
    modules: list[str]
    warnings: list[str]


def unpack(suite: str, cache: Path) -> Path:
    """The folder with the suite's headers and tools; made where the newest versions are not there yet."""
    if not SUITE.fullmatch(suite):
        raise UsageError(f"suite {suite!r} is not the name of one, such as bookworm, trixie, trixie-backports or sid")
    work = cache / "stock" / f".apt-{suite}-{os.getpid()}"
    try:
        debs = _download(suite, work)
        final = cache / "stock" / f"{suite}-{digest([deb.name for deb in debs])[:16]}"
        with aside(final, marker="packages.json") as place:
            if place:
                _unpack_all(debs, place[0])
    finally:
        remove(work)
    return final


def _download(suite: str, work: Path) -> list[Path]:
    archive, _ = machine_archive()
    for folder in ("sources", "lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True)
    bases = [suite.removesuffix("-backports"), suite]  # backports hold the kernel, not the compiler
    (work / "sources/debian.sources").write_text("\n".join(archive.for_suite(name) for name in dict.fromkeys(bases)))
    (work / "status").touch()
    private = PRIVATE_APT.format(work=work) + f'Dir::State::status "{work}/status";\nDebug::NoLocking "true";\n'
    (work / "apt.conf").write_text(private)
    install = ["install", "--download-only", "--yes", "--target-release", suite, *PACKAGES]
    for arguments in (["update", "--error-on=any"], install):
        command = ["apt-get", "--config-file", str(work / "apt.conf"), "--quiet", "--no-install-recommends", *arguments]
        completed = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
        if completed.returncode:
            raise WarpbedError(f"cannot fetch the kernel headers of {suite}: {why(completed.stderr)}")
    return sorted((work / "cache/archives").glob("*.deb"))


def _unpack_all(debs: list[Path], root: Path) -> None:
    for name in MERGED:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for name in ("dev", "proc", "tmp", "root", "etc", "var/lib/dkms"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for deb in debs:
        script = 'dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink --no-same-owner -C "$2"'
        subprocess.run(["bash", "-euo", "pipefail", "-c", script, "unpack", deb, root], check=True)
    for name, target in ALTERNATIVES.items():
        if not (root / "usr/bin" / name).exists():
            (root / "usr/bin" / name).symlink_to(target)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "packages.json").write_text(json.dumps([deb.name for deb in debs], indent=1) + "\n")


def inside(root: Path, script: str) -> str:
    """Run a script with `root` as the root of its file system; returns what it printed.

    Raises BuildError with its words.
    """
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    completed = subprocess.run(
        ["unshare", *user, "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", CHROOT, "chroot", script],
        cwd=root, capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    output = completed.stdout + completed.stderr
    if completed.returncode:
        raise BuildError(f"building the modules in {root.name} failed:\n{telling_lines(output)}")
    return output


def build(suite: str, *, cache: Path, root: Path = ROOT) -> Result:
    """Install the modules with the suite's DKMS, and compile them once more with all of kbuild's extra warnings."""
    base = unpack(suite, cache)
    release = next(path.name for path in sorted((base / "usr/lib/modules").iterdir()) if (path / "build").is_symlink())
    version = next(
        n.split("_")[1]
        for n in json.loads((base / "packages.json").read_text())
        if n.startswith("linux-headers-amd64_")
    )
    source = base / "usr/src/warpbed-1"
    installed = base / f"usr/lib/modules/{release}/updates"
    for stale in (source, base / "var/lib/dkms/warpbed", installed):
        remove(stale)
    source.mkdir()
    for name in [*module_sources(root / "kernels/modules"), "dkms.conf"]:
        shutil.copy(root / "kernels/modules" / name, source / name)
    output = inside(base, DKMS.format(release=release)) + inside(base, STRICT.format(release=release))
    modules = sorted(path.name.partition(".")[0] for path in installed.rglob("*.ko*"))
    compiler = inside(base, "gcc --version").partition("\n")[0]
    warnings = [line for line in output.splitlines() if re.search(r"\bwarning:|^WARNING", line, re.IGNORECASE)]
    return Result(suite, release, version, compiler, modules, warnings)


def main(argv: list[str] | None = None) -> int:
    """Exit code 1 where a module is missing or the compiler has something to say."""
    parser = argparse.ArgumentParser(description="Build the modules for Debian's stock kernels.")
    parser.add_argument("suites", nargs="+", metavar="SUITE", help="bookworm, trixie, sid …")
    parser.add_argument("--cache", type=Path, default=cache_dir(), help="default: %(default)s")
    options = parser.parse_args(argv)
    names = sorted(
        Path(name).stem for name in module_sources(ROOT / "kernels/modules") if re.match(r"(tcp|warp)_.*\.c$", name)
    )
    code = 0
    for suite in options.suites:
        try:
            result = build(suite, cache=options.cache)
        except WarpbedError as error:
            print(error, file=sys.stderr)
            return 2 if isinstance(error, UsageError) else 1
        print(json.dumps(asdict(result)))
        if missing := sorted(set(names) - set(result.modules)):
            print(f"{suite}: DKMS did not install {', '.join(missing)}", file=sys.stderr)
        if missing or result.warnings:
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
