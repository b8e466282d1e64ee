# SPDX-License-Identifier: Apache-2.0
"""The packet collector's crate: its own tests, clippy and rustfmt."""

from __future__ import annotations

import os
import subprocess

import pytest

from collectors import native


def cargo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run cargo on the crate, with what the collector's build has compiled already."""
    program = native.find_cargo()
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(native.target_dir()),
        "PATH": f"{program.parent}:{os.environ['PATH']}",
    }
    return subprocess.run(
        [program, *arguments], cwd=native.CRATE, env=environment, capture_output=True, text=True, check=False
    )


def needs(program: str) -> None:
    """Skip, visibly, where a tool of Rust's is not installed; Debian 12 has no clippy for its newer compiler."""
    done = cargo(program, "--version")
    if done.returncode:
        pytest.skip(f"cargo {program} is not installed")


@pytest.mark.timeout(900)
def test_the_crates_own_tests_pass() -> None:
    done = cargo("test", "--release", "--locked", "--quiet", "--lib", "--test", "hostile", "--test", "threads")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(600)
def test_clippy_finds_nothing() -> None:
    needs("clippy")
    done = cargo("clippy", "--release", "--locked", "--quiet", "--all-targets", "--", "--deny", "warnings")
    assert done.returncode == 0, done.stdout + done.stderr


def test_rustfmt_finds_nothing() -> None:
    needs("fmt")
    done = cargo("fmt", "--check")
    assert done.returncode == 0, done.stdout
