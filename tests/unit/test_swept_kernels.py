# SPDX-License-Identifier: Apache-2.0
"""The kernel as a parameter of a sweep: each run is compiled for, executed on and known by its own."""

from __future__ import annotations

import json
import pickle
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from base.errors import SpecError, UsageError, WarpbedError
from hosts.identity import KernelInputs, kernel_inputs
from hosts.per_kernel import RunHosts, open_hosts
from hosts.registry import HOST_KINDS, Kind
from plan.model import Plan
from schema.model import Experiment
from testbed.commands import check
from testbed.commands.prepared import run_ids
from testbed.engine.conductor import DaskRunner
from testbed.engine.supplies import Supplies
from testbed.experiments import Prepared, prepare
from testbed.identity import run_id
from testbed.results import Results
from testbed.runner import Job
from tests import lab


def swept(values: str = "['6.12', '7.2']", more: str = "") -> str:
    return f"{lab.SMALL}sweep: {{parameters: {{linux: kernel}}, factorial: {{linux: {values}}}}}\n{more}"


@dataclass(frozen=True)
class FakeHost:
    """As much of a host as identities ask for; its build's key is its kernel's name."""

    key: str
    kind: str = "virtual"
    one_at_a_time: bool = False
    facts: dict[str, str] = field(default_factory=dict)

    def inputs(self, plan: Plan) -> KernelInputs:
        return kernel_inputs({"kernel_key": self.key}, plan)


def fake_hosts(monkeypatch: pytest.MonkeyPatch, key: Callable[[str], str] = str) -> list[str]:
    """Hosts of every kind are faked; the list gets the kernels that were opened."""
    opened: list[str] = []

    def fake(_: Kind, experiment: Experiment) -> FakeHost:
        opened.append(experiment.kernel)
        return FakeHost(experiment.kernel, facts={"key": key(experiment.kernel)})

    monkeypatch.setattr(Kind, "open", fake)
    return opened


def hosts_for(prepared: Prepared, kind: str = "virtual") -> RunHosts:
    return open_hosts(HOST_KINDS[kind], prepared.experiment, (run.experiment for run in prepared.runs))


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(SpecError) as caught:
        prepare(lab.write(folder, text))
    return str(caught.value)


def test_each_run_has_its_own_kernel_in_its_spec_and_in_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = fake_hosts(monkeypatch)
    prepared = prepare(lab.write(tmp_path, swept(more="repeats: 2\n")))
    assert [(run.params["linux"], run.experiment.kernel, run.seed) for run in prepared.runs] == [
        ("6.12", "6.12", 1),
        ("6.12", "6.12", 2),
        ("7.2", "7.2", 1),
        ("7.2", "7.2", 2),
    ]
    hosts = hosts_for(prepared)
    assert opened == ["6.12", "7.2"]
    pairs = list(zip(prepared.runs, prepared.plans, strict=True))
    assert [hosts.of(run.experiment).inputs(plan).kernel for run, plan in pairs] == ["6.12", "6.12", "7.2", "7.2"]
    ids = run_ids(prepared, hosts, Results(tmp_path / "results", "small"))
    assert [name.rpartition("-")[0] for name in ids] == ["6.12-s1", "6.12-s2", "7.2-s1", "7.2-s2"]
    # a kernel that is built anew makes new runs of its own and leaves the other's alone
    rebuilt: Any = RunHosts(hosts.common, {**hosts.by_kernel, "6.12": FakeHost("6.12 patched")})  # type: ignore[dict-item]
    assert [a == b for a, b in zip(ids, run_ids(prepared, rebuilt, Results(tmp_path, "small")), strict=True)] == [
        False,
        False,
        True,
        True,
    ]


def test_a_run_of_a_sweep_is_decided_by_what_decides_that_of_a_file_with_this_kernel(tmp_path: Path) -> None:
    (alone,) = prepare(lab.write(tmp_path, lab.SMALL + "kernel: '6.12'\n")).runs
    of_sweep = prepare(lab.write(tmp_path, swept())).runs
    assert [run.inputs("virtual") == alone.inputs("virtual") for run in of_sweep] == [True, False]


def test_a_file_without_a_sweep_over_kernels_has_one_host_and_the_ids_that_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = fake_hosts(monkeypatch)
    prepared = prepare(lab.write(tmp_path, lab.SMALL + "repeats: 2\n"))
    hosts = hosts_for(prepared)
    assert opened == ["default"] and not hosts.by_kernel
    jobs = zip(prepared.runs, prepared.plans, strict=True)
    expected = [run_id(run, plan, FakeHost("default")) for run, plan in jobs]  # type: ignore[arg-type]
    assert run_ids(prepared, hosts, Results(tmp_path / "results", "small")) == expected


def test_a_sweep_of_one_kernel_that_is_not_the_files_runs_on_that_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = fake_hosts(monkeypatch)
    prepared = prepare(lab.write(tmp_path, swept("['6.1']")))
    assert hosts_for(prepared).of(prepared.runs[0].experiment).facts == {"key": "6.1"}
    assert opened == ["6.1"]


