# SPDX-License-Identifier: Apache-2.0
"""`./warpbed packetdrill`: what is given is run in the guest, each script alone, and its end is told as it was.

The program of most tests is a shell script that shows where it runs. Those with packetdrill itself need WARPBED_PACKETDRILL.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from base.errors import UsageError
from hosts.virtual import scripts
from hosts.virtual.launch import GuestKernel
from tests import lab

pytestmark = pytest.mark.guest
STAND_IN = """\
#!/bin/sh
# packetdrill FILE: do what the file says, in its folder
[ "$1" = --loud ] && echo loud && shift
. "./$1"
"""
HANDSHAKE = """\
// A server with the kernel's initial window of 10 (RFC 6928), asked for 30 packets of 1000 bytes.
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
  +.1 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
   +0 > S. 0:0(0) ack 1 <...>
  +.1 < . 1:1(0) ack 1 win 257
   +0 accept(3, ..., ...) = 4
   +0 %{ assert tcpi_snd_cwnd == WINDOW, tcpi_snd_cwnd }%
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    binary = tmp_path / "stand-in"
    binary.write_text(STAND_IN)
    binary.chmod(0o755)
    return binary


def test_each_script_runs_alone_in_its_folder_on_the_guests_clock(
    kernel: GuestKernel, stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, scratch = tmp_path / "root", tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(scripts, "SCRATCH", str(scratch))
    for name, text in {
        "a/first.pkt": "sysctl -qw net.ipv4.tcp_reordering=7; sleep 5; . ../common.sh; touch /etc/left 2>&1",
        "a/second.pkt": "sysctl -n net.ipv4.tcp_reordering net.ipv4.tcp_congestion_control; ip -o link | wc -l; uname -r",
        "b/third.pkt": "echo it was 11, not 10; exit 3",
        "b/fourth.pkt": "sleep 100",
        "common.sh": "echo common",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    files = [root / name for name in ("a/first.pkt", "a/second.pkt", "b/third.pkt", "b/fourth.pkt")]
    first, second, third, fourth = scripts.run(
        kernel, stand_in, files, root=root, module="tcp_medley", algorithm="medley", arguments=["--loud"], limit_s=50
    )
    assert first.output.startswith("loud\ncommon\n") and first.code != 0 and "Read-only" in first.output
    assert first.virtual_s == pytest.approx(5, abs=0.1)
    assert (second.code, second.output.split()) == (0, ["loud", "3", "medley", "1", kernel.release])
    assert (third.code, third.output) == (3, "loud\nit was 11, not 10\n")
    assert fourth.code is None and fourth.virtual_s == pytest.approx(50, abs=0.1)
    assert list(scratch.iterdir()) == []


def test_what_cannot_be_run_is_refused_before_a_guest_starts(stand_in: Path, tmp_path: Path) -> None:
    script = tmp_path / "one.pkt"
    script.write_text("exit 0\n")

    def said(*more: str | Path) -> str:
        return lab.warpbed("packetdrill", script, *more, code=2)

    assert "a packetdrill that was built on this machine is needed" in said("--binary", tmp_path / "none")
    assert "did you mean medley?" in said("--binary", stand_in, "--algorithm", "medly")
    assert "--limit takes seconds" in said("--binary", stand_in, "--limit", "0")
    assert "not below" in said("--binary", stand_in, "--root", tempfile.mkdtemp(dir=tmp_path))
    assert "no such file" in lab.warpbed("packetdrill", tmp_path / "two.pkt", "--binary", stand_in, code=2)
    (tmp_path / "many").mkdir()
    for number in range(scripts.MOST_FILES + 1):
        (tmp_path / f"many/{number}").touch()
    with pytest.raises(UsageError, match="at most 5000"):
        scripts.run(None, stand_in, [script], root=tmp_path)  # type: ignore[arg-type]


def test_packetdrill_itself_passes_what_is_so_and_fails_what_is_not(kernel: GuestKernel, tmp_path: Path) -> None:
    """The initial window is 10 packets (RFC 6928 s2); a script that says 11 fails with its line."""
    binary = os.environ.get("WARPBED_PACKETDRILL")
    if not binary:
        pytest.skip("WARPBED_PACKETDRILL names no packetdrill; it is in no registry of packages (docs/kernels.md)")
    for window in (10, 11):
        (tmp_path / f"window-{window}.pkt").write_text(HANDSHAKE.replace("WINDOW", str(window)))
    argv: list[Any] = ["packetdrill", tmp_path / "window-10.pkt", tmp_path / "window-11.pkt", "--binary", binary]
    right, wrong = json.loads(lab.warpbed(*argv, "--format", "json", code=1))
    assert (right["outcome"], wrong["outcome"]) == ("passes", "fails")
    assert right["virtual_s"] < 1
    assert "window-11.pkt" in wrong["why"] and "10" in wrong["why"]
