# SPDX-License-Identifier: Apache-2.0
"""The root image of virtual machines: Debian packages of this machine's release, a host key and a login key of its own.

    python3 -P -m hosts.vm.image [--key]      build it (or only say where it would be); prints JSON

Standard library only: the role vm_image runs it with the distribution's Python. It appears in the cache by rename,
`vm/<key>/`: root.ext2, known_hosts, id_ed25519 (the machines' login key), image.json (packages and versions).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from base.cache import aside, digest, sha256_of, used
from base.errors import WarpbedError
from base.paths import cache_dir
from kernels.apt_sources import debian_archive, read_entries
from kernels.errors import BuildError
from kernels.steps import Steps, end_with_caller

RECIPE = 3
FILES = Path(__file__).parent / "files"
HOST_ALIAS = "warpbed-vm"
PACKAGES = (
    # the system: no systemd, busybox is the first process
    "busybox", "ca-certificates-", "chrony", "iproute2", "kmod", "openssh-server", "procps", "python3", "udev-",
    # what the agent runs, as in the role bootstrap
    "bridge-utils", "ethtool", "iperf3", "iputils-ping", "mininet", "net-tools", "tcpdump", "util-linux",
)  # fmt: skip
"""Debian packages; a name that ends in - is kept out."""
MODES = {"boot": 0o755, "clock": 0o755, "inittab": 0o644, "sshd_config": 0o644, "chrony.conf": 0o644}
PLACES = {"inittab": "etc/inittab", "sshd_config": "etc/ssh/sshd_config"}


def release() -> str:
    """Code name of this machine's Debian release."""
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    raise WarpbedError("/etc/os-release names no Debian release; images are made of Debian's packages")


def key() -> str:
    """What the image is made from."""
    files = {path.name: sha256_of(path) for path in sorted(FILES.iterdir())}
    return digest([RECIPE, release(), PACKAGES, files])[:20]


def folder(cache: Path) -> Path:
    return cache / "vm" / key()


def build(cache: Path) -> tuple[Path, bool]:
    """The folder of the image, and whether it had to be made."""
    final = folder(cache)
    log = cache / "vm/.logs" / f"{final.name}.log"
    changed = False
    with aside(final, marker="image.json") as place:
        if place is None:
            used(final)
        else:
            work, lock = place
            work.chmod(0o700)  # it will hold private keys
            _build(work, Steps(log, lock))
            changed = True
    log.unlink(missing_ok=True)
    return final, changed


def _build(work: Path, steps: Steps) -> None:
    for name, errors in (("host", HOST_ALIAS), ("login", "warpbed")):
        command = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", errors, "-f", work / name)
        steps.run("making a key", *command, cwd=work)
    (work / "known_hosts").write_text(f"{HOST_ALIAS} {(work / 'host.pub').read_text()}")
    (work / "sources").write_text(sources())
    tree = work / "files"
    _lay_out(work, tree)
    include = ",".join(name for name in PACKAGES if not name.endswith("-"))
    hooks = [
        f'--customize-hook=copy-in "{tree}/etc" /',
        # programs that look for it find busybox as the first process; nothing of the package lists is needed again
        '--customize-hook=chroot "$1" ln -sf /bin/busybox /sbin/init',
        '--customize-hook=rm -rf "$1"/usr/share/doc/* "$1"/usr/share/man/* "$1"/usr/share/locale/*',
        '--customize-hook=chroot "$1" dpkg-query --show > "' + str(work / "packages") + '"',
    ]
    steps.run(
        "making the root image",
        *in_own_mounts(),
        "mmdebstrap",
        "--variant=apt",
        f"--include={include}",
        "--aptopt=APT::Install-Recommends false",
        "--aptopt=Acquire::Languages none",
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--format=ext2",
        *hooks,
        release(),
        work / "root.ext2",
        work / "sources",
        cwd=work,
        env={"TMPDIR": str(work)},
    )
    (work / "root.ext2").chmod(0o600)
    versions = dict(line.split("\t") for line in (work / "packages").read_text().splitlines())
    for name in ("host", "host.pub", "login.pub", "sources", "packages"):
        (work / name).unlink()
    shutil.rmtree(tree)
    (work / "login").rename(work / "id_ed25519")
    facts = {
        "format": 1,
        "key": key(),
        "release": release(),
        "sha256": sha256_of(work / "root.ext2"),
        "packages": versions,
    }
    (work / "image.json").write_text(json.dumps(facts, indent=1) + "\n")


def _lay_out(work: Path, tree: Path) -> None:
    """The image's own files as they lie in it."""
    for name, mode in MODES.items():
        target = tree / PLACES.get(name, f"etc/warpbed/{name}")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FILES / name, target)
        target.chmod(mode)
    shutil.copy(work / "host", tree / "etc/ssh/ssh_host_ed25519_key")
    shutil.copy(work / "host.pub", tree / "etc/ssh/ssh_host_ed25519_key.pub")
    (tree / "etc/ssh/ssh_host_ed25519_key").chmod(0o600)
    for folder in (tree, tree / "etc", tree / "etc/ssh", tree / "etc/warpbed"):
        folder.chmod(0o755)  # whatever the user's umask: it becomes the machine's /etc
    shutil.copy(work / "login.pub", tree / "etc/warpbed/authorized_keys")
    (tree / "etc/warpbed/authorized_keys").chmod(0o600)


def sources() -> str:
    """Where this machine takes its own release from: same mirror, same signing keys."""
    assignments = subprocess.run(
        ["apt-config", "shell", "list", "Dir::Etc::sourcelist/f", "parts", "Dir::Etc::sourceparts/d"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    places = dict(line.split("=", 1) for line in assignments.splitlines())
    list_file, parts = (Path(places[name].strip("'")) for name in ("list", "parts"))
    return debian_archive(read_entries(list_file, parts), release()).for_suite(release())


def in_own_mounts() -> tuple[str, ...]:
    """What starts mmdebstrap: as root it mounts below the folder that it works in, which must end with it however it ends.

    As another user it makes namespaces of its own.
    """
    return ("unshare", "--mount", "--propagation", "private") if os.geteuid() == 0 else ()


def main(argv: list[str] | None = None) -> int:
    """Build, and print where as JSON."""
    parser = argparse.ArgumentParser(description="Build the root image of virtual machines.")
    parser.add_argument("--cache", type=Path, default=cache_dir(), help="default: %(default)s")
    parser.add_argument("--key", action="store_true", help="only say where it is, or would be")
    options = parser.parse_args(argv)
    try:
        if options.key:
            path = folder(options.cache)
            print(json.dumps({"path": str(path), "exists": (path / "image.json").is_file()}))
            return 0
        end_with_caller()
        missing = [name for name in ("mmdebstrap", "genext2fs", "ssh-keygen") if shutil.which(name) is None]
        if missing:
            raise BuildError(
                f"{' '.join(missing)}: not installed; the role bootstrap installs what virtual machines need"
            )
        path, changed = build(options.cache)
        facts: dict[str, Any] = json.loads((path / "image.json").read_text())
        print(json.dumps({"changed": changed, "path": str(path), "key": facts["key"], "release": facts["release"]}))
    except (WarpbedError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
