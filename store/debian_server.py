# SPDX-License-Identifier: Apache-2.0
"""TimescaleDB as Debian 13 packages it, for tests and for machines that get no image: a tree of files in the cache, and a
server in it on a Unix socket, without Docker.

    python -m store.debian_server            build the tree, print where it is
    python -m store.debian_server --where    whether it is there, as JSON

Debian's build is the Apache-licensed one: hypertables, no compression, no continuous aggregates.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from base import screen
from base.cache import aside, used
from base.errors import WarpbedError
from base.files import replace_text
from base.linux import die_with_parent
from base.paths import cache_dir
from kernels import fetch
from store.errors import StoreError, StoreUsageError

SUITE = "trixie"
PACKAGES = ("postgresql-17", "postgresql-17-timescaledb")
RECIPE = "1"
BIN = "/usr/lib/postgresql/17/bin"
START_TIMEOUT_S = 60
SETTINGS = {
    "listen_addresses": "", "unix_socket_directories": "/srv", "shared_preload_libraries": "timescaledb",
    "timescaledb.telemetry_level": "off", "dynamic_shared_memory_type": "mmap", "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "max_connections": "40",
}  # fmt: skip


@dataclass(frozen=True)
class Server:
    """A running server. `folder` holds its socket; the superuser is `postgres`."""

    folder: Path
    password: str
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """Without user, password and database."""
        return f"postgresql:///?host={self.folder}"

    def kill(self) -> None:
        """As kill -9 of the whole server does."""
        self.process.kill()
        self.process.wait()


def where() -> Path:
    """Where the tree is or will be."""
    key = hashlib.sha256("\n".join([SUITE, *PACKAGES, RECIPE]).encode()).hexdigest()[:16]
    return cache_dir() / "timescaledb" / key


def tree() -> Path:
    """The tree in the cache, made where it is missing (a minute or two, once).

    Raises StoreUsageError where this machine cannot make it.
    """
    final = where()
    if (final / ".complete").is_file():
        return used(final)
    if shutil.which("mmdebstrap") is None:
        raise StoreUsageError(
            "mmdebstrap is not installed; as root: apt-get install --no-install-recommends mmdebstrap"
        )
    try:
        archive, _ = fetch.machine_archive()
    except WarpbedError as error:
        raise StoreUsageError(str(error)) from error
    with aside(final, marker=".complete") as work:
        if work is not None:
            _build(work[0], archive.for_suite(SUITE))
    return final


def _build(folder: Path, sources: str) -> None:
    stanza = folder / "debian.sources"  # goes with the folder where this process is killed
    stanza.write_text("\n".join(line for line in sources.splitlines() if not line.startswith("Targets:")) + "\n")
    keep = ["path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright",
        "path-exclude=/usr/share/man/*",
            "path-exclude=/usr/share/locale/*"]  # fmt: skip
    completed = subprocess.run(
        ["mmdebstrap", "--quiet", "--mode=root", "--variant=essential", f"--include={','.join(PACKAGES)}",
         *(f"--dpkgopt={line}" for line in keep), SUITE, str(folder / "root"), str(stanza)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    stanza.unlink()
    if completed.returncode:
        errors = "\n".join(completed.stderr.strip().splitlines()[-10:])
        raise StoreError(f"mmdebstrap could not make a Debian {SUITE} with {', '.join(PACKAGES)}:\n{errors}")
    (folder / ".complete").touch()


# The mounts and every process live in namespaces that end with the first process, and that ends with this one.
START = """
set -eu
root=$1 folder=$2 size=$3; shift 3
if [ -n "$size" ]; then
    mkdir -p "$folder/data"
    mount -t tmpfs -o "size=$size,mode=0700,uid=$(stat -c %u "$folder"),gid=$(stat -c %g "$folder")" tmpfs "$folder/data"
fi
mount --rbind "$folder" "$root/srv"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
run() { chroot --userspec=postgres:postgres "$root" "$@"; }
[ -e "$folder/data/PG_VERSION" ] || run "$0/initdb" --pgdata=/srv/data --username=postgres --auth=scram-sha-256 --pwfile=/srv/password \
    --encoding=UTF8 --locale=C.UTF-8 ${size:+--waldir=/srv/wal} >/dev/null
run "$0/postgres" -D /srv/data "$@" & # this shell stays root: a process that changes its user outlives its parent
wait
"""


def start(folder: Path, size: str = "", built: Path | str | None = None, **settings: str) -> Server:
    """Start a server whose data and socket are in `folder` (its path is short: a socket's has 107 bytes at most).

    size: keep the tables (not the log) in memory, of this size such as "200m", as on a disk that can be full
    built: another tree than that of Debian's packages
    """
    root = (Path(built) if built else tree()) / "root"
    folder.mkdir(parents=True, exist_ok=True)
    user, group = _postgres(root)
    password = folder / "password"
    if not password.exists():
        replace_text(password, secrets.token_urlsafe(24) + "\n", 0o600)  # at no moment as the umask says
    for path, mode in ((folder, 0o711), (password, 0o600)):
        path.chmod(mode)
        shutil.chown(path, user, group)
    options = [part for name, value in {**SETTINGS, **settings}.items() for part in ("-c", f"{name}={value}")]
    with open(folder / "log", "ab") as log:
        process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child=KILL", "sh", "-c",
                START, BIN,
             str(root), str(folder), size, *options],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent,
        )  # fmt: skip
    server = Server(folder, password.read_text().strip(), process)
    _await(server)
    return server


@contextmanager
def running(folder: Path, size: str = "", built: Path | str | None = None, **settings: str) -> Iterator[Server]:
    server = start(folder, size, built, **settings)
    try:
        yield server
    finally:
        server.kill()


def _await(server: Server) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            psycopg.connect(
                server.url, user="postgres", dbname="postgres", password=server.password, connect_timeout=5
            ).close()
            return
        except psycopg.OperationalError as error:
            if server.process.poll() is not None or time.monotonic() > deadline:
                server.kill()
                last_lines = (server.folder / "log").read_text(errors="replace").strip().splitlines()[-5:]
                raise StoreError(
                    f"PostgreSQL did not start in {server.folder}: {error}\n" + "\n".join(last_lines)
                ) from error
            time.sleep(0.1)


def _postgres(root: Path) -> tuple[int, int]:
    for line in (root / "etc/passwd").read_text().splitlines():
        name, _, user, group, *_ = line.split(":")
        if name == "postgres":
            return int(user), int(group)
    raise StoreError(f"{root}: no user postgres; delete the folder above, it is made again")


def main() -> int:
    if sys.argv[1:] == ["--where"]:
        exists = (where() / ".complete").is_file()
        if exists:
            used(where())
        print(json.dumps({"path": str(where()), "exists": exists, "root": os.geteuid() == 0}))
        return 0
    try:
        print(tree())
    except (StoreError, StoreUsageError, WarpbedError) as error:
        print(error, file=sys.stderr)
        return getattr(error, "exit_code", 1)
    return 0


if __name__ == "__main__":
    screen.install()
    sys.exit(main())
