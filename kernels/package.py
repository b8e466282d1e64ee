# SPDX-License-Identifier: Apache-2.0
"""Debian packages of an x86-64 build, for machines with a boot loader: the kernel, and the project's modules for it.

The kernel's is made by the kernel's own `make bindeb-pkg` in the tree that was just compiled. Its release ends in the
kernel's key, so that builds lie side by side on a machine and `uname -r` says which one runs.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from kernels.errors import BuildError
from kernels.steps import Steps

PROGRAMS = {"dh_builddeb": "debhelper", "dpkg-buildpackage": "build-essential", "rsync": "rsync"}
"""What packing needs besides what compiling does, and the Debian packages that have it."""
# the kernel's headers and its debugging symbols would only cost time: modules are built in the cache
PROFILES = "pkg.linux-upstream.nokernelheaders pkg.linux-upstream.nokerneldbg"
WANTED = "export INITRD=Yes"
SCRIPT = """\
#!/bin/sh
set -e
if [ -d /lib/modules/{release} ]; then depmod {release}; fi
"""


def local_version(kernel_key: str) -> str:
    """What the kernel's release ends in."""
    return f"-warpbed-{kernel_key[:8]}"


def pack_kernel(tree: Path, target: Path, make: tuple[str, ...], local: str, steps: Steps) -> None:
    """Pack the compiled tree as linux-image-RELEASE into the folder `target`."""
    environment = {"LOCALVERSION": local, "DEB_BUILD_PROFILES": PROFILES, "KDEB_CHANGELOG_DIST": "unstable"}
    # -d: what it would need to build anew is not looked for
    steps.run("packing the kernel", *make, "bindeb-pkg", "DPKG_FLAGS=-d", cwd=tree, env=environment)
    release = release_of(tree)
    packages = [path for path in tree.parent.glob("*.deb") if path.name.startswith(f"linux-image-{release}_")]
    if len(packages) != 1:
        raise BuildError(f"make bindeb-pkg left {len(packages)} packages linux-image-{release}, not one")
    target.mkdir()
    shutil.move(packages[0], target / packages[0].name)
    _without_initial_ram_disk(target / packages[0].name, steps)
    for pattern in ("*.deb", "*.changes", "*.buildinfo"):
        for path in tree.parent.glob(pattern):
            path.unlink()


def _without_initial_ram_disk(package: Path, steps: Steps) -> None:
    """Let a machine that installs the kernel make no initial RAM disk for it.

    All that finds a root is built in. That the kernel can unpack such a disk, for machines whose root is in memory, is what
    the scripts of `make bindeb-pkg` tell the distribution's hooks as "one is wanted".
    """
    root = package.with_suffix("")
    steps.run("unpacking the kernel's package", "dpkg-deb", "--raw-extract", package, root, cwd=package.parent)
    for name in ("postinst", "postrm", "preinst", "prerm"):
        script = root / "DEBIAN" / name
        text = script.read_text()
        if text.count(WANTED) != 1:
            raise BuildError(f"make bindeb-pkg made a {name} that does not say '{WANTED}'")
        script.write_text(text.replace(WANTED, "export INITRD=No"))
    steps.run(
        "packing the kernel again", "dpkg-deb", "--root-owner-group", "--build", root, package, cwd=package.parent
    )
    shutil.rmtree(root)


def pack_modules(work: Path, tree: Path, key: str, steps: Steps) -> None:
    """Pack the modules in work/modules as warpbed-modules-RELEASE into the folder work/packages."""
    release = release_of(tree)
    name, root = f"warpbed-modules-{release}", work / "packed"
    place = root / "lib/modules" / release / "updates/warpbed"
    place.mkdir(parents=True)
    for module in sorted((work / "modules").glob("*.ko")):
        shutil.copy(module, place / module.name)
    control = root / "DEBIAN"
    control.mkdir()
    (control / "control").write_text(
        f"Package: {name}\nVersion: 1+{key}\nArchitecture: amd64\nSection: kernel\nPriority: optional\n"
        f"Maintainer: Warpbed <warpbed@localhost>\nDepends: linux-image-{release}, kmod\n"
        f"Description: Warpbed's kernel modules for Linux {release}\n"
    )
    for script in ("postinst", "postrm"):
        (control / script).write_text(SCRIPT.format(release=release))
        (control / script).chmod(0o755)
    for folder in (root, *(path for path in root.rglob("*") if path.is_dir())):
        folder.chmod(0o755)  # whatever the user's umask
    (work / "packages").mkdir(exist_ok=True)
    target = work / "packages" / f"{name}_1+{key}_amd64.deb"
    steps.run("packing the modules", "dpkg-deb", "--root-owner-group", "--build", root, target, cwd=work)
    shutil.rmtree(root)


def release_of(tree: Path) -> str:
    """The release (`uname -r`) of a compiled kernel."""
    return (tree / "include/config/kernel.release").read_text().strip()
