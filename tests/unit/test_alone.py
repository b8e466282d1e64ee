# SPDX-License-Identifier: Apache-2.0
"""Who has the machine, and who waits for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.alone import with_this_machine
from tests.waiting import wait_until

SECOND = """
import sys
from pathlib import Path
from tests.alone import with_this_machine
print("asks", flush=True)
with with_this_machine(Path(sys.argv[1])):
    print("has it", flush=True)
    sys.stdin.read()
"""


def test_a_second_one_waits_for_the_first_and_a_killed_one_keeps_nobody(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    line = [sys.executable, "-P", "-c", SECOND, str(file)]
    with with_this_machine(file):
        process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "asks\n"
        wait_until(lambda: f"-> FLOCK  ADVISORY  WRITE {process.pid} " in Path("/proc/locks").read_text())
    assert process.stdout.readline() == "has it\n"
    process.kill()
    process.communicate()
    with with_this_machine(file):
        pass
