# SPDX-License-Identifier: Apache-2.0
"""A command ends quietly when nobody reads on; called from Python it leaves the caller's signals as they were."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from base.paths import ROOT
from testbed import cli


def test_a_command_whose_reader_went_away_says_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-c", "import time; from testbed.cli import main; time.sleep(0.5); main()", "list",
         "metrics"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as command:  # fmt: skip
        assert command.stdout is not None and command.stderr is not None
        command.stdout.close()
        assert command.stderr.read() == b""
    assert command.returncode == -signal.SIGPIPE


ASKS = """
import contextlib
import subprocess
import sys

from testbed import cli
from testbed.commands import listing


def ask(_options):
    program = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    program.wait()
    try:
        program.stdin.write(b"a question")
        program.stdin.flush()
    except BrokenPipeError:
        print("not read")
    with contextlib.suppress(BrokenPipeError):  # which Python 3.13 would tell at the end
        program.stdin.close()
    return 0


listing.main = ask
sys.exit(cli.main())
"""


def test_a_program_that_ends_before_it_has_read_does_not_end_the_command_that_asks_it() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", ASKS, "list", "metrics"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "not read\n", "")


def test_what_has_to_end_in_order_is_told_that_nobody_reads_it() -> None:
    script = """
import os

from base import screen

screen.install()
with screen.outlived():
    try:
        print("x", flush=True)
    except BrokenPipeError:
        os.write(2, b"in order")
print("y", flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", f"import time; time.sleep(0.5)\n{script}"], cwd=ROOT, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as command:  # fmt: skip
        assert command.stdout is not None and command.stderr is not None
        command.stdout.close()
        assert command.stderr.read() == b"in order"
    assert command.returncode == -signal.SIGPIPE


def test_a_command_called_from_python_changes_no_signal(capsys: pytest.CaptureFixture[str]) -> None:
    before = [signal.getsignal(number) for number in signal.valid_signals()]
    assert cli.main(["list", "metrics"]) == 0
    assert [signal.getsignal(number) for number in signal.valid_signals()] == before
