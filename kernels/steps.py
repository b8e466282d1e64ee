# SPDX-License-Identifier: Apache-2.0
"""Run the programs of a build so that none outlives it, and find the relevant messages when one fails."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from kernels.errors import BuildError

# Nothing of the user's environment reaches the compiler, and nothing of the day or the machine reaches the kernel.
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C",
    "TZ": "UTC",
    "LOCALVERSION": "",
    "SOURCE_DATE_EPOCH": "1767225600",
    "KBUILD_BUILD_TIMESTAMP": "2026-01-01 00:00:00 UTC",
    "KBUILD_BUILD_USER": "warpbed",
    "KBUILD_BUILD_HOST": "warpbed",
    "KBUILD_BUILD_VERSION": "1",
}
WORDS = 30  # lines of a failing program that are shown


@dataclass(frozen=True)
class Steps:
    """Runs the steps of one build: what they print goes to the log, the lock stays held while any of them lives."""

    log: Path
    lock: int

    def run(
        self, what: str, *command: str | Path, cwd: Path, stdin: Path | None = None, env: dict[str, str] | None = None
    ) -> None:
        """Run one step; `what` names it in an error."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log, (stdin or Path(os.devnull)).open("rb") as standard_input:
            # --pdeathsig: make stops its children, too, if this process is killed outright.
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", *map(str, command)],
                cwd=cwd,
                stdin=standard_input,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**ENVIRONMENT, "HOME": str(cwd), **(env or {})},
                pass_fds=[self.lock],
                start_new_session=True,
            )
            try:
                status = process.wait()
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
        if status:
            last_lines = telling_lines(self.log.read_text(errors="replace"))
            raise BuildError(f"{what} failed (exit status {status}):\n{last_lines}\nEverything it printed: {self.log}")


def telling_lines(log: str) -> str:
    """The lines about the first thing that failed, out of what a parallel make or another program printed."""
    lines = log.splitlines()
    failed = next((number for number, line in enumerate(lines) if re.match(r"make(\[\d+\])?: \*\*\* ", line)), None)
    if failed is None:
        return "\n".join(lines[-WORDS:])
    start = failed
    while start and not re.match(r"  [A-Z]+ |make(\[\d+\])?: ", lines[start - 1]):
        start -= 1
    return "\n".join([*lines[start:failed][:WORDS], lines[failed]])


def end_with_caller() -> None:
    """End this process cleanly on SIGTERM, and when the ansible-playbook that started it is gone.

    Ansible's workers are sessions of their own: neither Ctrl-C nor a kill of ansible-playbook reaches this process.
    """

    def stop(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
    caller = _playbook_above(os.getpid())
    if caller is None:
        return
    try:
        descriptor = os.pidfd_open(caller)
    except ProcessLookupError:
        sys.exit(128 + signal.SIGTERM)

    def watch() -> None:
        select.select([descriptor], [], [])
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _playbook_above(pid: int) -> int | None:
    """The outermost ancestor in an unbroken row that runs ansible-playbook: its workers carry the same name."""
    ancestor = None
    while pid > 1:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
            argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            break
        if any(word.rpartition(b"/")[2] == b"ansible-playbook" for word in argv[:3]):
            ancestor = pid
        pid = int(stat.rpartition(")")[2].split()[1])
    return ancestor
