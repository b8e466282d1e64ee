# SPDX-License-Identifier: Apache-2.0
"""The modules on Debian's stock kernels: what DKMS is told, and, where asked for, real builds of whole suites."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from base.errors import UsageError, WarpbedError
from base.paths import cache_dir
from hosts.virtual.kernel import find
from kernels import module_source, stock
from kernels.build_key import module_sources
from kernels.errors import BuildError
from schema.names import project_ccas
from tests import lab

MODULES = lab.ROOT / "kernels/modules"
NAMES = sorted(Path(n).stem for n in module_sources(MODULES) if n.endswith(".c") and n.startswith(("tcp_", "warp_")))
"""Of those that a real machine can load; um_*.c write files of the host below User-Mode Linux."""


def dkms_variable(name: str, folder: Path = MODULES) -> list[str]:
    script = 'cd / && source "$1/dkms.conf" && declare -n list=$2 && printf "%s\\n" "${list[@]}"'
    done = subprocess.run(["bash", "-ec", script, "dkms", folder, name], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_dkms_builds_every_module() -> None:
    assert sorted(dkms_variable("BUILT_MODULE_NAME")) == NAMES
    assert dkms_variable("DEST_MODULE_LOCATION") == ["/updates/dkms"] * len(NAMES)


def test_dkms_leaves_out_what_a_build_leaves_behind(tmp_path: Path) -> None:
    (tmp_path / "dkms.conf").write_text((MODULES / "dkms.conf").read_text())
    for name in ("tcp_zeta.c", "tcp_zeta.mod.c", "warp_x.c", "cc_shared.c", "other.c"):
        (tmp_path / name).touch()
    assert dkms_variable("BUILT_MODULE_NAME", tmp_path) == ["tcp_zeta", "warp_x"]


@pytest.mark.parametrize("suite", ["", "../sid", "sid; id", "Trixie", "-sid"])
def test_a_suite_that_is_none_is_refused(suite: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not the name of one"):
        stock.unpack(suite, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_failure_inside_shows_its_message(tmp_path: Path) -> None:
    for name in ("dev", "proc", "tmp"):
        (tmp_path / name).mkdir()
    with pytest.raises(BuildError, match=r"(?s)building the modules in .* failed:.*(/bin/bash|permitted)"):
        stock.inside(tmp_path, "true")


@pytest.mark.guest
@pytest.mark.parametrize("series", ["6.1", "6.12"])
def test_every_module_loads_and_runs_on_the_virtual_host_of_older_series(series: str, tmp_path: Path) -> None:
    """One flow of each algorithm for five seconds."""
    try:
        find(series)
    except WarpbedError as error:
        pytest.skip(str(error))
    names = sorted(project_ccas())
    flows = "".join(f"  - {{name: {name}, cca: {name}, from: s1, to: d1}}\n" for name in names)
    text = lab.SMALL.partition("flows:")[0] + f"kernel: '{series}'\nflows:\n{flows}"
    (run,) = lab.runs(lab.execute(tmp_path, text))
    assert run["environment"]["kernel"]["release"].startswith(series + ".")
    loaded = set(run["environment"]["kernel"]["module_params"])
    assert {f"tcp_{module.stem}" for module in module_source.by_name().values() if module.parameters} - loaded == set()
    assert {flow["flow"]: flow["cca"] for flow in run["metrics"]["flows"]} == {name: name for name in names}
    assert all(flow["goodput_mbps"] > 0 for flow in run["metrics"]["flows"])


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("suite", os.environ.get("WARPBED_TEST_SUITES", "").split() or ["none"])
def test_every_module_builds_without_a_warning(suite: str) -> None:
    if suite == "none":
        pytest.skip(
            "WARPBED_TEST_SUITES names no suite, such as 'bookworm trixie sid' (fetches 150 MB and takes minutes each)"
        )
    result = stock.build(suite, cache=cache_dir())
    assert result.modules == NAMES
    assert result.warnings == []
