# SPDX-License-Identifier: Apache-2.0
"""A mean over the seeds against bounds: as claims of experiment files are decided (analysis.claims), for what no claim can say."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis.contrasts import Spread, mean_of_means
from analysis.models.checks import Check, Kind
from analysis.statistics import CONFIDENCE
from analysis.table import number


def within(
    part: str,
    says: str,
    sample: Sequence[float] | Spread | None,
    low: float,
    high: float,
    kind: Kind = "order",
    published: object = None,
    level: float = 0.0,
) -> Check:
    """The mean over the seeds lies between the bounds with its 95 % interval, outside with it, or neither.

    sample: a number for each seed, or how well their mean is known (None: not at all); kind, published: as in a check
    level: outside too where the mean is known to be beyond a bound by no more than so much, if at all
    """
    known = sample if isinstance(sample, Spread) else mean_of_means([sample or ()])
    interval = known.interval((1 - CONFIDENCE) / 2) if known else None
    if known is None or interval is None:
        shown = number(known.mean if known else math.nan)
        return Check(part, says, False, published, shown, kind, "one seed decides nothing", undecided=True)
    holds = low <= interval.low and interval.high <= high
    outside = interval.high < low or interval.low > high
    is_level = (
        not holds and not outside and level > 0 and (interval.high <= low + level or interval.low >= high - level)
    )
    shown = f"{number(known.mean)} ± {number(known.mean - interval.low)}"
    reason = f"asked {number(low)} to {number(high)}" if math.isfinite(high) and math.isfinite(low) else ""
    if is_level:
        reason = f"level: beyond by no more than {number(level)}, if at all"
    return Check(part, says, holds, published, shown, kind, reason, undecided=not (holds or outside or is_level))
