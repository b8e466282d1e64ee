# SPDX-License-Identifier: Apache-2.0
"""What holds for every module: ranges of parameters, loading and unloading."""

from __future__ import annotations

import pathlib
import re

import pytest

from kernels.spec.harness import Flow, GuestError, Scenario, kernel, run

needs_kernel = pytest.mark.skipif(kernel() is None, reason="WARPBED_TEST_KERNEL is not set: no kernel to test")
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


@needs_kernel
@pytest.mark.parametrize("name", NAMES)
def test_a_value_out_of_range_is_refused(name: str) -> None:
    source = next(s for s in SOURCES if s.stem == f"tcp_{name}")
    for parameter, _, high in ranges(source)[:2]:
        scenario = Scenario((Flow(name),), (name,), {name: {parameter: high + 1}}, seconds=0.1, trace=False)
        with pytest.raises(GuestError, match=r"[Ii]nvalid"):
            run(scenario)


@needs_kernel
@pytest.mark.parametrize("name", NAMES)
def test_unloading_is_refused_while_a_flow_runs_and_works_after(name: str) -> None:
    busy = Scenario(
        (Flow(name, phases=((3.0, None),)),), (name,), seconds=3, trace=False, changes=((1.0, f"rmmod tcp_{name}"),)
    )
    with pytest.raises(GuestError, match="in use"):
        run(busy)
    run(
        Scenario(
            (Flow(name, phases=((1.0, 1e5),)),),
            (name,),
            seconds=12,
            trace=False,
            changes=((10.0, f"rmmod tcp_{name}"),),
        )
    )
