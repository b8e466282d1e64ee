# SPDX-License-Identifier: Apache-2.0
"""What differs in a plan that is executed in real time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from network.tc import own_modules
from plan.model import BATCH_MODULE, LINK_MODULES, Module, Plan

START_GRID_S = 1
"""Runs start at a full second: soon, since waiting costs time here."""


def modules_of(plan: Plan) -> list[Module]:
    """The plan's modules without those for virtual time only: the one that batches receivers, those of one event per packet."""
    needed = own_modules(plan.network.directions())
    left_out = {BATCH_MODULE, *(name for name in LINK_MODULES if name not in needed)}
    return [module for module in plan.modules if Path(module.path).stem not in left_out]


def in_real_time(plan: Plan, modules: Iterable[Module]) -> Plan:
    """The plan for a host in real time, with these modules to load."""
    return dataclasses.replace(
        plan, realtime=True, recorded_by="programs", links="chain", start_grid_s=START_GRID_S, modules=tuple(modules)
    )
