# SPDX-License-Identifier: Apache-2.0
"""`./warpbed test`: run the tests."""

from __future__ import annotations

import argparse
import os
import sys

from base.paths import ROOT
from kernels import series as kernel_series
from testbed import ansible

NAME = "test"
HELP = "run the tests"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments for pytest")


def main(options: argparse.Namespace) -> int:
    return run_pytest(options.arguments)


def run_pytest(arguments: list[str]) -> int:
    """Install what tests need, build the kernel, then run pytest."""
    code = ansible.play("test_environment.yml", {"kernel_build_series": kernel_series.DEFAULT}, failed_early=1)
    if code:
        return code
    workers = [] if arguments else ["--numprocesses", str(len(os.sched_getaffinity(0))), "--dist", "worksteal"]
    command = [sys.executable, "-P", "-m", "pytest", *workers, *arguments]
    os.chdir(ROOT)
    return os.execv(command[0], command)
