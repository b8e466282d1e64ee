# SPDX-License-Identifier: Apache-2.0
"""Servers of other people's making that speak S3 (moto) and Google's storage (gcp-storage-emulator), on this machine's own address.

They are installed once, with hashes, in a folder of the cache, apart from the environment of the tests: a server is a process.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from base.cache import aside, used
from base.linux import die_with_parent
from base.paths import cache_dir
from tests.waiting import wait_until

LOCK = Path(__file__).with_name("servers.lock")
BUCKET = "bucket"
START_S = 300.0
PROGRAMS = {
    "s3": "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])",
    "gs": "import sys; from gcp_storage_emulator.server import create_server as c; c('127.0.0.1', int(sys.argv[1]), True).run()",
}


@dataclass(frozen=True)
class Server:
    """kind: s3 or gs; url: of its bucket, as --store takes it; environment: what a client needs"""

    kind: str
    url: str
    environment: dict[str, str]


def packages() -> Path:
    """The folder with the servers' packages; made where it is missing."""
    lock = LOCK.read_bytes()
    final = cache_dir() / "bucket-servers" / hashlib.sha256(lock + sys.version.encode()).hexdigest()[:16]
    with aside(final, marker=".complete") as work:
        if work is not None:
            line = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check",
                    "--only-binary", ":all:", "--require-hashes", "--target", str(work[0]), "-r", str(LOCK)]  # fmt: skip
            subprocess.run(line, check=True, capture_output=True, text=True, env={**os.environ, "PIP_USER": "0"})
            (work[0] / ".complete").touch()
    return used(final)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def serving(kind: str) -> Iterator[Server]:
    """A server with an empty bucket, which is in memory only and ends with the body."""
    port = _free_port()
    place = f"127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAMS[kind], str(port)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(packages())}, preexec_fn=die_with_parent,
    )  # fmt: skip
    try:
        if kind == "s3":
            query = f"scheme=http&endpoint_override={place}&region=us-east-1"
            bucket = urllib.request.Request(f"http://{place}/{BUCKET}", method="PUT")
        else:
            query = f"scheme=http&endpoint_override={place}&retry_limit_seconds=20"
            bucket = urllib.request.Request(
                f"http://{place}/storage/v1/b?project=p", b'{"name": "%s"}' % BUCKET.encode(), method="POST"
            )
            bucket.add_header("Content-Type", "application/json")
        wait_until(lambda: _answers(bucket), START_S, while_running=process)
        keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_EC2_METADATA_DISABLED": "true"}
        who = "" if kind == "s3" else "anonymous@"
        yield Server(kind, f"{kind}://{who}{BUCKET}/warpbed?{query}", keys if kind == "s3" else {})
    finally:
        process.kill()
        process.wait()


def _answers(request: urllib.request.Request) -> bool:
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 (an address of this machine)
            return bool(answer.status == 200)
    except urllib.error.HTTPError:
        raise
    except OSError:
        return False
