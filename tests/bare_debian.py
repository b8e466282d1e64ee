# SPDX-License-Identifier: Apache-2.0
"""Try commands on a bare Debian: a minimal root of a suite with a clone of this checkout's commit in it, and nothing else.

    ./warpbed exec python -P -m tests.bare_debian trixie './warpbed run experiments/quickstart.yml' './warpbed test --quick'

As root, with mmdebstrap. The root's packages come from where this machine's own apt takes Debian's. It has namespaces of its own for
mounts, processes, names and messages, and this machine's network. All of it ends and is removed with this program, however that ends.
With --user the commands are an ordinary user's; what they ask for as root ("As root: apt-get …") is done as root, and the command
is then repeated. Ends with the first exit code that is not 0.

Both README's commands take more than an hour, and had taken 21 GB by half of the tests. --keep FOLDER leaves the root there, for a
further attempt with the same option: its clone is then brought to this checkout's commit, and what was installed, built and cached stays.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from base.linux import die_with_parent
from base.paths import ROOT
from base.watcher import remove_folder, watching
from hosts.vm.image import sources

PACKAGES = "ca-certificates,git"
"""Beside what `minbase` holds: pip and cargo fetch over TLS, and who has a clone has git."""
PASSED = re.compile(
    r"(?i)(https?|no|all|ftp)_proxy|PIP_(CERT|INDEX_URL|EXTRA_INDEX_URL|DEFAULT_TIMEOUT)|SSL_CERT_FILE|REQUESTS_CA_BUNDLE"
)
"""Variables that say how to reach the network."""
COPIED = ("etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt", "etc/pip.conf")
MOST_REPEATS = 4
LEAST_FREE_BYTES = 30_000_000_000
"""Both README's commands had taken 21 GB by half of the tests, tests' folders and caches included."""
ASKS_ROOT = re.compile(r"As root: (apt-get install .+)")

ENTER = """
set -e
root=$1; shift
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
for name in null zero full random urandom tty fuse kvm net/tun; do
    [ -e /dev/$name ] || continue
    mkdir -p "dev/$(dirname $name)"; : >dev/$name; mount --bind /dev/$name dev/$name
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx; ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=1777 tmpfs dev/shm
if [ "$CACHE" ]; then mkdir -p home/cache; mount --bind "$CACHE" home/cache; fi
mkdir .old
pivot_root . .old
cd /
umount -l .old
rmdir .old
hostname bare
set +e
"$@"  # not exec: this shell is the first process and collects what is left without a parent
"""
"""A pivot, not a chroot: in one the kernel allows no user namespaces, which guests are caged in."""


def make(root: Path, suite: str) -> None:
    """A minimal Debian with a clone of the checkout; of one that is there already, the clone is brought up to date."""
    place = root / "srv/warpbed"
    if place.is_dir():
        trusted = ["git", "-c", f"safe.directory={place}", "-C", str(place)]
        subprocess.run([*trusted, "fetch", "--quiet", str(ROOT), "HEAD"], check=True, stdout=sys.stderr)
        subprocess.run([*trusted, "reset", "--quiet", "--hard", "FETCH_HEAD"], check=True, stdout=sys.stderr)
        return
    stanza = re.sub(r"^Suites:.*$", f"Suites: {suite}", sources(), flags=re.MULTILINE)
    listing = root.with_name("sources")
    listing.write_text(stanza)
    arguments = [
        "--variant=minbase",
        f"--include={PACKAGES}",
        "--aptopt=Acquire::Languages none",
        suite,
        str(root),
        str(listing),
    ]
    # processes of its own as well, so that none of them goes on writing when this one is killed
    apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
    subprocess.run([*apart, "mmdebstrap", "--quiet", *arguments], check=True, preexec_fn=die_with_parent)
    for name in COPIED:
        if Path("/", name).is_file():
            (root / name).unlink(missing_ok=True)
            (root / name).write_bytes(Path("/", name).read_bytes())
    clone = ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(place)]
    subprocess.run(clone, check=True, stdout=sys.stderr)


def inside(root: Path, command: str, user: str, cache: Path | None) -> tuple[int, str]:
    """Run a shell's command in the root as a user; prints what it prints, and returns its exit code and all that it printed."""
    home = "/root" if user == "root" else f"/home/{user}"
    environment = {name: value for name, value in os.environ.items() if PASSED.fullmatch(name)}
    environment |= {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": home,
        "USER": user,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }
    if cache:
        environment["WARPBED_CACHE"] = "/home/cache"
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--kill-child", "--propagation", "private"]
    as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user != "root" else []
    process = subprocess.Popen(
        [*namespaces, "env", f"CACHE={cache or ''}", "sh", "-c", ENTER, "sh", str(root), *as_user, "sh", "-c", command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=die_with_parent,
    )
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    return process.wait(), "".join(lines)


def attempt(root: Path, command: str, user: str, cache: Path | None) -> int:
    """Run one of the commands, with what it asks for done as root."""
    line = f"cd /srv/warpbed && {command}"
    for _ in range(MOST_REPEATS):
        code, printed = inside(root, line, user, cache)
        asked = ASKS_ROOT.search(printed)
        if user == "root" or code != 2 or asked is None:
            return code
        print(f"bare_debian: as root: {asked[1]}", flush=True)
        if inside(root, f"apt-get -qq update && DEBIAN_FRONTEND=noninteractive {asked[1]} -qq -y", "root", None)[0]:
            return 1
    return 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", help="bookworm, trixie, …")
    parser.add_argument("commands", nargs="+", help="shell commands, one after another, in the clone")
    parser.add_argument("--user", action="store_true", help="run them as an ordinary user")
    parser.add_argument("--cache", type=Path, help="folder that is Warpbed's cache there (default: a new one)")
    parser.add_argument("--keep", type=Path, help="folder in which the root stays, and is found again")
    parser.add_argument("--folder", default="/var/tmp", help="where the root is made (default: %(default)s)")
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("making another root needs root")
    if shutil.which("mmdebstrap") is None:
        parser.error("mmdebstrap is not installed. As root: apt-get install --no-install-recommends mmdebstrap")
    place = options.keep.resolve() if options.keep else Path(options.folder)
    place.mkdir(parents=True, exist_ok=True)
    if (free := shutil.disk_usage(place).free) < LEAST_FREE_BYTES and not (place / "root").is_dir():
        print(
            f"bare_debian: {place} has {free / 1e9:.0f} GB free; all tests may take {LEAST_FREE_BYTES / 1e9:.0f}: "
            "--folder names another place",
            file=sys.stderr,
            flush=True,
        )
    folder = place if options.keep else Path(tempfile.mkdtemp(prefix="warpbed-bare-", dir=place))
    # what runs in it is killed at the same moment
    with contextlib.nullcontext() if options.keep else watching(remove_folder, str(folder)):
        root = folder / "root"
        make(root, options.suite)
        user = "guest" if options.user else "root"
        if options.user:
            inside(
                root,
                "id guest >/dev/null 2>&1 || useradd --create-home --shell /bin/sh guest; chown -R guest: /srv/warpbed",
                "root",
                None,
            )
        for command in options.commands:
            start = time.monotonic()
            code = attempt(root, command, user, options.cache and options.cache.resolve())
            print(
                f"bare_debian: {options.suite}, {user}: {command}: exit code {code} in {time.monotonic() - start:.0f} s",
                flush=True,
            )
            if code:
                return code
        return 0


if __name__ == "__main__":
    sys.exit(main())
