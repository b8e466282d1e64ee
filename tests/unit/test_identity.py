# SPDX-License-Identifier: Apache-2.0
"""A run depends on its file, seed, host kind, kernel and the modules that it loads, and on nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from analysis.expectations import check_all
from analysis.results import Run as Done
from analysis.results import parse_run
from hosts.identity import KernelInputs, kernel_inputs
from hosts.virtual.userland import versions
from plan.model import Plan
from testbed import identity, other_runs
from testbed.experiments import Prepared, prepare
from testbed.runs import spec_digest
from tests import lab

VERSIONS = {"tcp_medley": "A", "tcp_liss": "B", "warp_rxbatch": "C", "warp_wire": "D", "um_link": "E"}
MEDLEY = lab.SMALL.replace("cca: cubic", "cca: medley")


@dataclass(frozen=True)
class FakeHost:
    """As much of a host as a run's identity asks for."""

    versions: Mapping[str, str]
    kernel: str = "k1"
    kind: str = "virtual"
    userland: Mapping[str, str] = field(default_factory=dict)

    def inputs(self, plan: Plan) -> KernelInputs:
        modules = [{"name": name, "srcversion": version} for name, version in self.versions.items()]
        return replace(kernel_inputs({"kernel_key": self.kernel, "modules": modules}, plan), userland=self.userland)


def first_id(prepared: Prepared, host: Any) -> str:
    return identity.run_id(prepared.runs[0], prepared.plans[0], host)


def done(prepared: Prepared, host: Any, **inputs: Any) -> Done:
    """The result folder's view of the first run."""
    run, plan = prepared.runs[0], prepared.plans[0]
    recorded = {**identity.recorded(run, plan, host), **inputs}
    text = {
        "format": 1, "experiment": "small", "run": first_id(prepared, host), "seed": run.seed, "params": run.params,
        "host": host.kind, "status": "complete", "spec": run.spec(), "inputs": recorded, "timing": {"ended": 1},
    }  # fmt: skip
    return parse_run(json.dumps(text), Path(str(text["run"])))


def test_only_modules_that_a_run_loads_change_its_id(tmp_path: Path) -> None:
    prepared = prepare(lab.write(tmp_path, MEDLEY))
    first = first_id(prepared, FakeHost(VERSIONS))
    assert first_id(prepared, FakeHost({**VERSIONS, "tcp_liss": "other"})) == first
    assert first_id(prepared, FakeHost({**VERSIONS, "tcp_new": "E"})) == first
    assert first_id(prepared, FakeHost({**VERSIONS, "tcp_medley": "other"})) != first
    assert first_id(prepared, FakeHost({**VERSIONS, "warp_rxbatch": "other"})) != first
    assert first_id(prepared, FakeHost(VERSIONS, kernel="k2")) != first


def test_an_algorithm_of_linux_does_not_depend_on_the_modules_of_others(tmp_path: Path) -> None:
    prepared = prepare(lab.write(tmp_path, lab.SMALL))
    assert first_id(prepared, FakeHost(VERSIONS)) == first_id(prepared, FakeHost({**VERSIONS, "tcp_medley": "other"}))


def test_a_key_that_is_not_set_changes_no_digest(tmp_path: Path) -> None:
    prepared = prepare(lab.write(tmp_path, lab.SMALL))
    spec = prepared.runs[0].spec()
    later = {**spec, "of_a_later_version": None, "hosts": {**spec["hosts"], "also_later": {}}}
    assert spec_digest(later) == spec_digest(spec)
    assert spec_digest({**spec, "of_a_later_version": 1}) != spec_digest(spec)


def test_what_changed_since_a_run_is_named(tmp_path: Path) -> None:
    prepared = prepare(lab.write(tmp_path, MEDLEY))
    run, plan = prepared.runs[0], prepared.plans[0]
    host: Any = FakeHost(VERSIONS)
    result = done(prepared, host)
    assert identity.changed(result, run, plan, host) == []
    mended: Any = FakeHost({**VERSIONS, "tcp_medley": "other"}, kernel="k2")
    assert identity.changed(result, run, plan, mended) == ["kernel", "module tcp_medley"]
    assert identity.changed(result, run, plan, None) == []
    longer = prepare(lab.write(tmp_path, MEDLEY.replace("duration: 5s", "duration: 6s")))
    assert identity.changed(result, longer.runs[0], longer.plans[0], host) == ["experiment file"]


def test_a_run_is_found_by_its_file_whatever_kernel_made_it(tmp_path: Path) -> None:
    prepared = prepare(lab.write(tmp_path, MEDLEY))
    old, new = done(prepared, FakeHost(VERSIONS)), done(prepared, FakeHost(VERSIONS, kernel="k2"))
    new = replace(new, timing={"ended": 2})
    run = prepared.runs[0]
    assert identity.newest_of(run, "virtual", [new, old]) == new
    assert identity.newest_of(run, "virtual", [replace(new, status="failed"), old]) == old
    assert identity.newest_of(run, "vm", [new, old]) is None
    other = prepare(lab.write(tmp_path, MEDLEY.replace("40p", "41p"))).runs[0]
    assert identity.newest_of(other, "virtual", [new, old]) is None


