# SPDX-License-Identifier: Apache-2.0
"""A process that outlives a killed runner just long enough to clean up after it.

It is started by the runner in a session of its own and waits for the end of its standard input. The guests die with
the runner by themselves (hosts.virtual.cage); what is left is the folder aside, which this removes.

    python -I janitor.py RESULTS_BASE      (with the checkout as PYTHONPATH's place in argv[2])
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

ATTEMPTS = 100
PAUSE_S = 0.1


def main(base: Path, checkout: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.path.insert(0, checkout)
    from testbed.results import ASIDE, purge_aside

    sys.stdin.buffer.read()
    for _ in range(ATTEMPTS):
        purge_aside(base)
        if not (base / ASIDE).is_dir():
            return
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
