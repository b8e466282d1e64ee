# SPDX-License-Identifier: Apache-2.0
"""Parameters of algorithms: what flows of one run may differ in, and that a run records what it used."""

from __future__ import annotations

from pathlib import Path

import pytest

from base.errors import SpecError
from hosts.virtual.launch import GuestKernel
from kernels import module_source
from schema.load import load
from schema.names import IN_TREE_CCAS
from testbed.compile import compile_plan
from tests import kept_results, lab

GROUPS = """\
warpbed: 1
name: groups
title: Three values of TTFWC's tp in one run
duration: 10s
topology: {name: dumbbell, params: {pairs: 3, rate: 15mbit, delay: 18ms, buffer: 40p, access_rate: 1gbit, access_delay: 500us}}
hosts: {ack: every, mss: 960, overhead: none}
flows:
"""
THREE = ("tfwc", "{name: ttfwc, params: {tp: 40}}", "{name: ttfwc2, params: {tp: 90}}")


def experiment(*ccas: str) -> str:
    return GROUPS + "".join(f"  - {{name: g{i}, cca: {cca}, from: s{i}, to: d{i}}}\n" for i, cca in enumerate(ccas, 1))


def modules(folder: Path, *ccas: str) -> dict[str, dict[str, str]]:
    spec, document = load(lab.write(folder, experiment(*ccas)))
    return {m.path.rsplit("/", 1)[-1]: m.params for m in compile_plan(spec, document).modules if "tcp_" in m.path}


def test_a_numbered_name_sets_the_parameter_of_its_number(tmp_path: Path) -> None:
    assert modules(tmp_path, *THREE) == {"tcp_ttfwc.ko": {"tp": "40", "tp2": "90"}}


def test_a_name_without_parameters_needs_its_module_all_the_same(tmp_path: Path) -> None:
    assert modules(tmp_path, "tfwc", "medley", "cubic") == {"tcp_ttfwc.ko": {}, "tcp_medley.ko": {}}


@pytest.mark.parametrize(
    ("ccas", "message"),
    [
        (("{name: ttfwc, params: {tp: 40}}", "{name: ttfwc, params: {tp: 90}}"), "ttfwc, tfwc, ttfwc2, ttfwc3"),
        (("{name: ttfwc, params: {tp: 40}}", "ttfwc"), "with other parameters"),
        (("{name: tfwc, params: {tp: 40}}",), "no tp of its own"),
        (
            ("{name: ttfwc, params: {step_smooth: 0}}", "{name: ttfwc2, params: {step_smooth: 6}}"),
            "step_smooth = 0, which is global",
        ),
        (("{name: medley, params: {init_cwnd: 2}}", "{name: medley, params: {init_cwnd: 4}}"), "one name only"),
        (("{name: medley, params: {init_cnwd: 2}}",), "did you mean init_cwnd"),
        (("{name: cubic, params: {beta: 700}}", "cubic"), "with a sweep"),
    ],
)
def test_conflicting_parameters_of_flows_are_reported(tmp_path: Path, ccas: tuple[str, ...], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        modules(tmp_path, *ccas)


def test_no_name_is_registered_twice() -> None:
    names = [name for module in module_source.sources() for name in module.names]
    assert len(set(names)) == len(names)
    assert not set(names) & set(IN_TREE_CCAS)


def test_three_groups_of_ttfwc_run_beside_each_other_with_their_own_values(kernel: GuestKernel, tmp_path: Path) -> None:
    (run,) = lab.runs(kept_results.results(tmp_path, experiment(*THREE)))
    assert (
        run["environment"]["kernel"]["module_params"]["tcp_ttfwc"] | {"tp": "40", "tp2": "90"}
        == (run["environment"]["kernel"]["module_params"]["tcp_ttfwc"])
    )
    flows = {flow["flow"]: flow for flow in run["metrics"]["flows"]}
    assert [flows[f"g{i}"]["cca"] for i in (1, 2, 3)] == ["tfwc", "ttfwc", "ttfwc2"]
    assert all(flow["goodput_mbps"] > 1 for flow in flows.values())
    assert run["metrics"]["utilization"] > 0.8
