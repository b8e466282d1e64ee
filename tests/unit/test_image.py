# SPDX-License-Identifier: Apache-2.0
"""The image's description calls commands that there are, and both of its builders leave out the same files. It is built by hand."""

from __future__ import annotations

import re

from base.paths import ROOT
from testbed.cli import parser

CONTAINERFILE = ROOT / "Containerfile"


def test_the_build_calls_a_command_that_there_is() -> None:
    (line,) = re.findall(r"^RUN \./warpbed (.*?) \\$", CONTAINERFILE.read_text(), re.MULTILINE)
    options = parser().parse_args(line.split())
    assert (ROOT / options.experiment).is_file() and options.seed == 1


def test_the_base_is_named_by_its_digest() -> None:
    (base,) = re.findall(r"^ARG BASE=(.+)$", CONTAINERFILE.read_text(), re.MULTILINE)
    assert re.fullmatch(r"docker\.io/library/debian:bookworm-slim@sha256:[0-9a-f]{64}", base)


def test_podman_and_docker_leave_out_the_same_files() -> None:
    assert (ROOT / ".containerignore").read_text() == (ROOT / ".dockerignore").read_text()
    left_out = (ROOT / ".containerignore").read_text().split()
    ignored = {
        line.strip("/")
        for line in (ROOT / ".gitignore").read_text().split()
        if line.startswith(("/results", ".mypy", ".ruff"))
    }
    assert ignored <= set(left_out)


def test_the_image_starts_the_entry_script_from_where_it_was_copied() -> None:
    text = CONTAINERFILE.read_text()
    assert "COPY . /opt/warpbed\n" in text and 'ENTRYPOINT ["/opt/warpbed/warpbed"]' in text
    assert "/opt/warpbed/results" in (ROOT / "docs/image.md").read_text()
