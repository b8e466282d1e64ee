# SPDX-License-Identifier: Apache-2.0
"""Kill commands (kill -9) at random moments, and look at what is left; then the same command completes it.

    python -m tests.faults.killing [--case NAME] [--kills N] [--seed N] [--record]

Moments are drawn evenly over the time that the case took when it was let alone. The commands are those of cases.py: a guest is
imitated (tests/guest/test_killing.py kills commands with real ones). --record adds the counts to docs/reliability.json; `running` are
the kills that met the command alive.
"""

from __future__ import annotations

import signal
import sys
import time

from tests.faults import moments
from tests.faults.cases import Case
from tests.faults.forks import started
from tests.processes import processes_of
from tests.waiting import wait_until

GONE_WITHIN_S = 60.0


def kill(case: Case, moment_s: float, outcome: moments.Outcome) -> list[str]:
    command = started(case.work)
    time.sleep(moment_s)
    command.kill()
    code, _ = command.ended()
    outcome.counts["running"] = outcome.counts.get("running", 0) + (code == -signal.SIGKILL)
    wait_until(lambda: not processes_of(case.folder), GONE_WITHIN_S, say=lambda: processes_of(case.folder))
    return case.check(whole=False, settled=False)


if __name__ == "__main__":
    sys.exit(moments.main("tests.faults.killing", __doc__.partition("\n")[0], "kills", "kills", kill, 200))
