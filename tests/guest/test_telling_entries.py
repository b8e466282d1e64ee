# SPDX-License-Identifier: Apache-2.0
"""Of each thesis the entry that says most, in a short form; the whole catalogues are for ./warpbed reproduce."""

from __future__ import annotations

from pathlib import Path

from analysis.models import ho2008
from analysis.reproduction.measured import peaks, windows
from analysis.results import load_experiment
from hosts.virtual.launch import GuestKernel
from tests import kept_results, lab
from tests.guest.test_paper_experiments import shortened


def shorter(name: str, seconds: int) -> str:
    return shortened((lab.ROOT / "experiments" / name).read_text(), seconds)


def first_peaks(folder: Path, experiment: str) -> list[float]:
    """The windows at Medley's first six decreases at 50 Mbit/s."""
    folder.mkdir()
    results = kept_results.results(folder, shorter(experiment, 6), "--only", "rate=50mbit,seed=1")
    (run,) = load_experiment(results)
    return peaks([cwnd for _, cwnd in windows(run)])[:6]


def test_medley_s_windows_are_those_of_ho_s_example_and_of_its_model(kernel: GuestKernel, tmp_path: Path) -> None:
    """W = 382 at t_1 and 422 at t_2 are printed (s4.3); by real numbers it goes as eq 4.7 has it five times, with 410 in place of 422."""
    model = [W for _, W in ho2008.decreases(ho2008.MU_D, 6)]
    assert model[:2] == [382, 410]
    assert first_peaks(tmp_path / "whole", "ho2008/fig4.2-4.4.yml")[:2] == [382, 422]
    assert first_peaks(tmp_path / "real", "ho2008/fig4.2-4.4-real.yml")[:5] == model[:5]


def test_red_with_a_low_threshold_spares_highspeed_the_burst_of_losses_as_in_tokuda_s_fig_3(
    kernel: GuestKernel, tmp_path: Path
) -> None:
    """s3: with drop-tail many packets are lost at the end of slow start, with RED from 5 packets on there is no such burst."""
    drops = {}
    for queue in ("droptail", "red_packets min=5p max=3125p p=10% weight=0.002"):
        folder = tmp_path / queue[:3]
        folder.mkdir()
        results = kept_results.results(
            folder, shorter("tokuda2003/fig3.yml", 4), "--only", f"cca=highspeed,queue={queue},seed=1"
        )
        (run,) = load_experiment(results)
        drops[queue[:3]] = run.metrics["queue_drops"]
    assert drops["dro"] > 10 * drops["red"]
