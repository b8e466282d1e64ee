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


def test_a_command_called_from_python_changes_no_signal(capsys: pytest.CaptureFixture[str]) -> None:
    before = [signal.getsignal(number) for number in signal.valid_signals()]
    assert cli.main(["list", "metrics"]) == 0
    assert [signal.getsignal(number) for number in signal.valid_signals()] == before
