# SPDX-License-Identifier: Apache-2.0
"""Each of the project's algorithms with its specification, for tests that put all of them into one situation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from kernels.reference import lbc, medley
from kernels.reference.base import Specification
from tests.harness.harness import Hook
from tests.kernels import (
    test_spec_astart_bwe,
    test_spec_astart_ere,
    test_spec_creno,
    test_spec_ctcp,
    test_spec_fast,
    test_spec_ftat,
    test_spec_ghighspeed,
    test_spec_group,
    test_spec_hoe,
    test_spec_lbc,
    test_spec_past,
    test_spec_spm,
    test_spec_ssipp,
    test_spec_ttfwc,
)


class FixedPoint(medley.Medley):
    """With the resolution that the module's header states: a round's mean RTT in 1/8 us, Delta and Gamma in 1/1024 packet.

    At 400 Mbit/s an eighth of a microsecond is 0.006 packet of backlog, and Delta and Gamma are as near to half a packet now and then.
    """

    def __init__(self, cwnd: float) -> None:
        super().__init__(cwnd)
        nearest = self.counted
        self.counted = lambda packets: nearest(math.floor(packets * 1024) / 1024)

    @property
    def D(self) -> float:
        return math.floor(super().D * 8e6 + 1e-6) / 8e6


@dataclasses.dataclass(frozen=True)
class Case:
    """module: where the algorithm is in another one's; packets, share: as for follows()"""

    make: Callable[[Hook], Specification]
    packets: float = 1
    share: float = 0
    module: str = ""


CASES = {
    "astart_bwe": Case(test_spec_astart_bwe.reference, 1, 0.01),
    "astart_ere": Case(test_spec_astart_ere.reference, 1, 0.01),
    "creno": Case(test_spec_creno.reference),
    "ctcp": Case(test_spec_ctcp.reference, 2),
    "fast": Case(test_spec_fast.reference, 1, 0.025),
    "ftat": Case(test_spec_ftat.reference, 2),
    "ghighspeed": Case(test_spec_ghighspeed.reference, 1, 0.005),
    "hoe": Case(test_spec_hoe.reference),
    "hstcp": Case(test_spec_ghighspeed.reference, 1, 0.005, "ghighspeed"),
    "iss": Case(test_spec_group.reference),
    "js": Case(test_spec_group.reference),
    "lbc": Case(test_spec_lbc.reference),
    "liss": Case(test_spec_group.reference),
    "medley": Case(lambda hook: FixedPoint(float(hook.cwnd)), 0),
    "miss": Case(test_spec_group.reference),
    "past": Case(test_spec_past.reference),
    "perack": Case(lambda hook: lbc.PerAck(float(hook.cwnd)), module="lbc"),
    "spm": Case(test_spec_spm.reference, 1, 0.01),
    "ssipp": Case(test_spec_ssipp.reference),
    "tfwc": Case(test_spec_ttfwc.reference, module="ttfwc"),
    "ttfwc": Case(test_spec_ttfwc.reference),
    "ttfwc2": Case(test_spec_ttfwc.reference, module="ttfwc"),
    "ttfwc3": Case(test_spec_ttfwc.reference, module="ttfwc"),
}
