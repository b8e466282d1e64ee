# SPDX-License-Identifier: Apache-2.0
"""The tests have one environment, whatever their caller's is."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys

from analysis.terminal import Style
from tests import lab, surroundings

STRANGE = {
    "ANSIBLE_STDOUT_CALLBACK": "minimal",
    "COLUMNS": "40",
    "FORCE_COLOR": "1",
    "GIT_DIR": "/nonexistent",
    "LANG": "tr_TR.UTF-8",
    "LC_NUMERIC": "de_DE.UTF-8",
    "LINES": "3",
    "MAKEFLAGS": "-k",
    "NO_COLOR": "1",
    "PGHOST": "203.0.113.1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TERM": "dumb",
    "TZ": "Pacific/Chatham",
    "WARPBED_DATABASE": "postgresql://203.0.113.1/none",
    "WARPBED_LAB": "{",
    "WARPBED_STATE": "/nonexistent",
    "XDG_STATE_HOME": "/nonexistent",
}


def test_this_process_has_the_steady_environment() -> None:
    # what other tests of this process set for themselves (PGPASSFILE) is theirs
    wanted = surroundings.steady(os.environ)
    assert {name: os.environ.get(name) for name in STRANGE} == {name: wanted.get(name) for name in STRANGE}
    assert not sys.dont_write_bytecode, "what Python compiles is kept for the next one"
    assert Style.of_terminal().width == 100, "what the program prints is as wide as the documentation shows it"
    assert datetime.datetime.now().astimezone().utcoffset() == datetime.timedelta(0)


def test_a_strange_environment_reaches_no_test() -> None:
    """Run the test above as a caller with other habits would, with standard input closed."""
    inner = f"{__file__}::{test_this_process_has_the_steady_environment.__name__}"
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider",
            inner],
        cwd=lab.ROOT, env={**os.environ, **STRANGE}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_what_says_where_things_are_stays() -> None:
    kept = {
        "PATH": "/bin",
        "HOME": "/h",
        "WARPBED_CACHE": "/c",
        "SSL_CERT_FILE": "/s",
        "https_proxy": "p",
        "PIP_CERT": "x",
    }
    assert surroundings.steady({**kept, **STRANGE}) == {**kept, **surroundings.SET}
