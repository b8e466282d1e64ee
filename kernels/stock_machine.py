# SPDX-License-Identifier: Apache-2.0
"""A Debian suite's own kernel as a build that virtual machines boot.

    python -m kernels.stock_machine bookworm [--without-modules]

prints its folder, for WARPBED_TEST_X86_KERNEL. `linux`, `modules/` and `build.json` are as in every build (docs/architecture.md), the
modules made by the suite's own DKMS and compiler (kernels.stock), and `system/` has the distribution's modules that a network needs,
which that kernel loads by itself. The packages come from where this machine takes its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from base.cache import aside, digest, remove, sha256_of
from base.errors import UsageError, WarpbedError
from base.paths import cache_dir
from kernels import suite_packages
from kernels.errors import BuildError
from kernels.stock import build as build_modules
from kernels.stock import unpack as unpack_headers

RECIPE = 1
MODULES = (
    "arch/x86/crypto", "crypto", "lib", "net",
    "drivers/block/virtio_blk.ko", "drivers/net/dummy.ko", "drivers/net/ifb.ko", "drivers/net/veth.ko",
    "drivers/virtio",
)  # fmt: skip
"""Of the distribution's, below its folder `kernel`; with the compression's ending where they have one."""
SYSTEM = "system"


def image(suite: str, cache: Path, own_modules: bool = True) -> Path:
    """The build's folder, made where the suite's newest kernel is not there yet.

    own_modules: with the project's modules, for which headers and a compiler are fetched (minutes); else none
    """
    work = cache / "stock" / f".image-{suite_packages.checked_suite(suite)}-{os.getpid()}"
    try:
        debs = suite_packages.download(suite, ("linux-image-amd64",), work, f"the kernel of {suite}")
        images = [deb for deb in debs if deb.name.startswith("linux-image-") and "linux-image-amd64" not in deb.name]
        if len(images) != 1:
            raise BuildError(f"{suite}: linux-image-amd64 brings {', '.join(d.name for d in images) or 'no kernel'}")
        return of_package(images[0], cache, suite if own_modules else None)
    finally:
        remove(work)


def of_package(package: Path, cache: Path, suite: str | None) -> Path:
    """The build's folder for a package linux-image-RELEASE. suite: whose headers and compiler make the modules; None: none are"""
    modules = _modules(suite, cache) if suite else {}
    sums = {name: sha256_of(path) for name, path in sorted(modules.items())}
    key = digest([RECIPE, sha256_of(package), MODULES, sums])[:20]
    final = cache / "kernels" / key
    with aside(final, marker="build.json") as folder:
        if folder:
            _lay_out(package, folder[0], key, modules)
    return final


def _modules(suite: str, cache: Path) -> dict[str, Path]:
    """File name → the project's module that the suite's DKMS has made."""
    build_modules(suite, cache=cache)
    modules = sorted((unpack_headers(suite, cache) / "usr/lib/modules").rglob("updates/**/*.ko*"))
    return {path.name: path for path in modules}


def _lay_out(package: Path, place: Path, key: str, modules: dict[str, Path]) -> None:
    tree = place / "package"
    subprocess.run(["dpkg-deb", "-x", package, tree], check=True)
    (kernel,) = (tree / "boot").glob("vmlinuz-*")
    release = kernel.name.removeprefix("vmlinuz-")
    kernel.rename(place / "linux")
    shutil.move(next((tree / "boot").glob("config-*")), place / "config")
    source = next(path for path in (tree / "lib/modules", tree / "usr/lib/modules") if path.is_dir()) / release
    target = place / SYSTEM / "usr/lib/modules" / release
    for name in MODULES:
        for module in sorted((source / "kernel").glob(f"{name}*" if name.endswith(".ko") else name)):
            there = target / "kernel" / module.relative_to(source / "kernel")
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(module, there)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(source / name, target / name)
    (place / SYSTEM / "lib").symlink_to("usr/lib")  # depmod looks there
    subprocess.run(["depmod", "-b", place / SYSTEM, release], check=True, capture_output=True)
    (place / SYSTEM / "lib").unlink()
    (place / "modules").mkdir()
    rows = [_module(path, place / "modules") for path in modules.values()]
    facts = {
        "format": 1,
        "arch": "x86",
        "key": key,
        "kernel_key": key,
        "kernel_release": release,
        "series": ".".join(release.split(".")[:2]),
        "source": {"kind": "distribution", "package": package.name.partition("_")[0], "file": package.name,
                   "version": package.name.split("_")[1], "sha256": sha256_of(package)},
        "patches": [],
        "modules": rows,
    }  # fmt: skip
    remove(tree)
    (place / "build.json").write_text(json.dumps(facts, indent=2) + "\n")


def _module(path: Path, folder: Path) -> dict[str, str]:
    """Put a module there, uncompressed; returns its name and srcversion."""
    name = path.name.partition(".")[0]
    file = folder / f"{name}.ko"
    if path.suffix == ".xz":
        with file.open("wb") as out:
            subprocess.run(["xz", "-dc", path], stdout=out, check=True)
    else:
        shutil.copy(path, file)
    said = subprocess.run(["modinfo", "-F", "srcversion", file], check=True, capture_output=True, text=True)
    return {"name": name, "file": file.name, "srcversion": said.stdout.strip()}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make a Debian suite's kernel ready for virtual machines.")
    parser.add_argument("suite", metavar="SUITE", help="bookworm, trixie, sid …")
    parser.add_argument("--without-modules", action="store_true", help="none of the project's; no compiler is fetched")
    parser.add_argument("--cache", type=Path, default=cache_dir(), help="default: %(default)s")
    options = parser.parse_args(argv)
    try:
        print(image(options.suite, options.cache, not options.without_modules))
    except (WarpbedError, OSError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
