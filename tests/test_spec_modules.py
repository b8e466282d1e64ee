# SPDX-License-Identifier: Apache-2.0
"""What holds for every module: ranges of parameters, loading and unloading."""

from __future__ import annotations

import pathlib
import re

import pytest

from kernels.spec.harness import Flow, Scenario, run_all
from testbed.virtual.launch import GuestKernel

SOURCES = sorted((pathlib.Path(__file__).parents[1] / "kernels" / "modules").glob("tcp_*.c"))
NAMES = [s.stem.removeprefix("tcp_") for s in SOURCES]
RANGE = re.compile(r"CC_PARAM_RANGE\((\w+), (\d+), (\d+)\)")
USE = re.compile(r"module_param_cb\((\w+), &(\w+), &\w+, 0644\)")


def ranges(source: pathlib.Path) -> list[tuple[str, int, int]]:
    text = source.read_text()
    for header in re.findall(r'#include "(\w+\.h)"', text):
        text += (source.parent / header).read_text()
    limits = {ops: (int(low), int(high)) for ops, low, high in RANGE.findall(text)}
    return [(name, *limits[ops]) for name, ops in USE.findall(text) if ops in limits]


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_every_parameter_states_its_unit_or_range_and_default(source: pathlib.Path) -> None:
    text = source.read_text()
    described = dict(re.findall(r'MODULE_PARM_DESC\((\w+),\s*"([^"]*)"', text))
    for name, low, high in ranges(source):
        if name in described:
            assert f"{low}-{high}" in described[name], described[name]
            assert described[name].endswith(")")


def parameter_path(name: str, parameter: str) -> str:
    return f"/sys/module/tcp_{name}/parameters/{parameter}"


def test_values_out_of_range_are_refused_at_load_and_at_every_write(kernel: GuestKernel) -> None:
    """One guest: each parameter of each module below and above its range; values at the bounds are taken."""
    loads, writes = [], []
    for name, source in zip(NAMES, SOURCES, strict=True):
        for parameter, low, high in ranges(source):
            for value in (high + 1, *([low - 1] if low else [])):
                loads.append((0.1, f"! arameter insmod /mnt/tcp_{name}.ko {parameter}={value}"))
                writes.append((0.1, f"! Invalid write {parameter_path(name, parameter)} {value}"))
            writes += [(0.2, f"write {parameter_path(name, parameter)} {value}") for value in (low, high)]
    assert len(loads) + len(writes) > 200
    refused = Scenario((), bring=tuple(NAMES), seconds=0.5, changes=tuple(loads))
    written = Scenario((), tuple(NAMES), seconds=0.5, changes=tuple(writes), trace=False)
    assert len(list(run_all(kernel, [refused, written]))) == 2


def test_unloading_is_refused_while_a_flow_runs_and_works_after(kernel: GuestKernel) -> None:
    """A flow of each module; run_all() itself unloads the modules at the end and fails if it cannot."""
    flows = tuple(Flow(name, 40000 + i, phases=((3.0, None),)) for i, name in enumerate(NAMES))
    changes = tuple((1.5, f"! use rmmod tcp_{name}") for name in NAMES)
    (result,) = run_all(kernel, [Scenario(flows, tuple(NAMES), seconds=3, trace=False, changes=changes)])
    assert all(name in result.sockets.split() for name in NAMES)