def test_results_from_before_inputs_were_recorded_are_found(tmp_path: Path) -> None:
    prepared = prepare(lab.write(tmp_path, MEDLEY))
    before = replace(done(prepared, FakeHost(VERSIONS)), inputs={})
    assert identity.newest_of(prepared.runs[0], "virtual", [before]) == before
    assert identity.changed(before, prepared.runs[0], prepared.plans[0], None) == ["kernel and modules: not recorded"]


def test_inputs_are_recorded_whole(tmp_path: Path) -> None:
    prepared = prepare(lab.write(tmp_path, MEDLEY))
    host: Any = FakeHost(VERSIONS)
    recorded = identity.recorded(prepared.runs[0], prepared.plans[0], host)
    assert recorded["modules"] == {"tcp_medley": "A", "warp_rxbatch": "C", "warp_wire": "D", "um_link": "E"}
    assert set(recorded) == {*asdict(prepared.runs[0].inputs("virtual")), "kernel", "modules", "userland", "agent"}


def test_programs_of_another_user_land_are_named_and_change_no_id(tmp_path: Path) -> None:
    prepared = prepare(lab.write(tmp_path, MEDLEY))
    host = FakeHost(VERSIONS)
    here = FakeHost(VERSIONS, userland={"iperf3": "3.18-2", "libc6": "2.41-12"})
    before = done(prepared, FakeHost(VERSIONS, userland={"iperf3": "3.12-1", "libc6": "2.41-12", "nginx": "1.22"}))
    assert (
        identity.run_id(prepared.runs[0], prepared.plans[0], cast(Any, here)) == first_id(prepared, host) == before.run
    )
    changed = identity.changed(before, prepared.runs[0], prepared.plans[0], cast(Any, here))
    assert changed == ["iperf3 3.12-1 → 3.18-2", "nginx 1.22 → none"]
    unrecorded = done(prepared, host, userland={})
    assert identity.changed(unrecorded, prepared.runs[0], prepared.plans[0], cast(Any, here)) == []


def test_the_user_lands_versions_are_those_that_dpkg_has_installed() -> None:
    """Paragraphs of dpkg's status file, deb-control(5); Debian 13's libpcap bears the name of a transition."""
    status = (
        "Package: libpcap0.8t64\nStatus: install ok installed\nVersion: 1.10.5-2\nDescription: x\n Version: 0\n\n"
        "Package: iperf3\nStatus: deinstall ok config-files\nVersion: 3.18-2\n\n"
        "Package: tcpdump\nStatus: install ok installed\nVersion: 4.99.5-2\n\n"
        "Package: cowsay\nStatus: install ok installed\nVersion: 3.03\n\n"
        "Package: python3.13-minimal\nStatus: install ok installed\nVersion: 3.13.5-2\n"
    )
    assert versions(status, "python3.13-minimal") == {
        "libpcap0.8": "1.10.5-2",
        "python3.13-minimal": "3.13.5-2",
        "tcpdump": "4.99.5-2",
    }


def test_an_expectation_about_runs_that_were_not_asked_for_is_not_judged() -> None:
    claim = {"metric": "utilization", "where": {"cca": "medley"}, "min": 0.99}
    cubic = Done("e", "r", Path("r"), params={"cca": "cubic"}, status="complete", metrics={"utilization": 0.9})
    assert [finding.outcome for finding in check_all([claim], [cubic])] == ["not comparable"]
    assert check_all([claim], [cubic], unasked=[{"cca": "medley"}]) == ()
    misspelt = {**claim, "where": {"cca": "medly"}}
    assert [f.outcome for f in check_all([misspelt], [cubic], unasked=[{"cca": "medley"}])] == ["not comparable"]


def test_runs_of_an_older_form_of_the_file_are_named_with_what_differs(tmp_path: Path) -> None:
    """They are missing from what the file asks for, and would else be there unseen."""
    before = prepare(lab.write(tmp_path, lab.SMALL))
    old = done(before, FakeHost(VERSIONS))
    assert other_runs.others(before.runs, "virtual", [old]) == []
    assert other_runs.others(before.runs, "vm", [old]) == [], "made on another kind of host, and asked for there"
    now = prepare(lab.write(tmp_path, lab.SMALL + "hosts: {overhead: 30us}\nmetrics: [utilization]\n"))
    assert other_runs.others(now.runs, "virtual", [old]) == [old]
    assert other_runs.differences(old, now.runs) == ["hosts.overhead: auto → 30us"]
    assert "hosts.overhead: not set → 30us" in other_runs.differences(
        replace(old, spec={key: value for key, value in old.spec.items() if key != "hosts"}), now.runs
    )
    assert other_runs.differences(replace(old, seed=77), before.runs) == ["seed 77"]
    (many,) = other_runs.others(now.runs, "virtual", [replace(old, spec={})])
    *named, rest = other_runs.differences(many, now.runs)
    assert len(named) == other_runs.MOST_DIFFERENCES and rest.endswith(" more")
