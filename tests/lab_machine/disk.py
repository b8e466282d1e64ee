# SPDX-License-Identifier: Apache-2.0
"""Make the disk of the test's lab machine: Debian's packages of this machine's release, among them a kernel and GRUB.

    python -m tests.lab_machine.disk [--where]      make it (or only say where it would be); prints JSON

It appears in the cache by rename, `vm/lab-<key>/`: boot.img (the boot loader's first part), disk.img (a file system without a
partition table, which our kernel does not read), known_hosts, id_ed25519.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from base.cache import aside, digest, sha256_of
from base.errors import WarpbedError
from base.paths import cache_dir
from hosts.vm import image
from kernels.steps import Steps, end_with_caller
from tests.lab_machine import warm_python

RECIPE = 1
ALIAS = "warpbed-lab"
WARM_FOLDER = warm_python.COPY.lstrip("/")
WARM_SOURCE, WARM_PYTHON = "/usr/src/warm_python.c", "/usr/bin/warm-python"
"""An interpreter for Ansible's modules, which on an emulated CPU take a second instead of three with it."""
HERE = Path(__file__).parent
INPUTS = tuple(HERE / name for name in ("boot", "disk.py", "kept_code.py", "warm_python.c", "warm_python.py"))
PACKAGES = (
    "busybox", "dkms", "e2fsprogs", "gcc", "grub-pc", "initramfs-tools", "iproute2", "kmod", "libc6-dev",
    "linux-headers-cloud-amd64",
    "linux-image-cloud-amd64", "make", "openssh-server",
    "procps", "python3", "python3-apt", "udev", "util-linux",
)  # fmt: skip
DISK_BYTES, BOOT_BYTES = 2600 << 20, 1 << 20
CORE_MODULES = (
    "biosdisk", "part_msdos", "ext2", "normal", "linux", "loadenv", "search", "search_fs_uuid", "test", "echo",
    "configfile",
    "gzio", "minicmd", "all_video", "serial",
)  # fmt: skip
UNUSED_MENUS = ("05_debian_theme", "20_linux_xen", "30_os-prober", "30_uefi-firmware", "40_custom", "41_custom")
"""Parts of update-grub that have nothing to add on this machine; each one looks at the disk anew."""
# The initial RAM disk has the modules that this machine's disk needs, no others: looking through all of them was two thirds of a
# boot's CPU time. udev stays in it: update-grub names the disk by the UUID that udev has found, as on every Debian, and a kernel
# that cannot read its initial RAM disk then does not find its root.
INITIAL_MODULES = ("virtio_pci", "virtio_blk", "virtio_rng", "crc32c_generic", "ext4")
INITIAL_SETTINGS = (
    'cd "$1" && mkdir -p etc/initramfs-tools/conf.d usr/share/initramfs-tools/modules.d'
    " && echo MODULES=list >etc/initramfs-tools/conf.d/lab"
    f" && printf '%s\\n' {' '.join(INITIAL_MODULES)} >usr/share/initramfs-tools/modules.d/lab"
)
PYTHON = "usr/lib/python3/dist-packages"
INITTAB = f"""\
::sysinit:/etc/lab/boot
::respawn:/usr/sbin/sshd -D -e
::once:/usr/bin/python3 /{WARM_FOLDER}/server.py
::shutdown:/bin/sync
"""
SHUTDOWN = """\
#!/bin/sh
# `shutdown -r`, which busybox has under another name. Debian's own unmounts the disk; here freezing it brings to their places the
# files that only the journal has, which the boot loader does not read.
sync
fsfreeze --freeze / && fsfreeze --unfreeze /
exec busybox reboot
"""
COMMAND_LINE = "console=ttyS0 loglevel=4 no_timer_check mitigations=off nokaslr norandmaps"
"""Without mitigations, which an emulated CPU pays for at each indirect call, and which protect it from nobody. With fixed
addresses, since QEMU translates a program anew for each address that it finds it at."""
DEFAULTS = (
    # a console: looking for fonts costs an emulated CPU seconds at each update-grub
    f'GRUB_TIMEOUT=0\nGRUB_TERMINAL=console\nGRUB_CMDLINE_LINUX_DEFAULT=""\nGRUB_CMDLINE_LINUX="{COMMAND_LINE}"\n'
)
FIRST_MENU = f"""\
linux /vmlinuz root=/dev/vda ro {COMMAND_LINE}
initrd /initrd.img
boot
"""
"""Only for the first boot: the machine makes its own menu (update-grub) as every Debian does."""


def where() -> Path:
    files = {path.name: sha256_of(path) for path in (*INPUTS, image.FILES / "sshd_config")}
    return cache_dir() / "vm" / f"lab-{digest([RECIPE, image.release(), files, version('ansible-core')])[:20]}"


def build() -> tuple[Path, bool]:
    """The disk's folder, and whether it had to be made."""
    final, changed = where(), False
    log = cache_dir() / "vm/.logs" / f"{final.name}.log"
    with aside(final, marker="disk.img") as place:
        if place:
            work, lock = place
            work.chmod(0o700)
            _build(work, Steps(log, lock))
            changed = True
    log.unlink(missing_ok=True)
    return final, changed


