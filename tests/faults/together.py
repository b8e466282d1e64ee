# SPDX-License-Identifier: Apache-2.0
"""Give a command twice at once, on one results folder; look at what is there, and give it a third time.

    python -m tests.faults.together [--case NAME] [--times N] [--seed N] [--record]

The second begins at a moment drawn over the time that the command takes alone. --record adds the counts to docs/reliability.json;
`refused` are the times in which one of the two would not begin beside the other.
"""

from __future__ import annotations

import sys
import time

from tests.faults import moments
from tests.faults.cases import Case
from tests.faults.forks import started, unclear


def give_twice(case: Case, moment_s: float, outcome: moments.Outcome) -> list[str]:
    first = started(case.work)
    time.sleep(moment_s)
    ends = [started(case.work).ended(), first.ended()]
    outcome.counts["refused"] = outcome.counts.get("refused", 0) + any(code for code, _ in ends)
    wrong = [text for code, words in ends for text in unclear(code, words)]
    if all(code for code, _ in ends):
        wrong.append(f"neither did it: {[words[-300:] for _, words in ends]}")
    return wrong + case.check(whole=True, settled=False)


if __name__ == "__main__":
    sys.exit(moments.main("tests.faults.together", __doc__.partition("\n")[0], "together", "times", give_twice, 50))
