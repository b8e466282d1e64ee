# SPDX-License-Identifier: Apache-2.0
"""What differs in a plan that is executed in real time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from plan.model import BATCH_MODULE, Module, Plan

START_GRID_S = 1
"""Runs start at a full second: soon, since waiting costs time here."""


def modules_of(plan: Plan) -> list[Module]:
    """The plan's modules without the one that batches receivers, which is for virtual time only."""
    return [module for module in plan.modules if not module.path.endswith(f"/{BATCH_MODULE}.ko")]


def in_real_time(plan: Plan, modules: Iterable[Module]) -> Plan:
    """The plan for a host in real time, with these modules to load."""
    return dataclasses.replace(
        plan, realtime=True, recorded_by="programs", start_grid_s=START_GRID_S, modules=tuple(modules)
    )
