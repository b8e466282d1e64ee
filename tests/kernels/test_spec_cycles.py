# SPDX-License-Identifier: Apache-2.0
"""Loading, using and unloading all modules again and again leaves nothing in the kernel's memory."""

from __future__ import annotations

import pathlib

import pytest

from hosts.virtual.launch import GuestKernel
from kernels import module_source
from tests.harness import cycles


def test_two_hundred_cycles_of_all_modules_leak_nothing(kernel: GuestKernel) -> None:
    """Fewer cycles would not tell a leak from the pages that caches come and go with."""
    growth = cycles.measure(kernel, 200)
    assert len(growth.figures) == 200
    assert growth.algorithms == sorted(module_source.by_name())
    print(growth)
    assert growth.leaks() == {}


def test_a_leak_of_a_page_in_every_second_cycle_is_reported() -> None:
    steady = [{"Slab": 4000, "VmallocUsed": 900}] * 50
    leaking = [{"Slab": 4000 + 2 * i, "VmallocUsed": 900} for i in range(50)]
    assert cycles.Cycles(("x",), ["x"], steady).leaks() == {}
    assert set(cycles.Cycles(("x",), ["x"], leaking).leaks()) == {"Slab"}


def test_every_module_takes_part(kernel: GuestKernel) -> None:
    sources = pathlib.Path(__file__).parents[2] / "kernels/modules"
    assert set(cycles.all_modules()) == {f.stem.removeprefix("tcp_") for f in sources.glob("tcp_*.c")}


@pytest.mark.guest
@pytest.mark.parametrize("count", ["0", "x", "-5"])
def test_a_count_that_is_none_is_refused(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cycles.main([count])
    assert stopped.value.code == 2
    assert count in capsys.readouterr().err
