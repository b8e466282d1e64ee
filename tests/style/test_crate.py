# SPDX-License-Identifier: Apache-2.0
"""The packet collector's crate: its own tests, clippy and rustfmt; and what is said when it does not compile."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from base.cache import aside, digest, sha256_of, used
from base.paths import cache_dir
from collectors import native
from collectors.errors import NativeError

SOURCES = (*native.SOURCES, "rustfmt.toml", "tests/**/*.rs", "examples/**/*.rs")


def crate() -> Path:
    """A copy of the crate under the digest of its files: cargo goes by the times of files, which each clone sets anew, and would
    compile the same sources again in each."""
    paths = sorted(path for pattern in SOURCES for path in native.CRATE.glob(pattern))
    files = {str(path.relative_to(native.CRATE)): path for path in paths}
    final = cache_dir() / "native" / f"crate-{digest({name: sha256_of(path) for name, path in files.items()})[:16]}"
    with aside(final, marker="Cargo.toml") as place:
        if place is not None:
            for name, path in files.items():
                (place[0] / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place[0] / name)
    return used(final)


def cargo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run cargo on the crate, with what the collector's build and earlier tests have compiled already."""
    program = native.find_cargo()
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(native.target_dir()),
        "PATH": f"{program.parent}:{os.environ['PATH']}",
    }
    return subprocess.run(
        [program, *arguments], cwd=crate(), env=environment, capture_output=True, text=True, check=False
    )


def needs(program: str) -> None:
    """Skip, visibly, where a tool of Rust's is not installed; Debian 12 has no clippy for its newer compiler."""
    done = cargo(program, "--version")
    if done.returncode:
        pytest.skip(f"cargo {program} is not installed")


def test_the_crates_own_tests_pass() -> None:
    done = cargo("test", "--release", "--locked", "--quiet", "--lib", "--test", "hostile", "--test", "threads")
    assert done.returncode == 0, done.stdout + done.stderr


def test_clippy_finds_nothing() -> None:
    needs("clippy")
    done = cargo("clippy", "--release", "--locked", "--quiet", "--all-targets", "--", "--deny", "warnings")
    assert done.returncode == 0, done.stdout + done.stderr


def test_rustfmt_finds_nothing() -> None:
    needs("fmt")
    done = cargo("fmt", "--check")
    assert done.returncode == 0, done.stdout


def test_a_failed_build_says_why_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crate = tmp_path / "pcap"
    shutil.copytree(native.CRATE, crate, ignore=shutil.ignore_patterns("target", "fuzz"))
    (crate / "Cargo.lock").write_text("not a lock file")
    before = native.key()
    monkeypatch.setattr(native, "CRATE", crate)
    monkeypatch.setenv("WARPBED_CACHE", str(tmp_path / "cache"))
    assert native.key() != before
    with pytest.raises(NativeError, match=r"could not be built(?s:.*)Cargo\.lock"):
        native.folder()
    left = [path for path in (tmp_path / "cache/native").iterdir() if path.name not in (".locks", "target")]
    assert left == []
