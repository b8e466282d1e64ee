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
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from base.cache import aside, digest, remove
from base.errors import UsageError, WarpbedError
from base.paths import ROOT, cache_dir
from kernels import suite_packages
from kernels.build_key import module_sources

PACKAGES = ("linux-headers-amd64", "dkms", "gcc", "make", "libc6-dev", "kmod", "libelf1", "?essential")
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
    work = cache / "stock" / f".apt-{suite_packages.checked_suite(suite)}-{os.getpid()}"
    try:
        debs = suite_packages.download(suite, PACKAGES, work, f"the kernel headers of {suite}")
        final = cache / "stock" / f"{suite}-{digest([deb.name for deb in debs])[:16]}"
        with aside(final, marker="packages.json") as place:
            if place:
                _unpack_all(debs, place[0])
    finally:
        remove(work)
    return final


def _unpack_all(debs: list[Path], root: Path) -> None:
    suite_packages.unpack(debs, root)
    (root / "var/lib/dkms").mkdir(parents=True, exist_ok=True)
    (root / "packages.json").write_text(json.dumps([deb.name for deb in debs], indent=1) + "\n")


def inside(root: Path, script: str) -> str:
    """Run a script in the suite's tree; returns what it printed."""
    return suite_packages.inside(root, script, "building the modules")


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
