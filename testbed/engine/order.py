# SPDX-License-Identifier: Apache-2.0
"""In which order runs begin: the longest first, so that none is left for the end when all other workers are idle."""

from __future__ import annotations

from collections.abc import Iterable

from hosts.virtual.launch import memory_bytes
from testbed.reproduction.costs import of_plans
from testbed.runner import Job


def expected_s(job: Job) -> float:
    """Seconds of one CPU that a run takes, as far as its plan tells."""
    return of_plans([job.plan], None).cpu_s


def needed_bytes(job: Job) -> int:
    """Memory of a run's guest."""
    return memory_bytes(job.plan)


def longest_first(jobs: Iterable[Job]) -> list[Job]:
    """By expected cost; equal ones in the sweep's order."""
    return sorted(jobs, key=lambda job: -expected_s(job))