def _build(work: Path, steps: Steps) -> None:
    for name, comment in (("host", ALIAS), ("id_ed25519", "warpbed")):
        steps.run(
            "making a key", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", work / name, cwd=work
        )
    (work / "known_hosts").write_text(f"{ALIAS} {(work / 'host.pub').read_text()}")
    (work / "sources").write_text(image.sources())
    root = work / "root"
    steps.run(
        "making the lab machine's files", *image.in_own_mounts(), "mmdebstrap", "--variant=apt",
        f"--include={','.join(PACKAGES)}",
        "--aptopt=APT::Install-Recommends false", "--aptopt=Acquire::Languages none",
        *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")),
        f"--setup-hook={INITIAL_SETTINGS}",
        "--format=directory", image.release(), root, work / "sources", cwd=work, env={"TMPDIR": str(work)},
    )  # fmt: skip
    _lay_out(work, root)
    steps.run(
        "compiling warm_python.c", "chroot", root, "gcc", "-O2", "-static", *warm_python.defines(),
        "-o", WARM_PYTHON, WARM_SOURCE, cwd=work,
    )  # fmt: skip
    steps.run("compiling Python", "chroot", root, "python3", "-m", "compileall", "-q", f"/{WARM_FOLDER}", cwd=work)
    core = "/tmp/core.img"
    steps.run(
        "making the boot loader", "chroot", root, "grub-mkimage", "-O", "i386-pc", "-p", "(hd1)/boot/grub", "-o", core,
        *CORE_MODULES, cwd=work,
    )  # fmt: skip
    # the boot sector loads what follows it; the disk beside it has the rest
    loader = (root / "usr/lib/grub/i386-pc/boot.img").read_bytes() + (root / core.lstrip("/")).read_bytes()
    (work / "boot.img").write_bytes(loader.ljust(BOOT_BYTES, b"\0"))
    (root / core.lstrip("/")).unlink()
    for path in (*(root / "var/cache/apt/archives").glob("*.deb"), *(root / "var/lib/apt/lists").glob("*_*")):
        path.unlink()
    disk = work / "disk.aside"
    with open(disk, "wb") as out:
        out.truncate(DISK_BYTES)
    steps.run("making the disk", "mke2fs", "-q", "-F", "-t", "ext4", "-d", root, disk, cwd=work)
    shutil.rmtree(root)
    for name in ("host", "host.pub", "id_ed25519.pub", "sources"):
        (work / name).unlink()
    disk.chmod(0o600)
    disk.rename(work / "disk.img")


def _lay_out(work: Path, root: Path) -> None:
    files = {
        "etc/inittab": (INITTAB, 0o644),
        "sbin/shutdown": (SHUTDOWN, 0o755),
        "etc/default/grub": (DEFAULTS, 0o644),
        "boot/grub/grub.cfg": (FIRST_MENU, 0o644),
        "etc/lab/boot": ((HERE / "boot").read_text(), 0o755),
        f"{PYTHON}/kept_code.py": ((HERE / "kept_code.py").read_text(), 0o644),
        f"{PYTHON}/kept_code.pth": ("import kept_code\n", 0o644),
        WARM_SOURCE.lstrip("/"): ((HERE / "warm_python.c").read_text(), 0o644),
        f"{WARM_FOLDER}/server.py": ((HERE / "warm_python.py").read_text(), 0o644),
        "etc/ssh/sshd_config": ((image.FILES / "sshd_config").read_text(), 0o644),
        "etc/warpbed/authorized_keys": ((work / "id_ed25519.pub").read_text(), 0o600),
        "etc/ssh/ssh_host_ed25519_key": ((work / "host").read_text(), 0o600),
        "etc/fstab": ("/dev/vda / ext4 rw 0 0\n", 0o644),
    }
    for name, (text, mode) in files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.write_text(text)
        target.chmod(mode)
    (root / PYTHON / "kept_code.d").mkdir()
    _copy_ansible(root / WARM_FOLDER / "ansible")
    for name in UNUSED_MENUS:
        (root / "etc/grub.d" / name).chmod(0o644)
    (root / "sbin/init").unlink(missing_ok=True)
    (root / "sbin/init").symlink_to("/bin/busybox")
    shutil.copytree(root / "usr/lib/grub/i386-pc", root / "boot/grub/i386-pc", dirs_exist_ok=True)


def _copy_ansible(target: Path) -> None:
    """What its modules import: `module_utils`, without those for Windows."""
    spec = find_spec("ansible")
    if spec is None or spec.origin is None:
        raise WarpbedError("Ansible is not installed beside this Python")
    package = Path(spec.origin).parent
    target.mkdir()
    shutil.copy(package / "release.py", target / "__init__.py")  # the one that Ansible sends has as little
    shutil.copytree(
        package / "module_utils",
        target / "module_utils",
        ignore=shutil.ignore_patterns("*.ps1", "*.psm1", "*.cs", "__pycache__"),
    )


def main(arguments: list[str]) -> int:
    try:
        if arguments == ["--where"]:
            print(
                json.dumps(
                    {"path": str(where()), "exists": (where() / "disk.img").is_file(), "root": os.geteuid() == 0}
                )
            )
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
