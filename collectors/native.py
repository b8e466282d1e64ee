# SPDX-License-Identifier: Apache-2.0
"""The compiled part of the packet collector: built from collectors/pcap on first need, kept in the cache by its sources.

    python -m collectors.native              # builds it where it is missing
    python -m collectors.native --ask        # only says whether it is: present or missing
    python -m collectors.native --compiler   # names the cargo that would build it

`<cache>/native/<key>/` holds the extension module and appears by rename when complete; cargo's own folder beside it
keeps compiled crates, so that a changed source costs seconds.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from base import screen
from base.cache import aside, locked, used
from base.errors import WarpbedError
from base.paths import cache_dir
from collectors.errors import NativeError

CRATE = Path(__file__).resolve().parent / "pcap"
SOURCES = ("Cargo.toml", "Cargo.lock", "pyproject.toml", "src/**/*.rs")
MODULE = "_warpbed_pcap.abi3.so"
"""For every Python from 3.11 on."""
LEAST_RUST = (1, 85)
LAST_LINES = 25


def key() -> str:
    """Of the sources and the machine; not of the compiler, so that what is built needs none to be used."""
    digest = hashlib.sha256(f"{platform.machine()} {platform.libc_ver()[1]}".encode())
    for file in _sources():
        digest.update(f"\0{file.relative_to(CRATE)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _sources() -> list[Path]:
    return sorted(file for pattern in SOURCES for file in CRATE.glob(pattern))


def is_built() -> bool:
    return (cache_dir() / "native" / key() / MODULE).exists()


def target_dir() -> Path:
    """Where cargo keeps what it compiled."""
    return cache_dir() / "native" / "target"


def folder() -> Path:
    """The folder with the extension module; builds it where it is missing. Raises NativeError."""
    final = cache_dir() / "native" / key()
    if (final / MODULE).exists():
        return used(final)
    try:
        with aside(final, marker=MODULE) as place:
            if place is not None:
                with locked(cache_dir() / "native" / ".locks" / "target") as held:
                    _build(place[0], [lock for lock in (place[1], held) if lock is not None])
    except WarpbedError as error:
        raise NativeError(str(error)) from error
    except OSError as error:
        raise NativeError(f"cannot write the cache: {error}; WARPBED_CACHE sets another folder") from error
    return final


def find_cargo() -> Path:
    """The first cargo on PATH that is new enough and has a rustc like it beside it. Raises NativeError."""
    rejected = []
    for place in dict.fromkeys(os.get_exec_path()):
        cargo, rustc = Path(place) / "cargo", Path(place) / "rustc"
        if os.access(cargo, os.X_OK):
            versions = [_version(program) for program in (cargo, rustc)]
            if min(versions) >= LEAST_RUST:
                return cargo
            rejected.append(f"{cargo} is {'.'.join(map(str, min(versions))) if all(versions) else 'not usable'}")
    package = "cargo-web" if _is_debian_12() else "cargo"
    raise NativeError(
        f"the packet collector is built with cargo {'.'.join(map(str, LEAST_RUST))} or newer"
        f" ({'; '.join(rejected) or 'there is none on PATH'}). As root: apt-get install --no-install-recommends {package}"
    )


def _version(program: Path) -> tuple[int, ...]:
    """(major, minor); () where the program does not work, such as rustup without a toolchain."""
    try:
        completed = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    match = re.match(r"\w+ (\d+)\.(\d+)\.", completed.stdout) if completed.returncode == 0 else None
    return tuple(map(int, match.groups())) if match else ()


def _is_debian_12() -> bool:
    with contextlib.suppress(OSError):
        return platform.freedesktop_os_release().get("VERSION_ID") == "12"
    return False


def _build(out: Path, locks: list[int]) -> None:
    """Make the wheel and take the module out of it."""
    cargo = find_cargo()
    maturin = shutil.which("maturin", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if maturin is None:
        raise NativeError("maturin, which builds the packet collector, is not installed; start this through ./warpbed")
    print("warpbed: building the packet collector (once, a minute or two)", file=sys.stderr, flush=True)
    started = time.monotonic()
    command = [maturin, "build", "--release", "--locked", "--quiet", "--interpreter", sys.executable, "--out", str(out)]
    environment = {
        **os.environ,
        "PATH": f"{cargo.parent}:{os.environ.get('PATH', '')}",
        "CARGO_TARGET_DIR": str(target_dir()),
        "CARGO_TERM_COLOR": "never",
    }
    # flags meant for another program would end up in the module, and its key says nothing of them
    for name in ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTC_WRAPPER"):
        environment.pop(name, None)
    completed = subprocess.run(
        command,
        cwd=CRATE,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        pass_fds=locks,
    )
    if completed.returncode:
        errors = "\n".join((completed.stderr + completed.stdout).strip().splitlines()[-LAST_LINES:])
        raise NativeError(f"the packet collector could not be built ({cargo}):\n{errors}")
    (wheel,) = out.glob("*.whl")
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(_module_in(archive)) as module,
        (out / ".new").open("wb") as new,
    ):
        shutil.copyfileobj(module, new)
    wheel.unlink()
    (out / ".new").chmod(0o755)
    (out / ".new").rename(out / MODULE)
    print(f"warpbed: built the packet collector in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


def _module_in(archive: zipfile.ZipFile) -> str:
    names: Iterator[str] = (name for name in archive.namelist() if name.endswith(MODULE))
    return next(names)


def main(arguments: Sequence[str]) -> int:
    """Build where missing; 2 and the reason where that is not possible. The options only answer a question."""
    if arguments == ["--ask"]:
        print("present" if is_built() else "missing")
        return 0
    if arguments not in ([], ["--compiler"]):
        print("python -m collectors.native [--ask | --compiler]", file=sys.stderr)
        return 2
    try:
        print(find_cargo() if arguments else folder())
    except NativeError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    screen.install()
    sys.exit(main(sys.argv[1:]))
