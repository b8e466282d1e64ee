# SPDX-License-Identifier: Apache-2.0
"""Runs of several kinds of hosts side by side: what differs, and an account of why."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from analysis import agreement
from analysis.errors import AnalysisError
from analysis.results import load_experiment
from tests import kept_results, lab

pytestmark = pytest.mark.real_host


@pytest.fixture(scope="module")
def folder(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small experiment's run, and the same records under the name of another kind, with a longer idle path."""
    copy = tmp_path_factory.mktemp("agreement") / "small"
    shutil.copytree(small, copy)
    (run,) = lab.runs(copy)
    other = copy / "other"
    shutil.copytree(run["path"], other)
    document = json.loads((other / "run.json").read_text())
    document.update(run="other", host="vm")
    document["facts"]["idle_rtt"] = {pair: ns + 300_000 for pair, ns in document["facts"]["idle_rtt"].items()}
    (other / "run.json").write_text(json.dumps(document))
    return copy


def test_equal_records_differ_in_nothing_and_the_rtt_is_accounted_for(folder: Path) -> None:
    by_metric = {d.metric: d for d in agreement.compare(load_experiment(folder))}
    assert set(by_metric) == {"throughput_mbps", "rtt_ms", "queue_packets", "drops"}
    assert all(d.value == d.reference and d.host == "vm" for d in by_metric.values())
    assert by_metric["rtt_ms"].reason.startswith(
        "idle path +0.30 ms (its hosts' own time), queue +0.00 ms, rest -0.30 ms"
    )
    assert 0.9 < by_metric["throughput_mbps"].reference / 20 < 1.01


@pytest.mark.guest
def test_the_mean_rtt_is_the_idle_path_and_the_queue(tmp_path: Path) -> None:
    """Where hosts take no time."""
    (run,) = load_experiment(kept_results.results(tmp_path, lab.SMALL + "hosts: {overhead: none}\n"))
    m = agreement.measure(run)
    assert m.rtt_ms == pytest.approx(m.idle_rtt_ms + m.queue_delay_ms, rel=0.05)
    assert m.overflows >= 1 and m.drops >= m.overflows


def test_a_slow_link_is_distinguished_from_a_slow_sender(small: Path) -> None:
    (run,) = load_experiment(small)
    m = agreement.measure(run)
    busy = dataclasses.replace(m, throughput_mbps=m.throughput_mbps / 3, queue_empty_share=0.01, cpu_busy=1.0)
    idle = dataclasses.replace(busy, queue_empty_share=0.9)
    message = "packets waited, so that the emulated link itself was slower than asked (a CPU 100% busy"
    assert message in agreement._throughput_reason(m, busy)
    assert message not in agreement._throughput_reason(m, idle)


def test_the_command_prints_every_form(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert agreement.main([str(folder)]) == 0
    assert "rtt_ms" in capsys.readouterr().out
    assert agreement.main([str(folder), "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("| run | host |")
    assert agreement.main([str(folder), "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4


def test_one_kind_of_host_alone_is_refused(small: Path) -> None:
    with pytest.raises(AnalysisError, match="hosts here: virtual"):
        agreement.compare(load_experiment(small))
