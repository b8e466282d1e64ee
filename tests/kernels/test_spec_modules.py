# SPDX-License-Identifier: Apache-2.0
"""What holds for every module: ranges of parameters, loading and unloading."""

from __future__ import annotations

import json
import pathlib

import pytest

from hosts.virtual.launch import GuestKernel
from kernels import module_source
from kernels.module_source import ModuleSource
from schema.names import project_ccas
from tests import kept_results, lab
from tests.harness.harness import Flow, Scenario, run_all

MODULES = module_source.sources()
NAMES = [module.stem for module in MODULES]
CHOICES = {("tcp_ghighspeed", "w_low"): (31, 38)}
"""Parameters that take single values instead of a range."""


def ranges(module: ModuleSource) -> list[tuple[str, int, int]]:
    return [(parameter.name, *parameter.bounds) for parameter in module.parameters if parameter.bounds]


@pytest.mark.parametrize("module", MODULES, ids=NAMES)
def test_every_parameter_states_its_unit_or_range_and_default(module: ModuleSource) -> None:
    for parameter in module.parameters:
        if (f"tcp_{module.stem}", parameter.name) in CHOICES:
            assert parameter.bounds is None
        else:
            assert parameter.bounds is not None
            assert "{}-{}".format(*parameter.bounds) in parameter.text
        assert parameter.text.endswith(f"({parameter.description.default})")


@pytest.mark.parametrize("module", MODULES, ids=NAMES)
def test_every_algorithm_that_a_module_registers_can_be_asked_for_by_its_name(module: ModuleSource) -> None:
    """Its name is the file's or an alias, so that the kernel finds the module when a socket asks for the algorithm."""
    assert set(module.registered) <= set(module.names)


def test_programs_get_all_names_and_parameters() -> None:
    contents = json.loads(module_source.as_json())
    assert set(contents["algorithms"]) == set(project_ccas())
    assert contents["algorithms"]["perack"] == "tcp_lbc" and contents["modules"]["tcp_lbc"]["file"] == "tcp_lbc.c"
    for module in MODULES:
        entry = contents["modules"][f"tcp_{module.stem}"]
        assert [parameter["name"] for parameter in entry["parameters"]] == list(module.parameter_names)
        assert all(
            parameter["low"] <= parameter["default"] <= parameter["high"]
            for parameter in entry["parameters"]
            if parameter["low"] is not None
        )


def parameter_path(module: str, parameter: str) -> str:
    return f"/sys/module/{module}/parameters/{parameter}"


def test_values_out_of_range_are_refused_at_load_and_at_every_write(kernel: GuestKernel) -> None:
    """One guest: each parameter of each module below and above its range; values at the bounds are taken."""
    loads, writes = [], []
    for name, source in zip(NAMES, MODULES, strict=True):
        for parameter, low, high in ranges(source):
            for value in (high + 1, *([low - 1] if low else [])):
                loads.append((0.1, f"! arameter insmod /mnt/tcp_{name}.ko {parameter}={value}"))
                writes.append((0.1, f"! Invalid write {parameter_path(f'tcp_{name}', parameter)} {value}"))
            writes += [(0.2, f"write {parameter_path(f'tcp_{name}', parameter)} {value}") for value in (low, high)]
    for (module, parameter), values in CHOICES.items():
        for value in (0, values[0] - 1, values[0] + 1, values[-1] - 1, values[-1] + 1):
            loads.append((0.1, f"! arameter insmod /mnt/{module}.ko {parameter}={value}"))
            writes.append((0.1, f"! Invalid write {parameter_path(module, parameter)} {value}"))
        writes += [(0.2, f"write {parameter_path(module, parameter)} {value}") for value in values]
    assert len(loads) + len(writes) > 200
    refused = Scenario((), bring=tuple(NAMES), seconds=0.5, changes=tuple(loads))
    written = Scenario((), tuple(NAMES), seconds=0.5, changes=tuple(writes), trace=False)
    assert len(list(run_all(kernel, [refused, written]))) == 2


def test_a_run_records_every_parameter_and_each_has_a_range(kernel: GuestKernel, tmp_path: pathlib.Path) -> None:
    """A flow of every algorithm, three parameters set: /sys/module/tcp_*/parameters of the run are those whose ranges
    the test above writes across, with the values of the file or else the defaults of their descriptions."""
    text = lab.SMALL.partition("flows:")[0].replace("5s", "2s") + "flows:\n"
    wanted = {"tcp_medley": {"init_cwnd": 4}, "tcp_ttfwc": {"tp": 40}, "tcp_iss": {"prefix4": 16}}
    for number, name in enumerate(project_ccas()):
        params = ", ".join(f"{key}: {value}" for key, value in wanted.get(f"tcp_{name}", {}).items())
        text += f"  - {{name: f{number}, cca: {{name: {name}, params: {{{params}}}}}, from: s1, to: d1}}\n"
    (run,) = lab.runs(kept_results.results(tmp_path, text))
    recorded = run["environment"]["kernel"]["module_params"]
    for name, source in zip(NAMES, MODULES, strict=True):
        module = f"tcp_{name}"
        defaults = {parameter.name: parameter.description.default for parameter in source.parameters}
        known = {parameter for parameter, _, _ in ranges(source)} | {p for m, p in CHOICES if m == module}
        assert set(recorded.get(module, {})) == known
        for parameter, value in recorded.get(module, {}).items():
            expected = wanted.get(module, {}).get(parameter, defaults[parameter])
            assert value == str(expected), (name, parameter)


def test_values_out_of_range_are_refused_by_the_batching_of_receivers(kernel: GuestKernel) -> None:
    limits = {"batch_bytes": (1, 64 << 20), "hold_ms": (1, 10000), "start_bytes": (0, 1 << 30)}
    path = "/sys/module/warp_rxbatch/parameters"
    changes = [(0.1, "insmod /mnt/warp_rxbatch.ko")]
    for parameter, (low, high) in limits.items():
        for value in (low - 1, high + 1):
            changes.append((0.2, f"! Invalid write {path}/{parameter} {value}"))
        changes += [(0.3, f"write {path}/{parameter} {value}") for value in (low, high)]
    changes += [(0.3, f"! Invalid write {path}/ports {value}") for value in ("0", "x", "7-6", "65536")]
    changes += [(0.4, "rmmod warp_rxbatch")]
    (done,) = run_all(kernel, [Scenario((), bring=("warp_rxbatch",), seconds=0.5, changes=tuple(changes))])
    assert done.drops == 0


def test_unloading_is_refused_while_a_flow_runs_and_works_after(kernel: GuestKernel) -> None:
    """A flow of each module; run_all() itself unloads the modules at the end and fails if it cannot."""
    flows = tuple(Flow(name, 40000 + i, phases=((3.0, None),)) for i, name in enumerate(NAMES))
    changes = tuple((1.5, f"! use rmmod tcp_{name}") for name in NAMES)
    (result,) = run_all(kernel, [Scenario(flows, tuple(NAMES), seconds=3, trace=False, changes=changes)])
    assert all(name in result.sockets.split() for name in NAMES)
