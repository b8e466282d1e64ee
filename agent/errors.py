# SPDX-License-Identifier: Apache-2.0
"""Failures of a run, as the agent reports them."""

from __future__ import annotations

from base.errors import WarpbedError


class RunError(WarpbedError):
    """A run that cannot give a result.

    stage: what was being done ("module", "network", "capture", "flow", …)
    subject: the object it was done to (a flow's name, a module's file …)
    detail: the words of the program or kernel that refused
    """

    def __init__(self, stage: str, subject: str, detail: str) -> None:
        super().__init__(f"{stage} {subject}: {detail}")
        self.stage, self.subject, self.detail = stage, subject, detail