@pytest.mark.parametrize("text", [lab.SMALL + "kernel: 6.12\n", swept("[6.12, '7.2']")])
def test_a_series_without_quotes_is_a_number_and_the_error_says_how_to_write_it(tmp_path: Path, text: str) -> None:
    assert "6.12: a text is needed here, in quotes: '6.12'" in refusal(tmp_path, text)


def test_kernels_that_do_not_exist_or_are_the_same_are_refused(tmp_path: Path) -> None:
    assert "'6.2': did you mean 6.12? allowed: 'default', '6.1', '6.12' or '7.2'" in refusal(tmp_path, swept("['6.2']"))
    assert "default is 7.2, which the sweep names too" in refusal(tmp_path, swept("[default, '7.2']"))
    assert len(prepare(lab.write(tmp_path, swept("[default, '6.1']"))).runs) == 2


@pytest.mark.parametrize("value", ["./linux-6.18", "~/src/linux", "linux-6.18.tar.xz"])
def test_a_tree_or_tarball_as_a_kernel_is_refused_with_the_way_to_run_on_one(tmp_path: Path, value: str) -> None:
    for text in (f"{lab.SMALL}kernel: {value}\n", swept(f"[{value}, '7.2']")):
        message = refusal(tmp_path, text)
        assert (
            f"kernel: '{value}': " in message
            and "build-kernels --source" in message
            and "WARPBED_TEST_KERNEL" in message
        )


def test_a_word_that_one_of_the_kernels_lacks_is_refused_with_that_kernels_name(tmp_path: Path) -> None:
    assert "kernel 6.12 has no Accurate ECN" in refusal(tmp_path, swept(more="hosts: {ecn: accurate}\n"))
    assert len(prepare(lab.write(tmp_path, swept("['7.2']", more="hosts: {ecn: accurate}\n"))).runs) == 1


def test_the_virtual_host_s_kernel_is_asked_only_where_it_executes(tmp_path: Path) -> None:
    """By the host of the command line where there is one, whatever the file says."""
    text = lab.SMALL.replace("buffer: 40p", "buffer: 40p, queue: dualpi2 ecn")
    file = lab.write(tmp_path, f"{text}kernel: '6.12'\n")
    with pytest.raises(SpecError, match="CONFIG_NET_SCH_DUALPI2"):
        prepare(file)
    assert len(prepare(file, host="vm").runs) == 1
    with_host = lab.write(tmp_path, f"{text}kernel: '6.12'\nhost: vm\n")
    assert len(prepare(with_host).runs) == 1
    with pytest.raises(SpecError, match="CONFIG_NET_SCH_DUALPI2"):
        prepare(with_host, host="virtual")


@pytest.mark.parametrize("kind", ["local", "lab"])
def test_hosts_with_a_kernel_of_their_own_refuse_and_say_which_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    opened = fake_hosts(monkeypatch)
    with pytest.raises(UsageError, match=rf"host {kind} runs the kernel that its machine has.*virtual, vm, cabled"):
        hosts_for(prepare(lab.write(tmp_path, swept())), kind)
    assert not opened


def test_one_build_for_all_is_not_taken_for_two_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_hosts(monkeypatch, key=lambda _: "the one of WARPBED_TEST_KERNEL")
    with pytest.raises(UsageError, match="unset WARPBED_TEST_KERNEL"):
        hosts_for(prepare(lab.write(tmp_path, swept())))


def test_check_says_which_kernels_there_are_and_how_to_get_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find(series: str) -> None:
        if series == "6.12":
            raise WarpbedError("not built")

    monkeypatch.setattr("hosts.virtual.kernel.find", find)
    file = lab.write(tmp_path, swept())

    def said(**given: Any) -> str:
        options = {"file_only": False, "host": None, "quiet": False, "kernel": False, "format": "table", **given}
        assert check.main(Namespace(experiment=file, **options)) == 0
        return capsys.readouterr().out

    assert said(kernel=True) == "6.12\n7.2\n"
    output = said()
    assert (
        "kernels 6.12 (not built yet: ./warpbed run builds it, or ./warpbed build-kernels --series 6.12), 7.2 (built)"
        in output
    )
    assert "2 runs (2 combinations), ready to run" in output
    assert json.loads(said(format="json")) == []


def test_workers_elsewhere_are_told_each_runs_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_hosts(monkeypatch)
    asked: list[str] = []

    def artifacts(_: Supplies, kernel: str) -> tuple[()]:
        asked.append(kernel)
        return ()

    monkeypatch.setattr(Supplies, "artifacts", artifacts)
    prepared = prepare(lab.write(tmp_path, swept()))
    runner = DaskRunner(Results(tmp_path / "results", "small"), hosts_for(prepared), None, print)
    jobs = [Job(run, plan, run.label()) for run, plan in zip(prepared.runs, prepared.plans, strict=True)]
    orders = [pickle.loads(runner.order(job, "token")["payload"]) for job in jobs]
    assert [order.kernel for order in orders] == asked == ["6.12", "7.2"]
