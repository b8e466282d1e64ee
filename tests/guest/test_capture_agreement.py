# SPDX-License-Identifier: Apache-2.0
"""The collector, tshark and tcptrace agree on captures of the experiments that are no paper's; the papers' do so where they
run anyhow (test_paper_experiments), crafted captures in test_pcap_agreement."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.capture_agreement import TOOLS, agreement
from hosts.virtual.launch import GuestKernel
from tests import kept_results, lab, wire_tools
from tests.guest.test_paper_experiments import EXPERIMENTS, SHORT, name_of, shortened
from tests.pcap_craft import write
from tests.pcap_scenarios import clean, keep_alive, one_loss, simultaneous_open

SHORT_FORMS = {
    "applications.yml": (12, "cca=cubic,buffer=30p,seed=1"),
    "evaluate/accurate-ecn.yml": (5, "cca=cubic,seed=1"),
    "hosts/agreement-host-time.yml": (4, "rate=10mbit,overhead=200us,seed=1"),
    "hosts/agreement.yml": (4, "cca=cubic,rate=50mbit"),
    "kernels.yml": (4, "linux=7.2,seed=1"),
    "phase-effects.yml": (6, "overhead=auto,delay=500us 1ms,seed=1"),
    "quickstart.yml": (6, "cca=reno,buffer=50p,seed=1"),
}
OLDER_KERNELS = "'6.1', '6.12', "
"""Those that a checkout need not have built."""
needs_tools = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in TOOLS), reason=f"{' or '.join(TOOLS)} is not installed"
)


def test_every_experiment_s_captures_are_compared() -> None:
    """Of the evaluations the one whose headers are of another kind (Accurate ECN); what lies beyond the published points is the papers' own
    experiments with other values."""
    beyond = ("evaluate/", "drawn/", "sensitivity/")
    alike = [name for name in map(name_of, EXPERIMENTS) if name.startswith(beyond) and name not in SHORT_FORMS]
    assert sorted([*SHORT, *SHORT_FORMS, *alike]) == sorted(map(name_of, EXPERIMENTS))


@needs_tools
@pytest.mark.parametrize("name", SHORT_FORMS)
def test_captures_of_an_experiment_agree(kernel: GuestKernel, name: str, tmp_path: Path) -> None:
    length_s, only = SHORT_FORMS[name]
    text = (lab.ROOT / "experiments" / name).read_text().replace(OLDER_KERNELS, "")
    text = shortened(text, length_s)
    wire_tools.agree(kept_results.results(tmp_path, text, "--only", only))


@needs_tools
def test_a_difference_that_is_not_known_is_reported(tmp_path: Path) -> None:
    """tshark and tcptrace take the second SYN-ACK of a simultaneous open for a retransmission, which no run of ours has."""
    compared = agreement(write(tmp_path / "x.pcap", simultaneous_open()))
    assert any("retransmissions" in line for line in compared.unexplained), compared


@needs_tools
def test_a_keep_alive_s_byte_is_a_kind_of_its_own(tmp_path: Path) -> None:
    compared = agreement(write(tmp_path / "x.pcap", keep_alive()))
    assert compared.explained["tcptrace: a keep-alive's byte called a retransmission"] == 1


@needs_tools
def test_the_command_lists_kinds_of_differences(tmp_path: Path) -> None:
    write(tmp_path / "a.pcap", clean())
    write(tmp_path / "b.pcap", one_loss())
    command = [sys.executable, "-m", "benchmarks.capture_agreement", str(tmp_path)]
    done = subprocess.run(command, cwd=lab.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 captures" in done.stdout and "0 differences not explained" in done.stdout
    assert "RTT samples that are ambiguous" in done.stdout
    empty = subprocess.run(
        [*command[:-1], str(tmp_path / "none")], cwd=lab.ROOT, capture_output=True, text=True, check=False
    )
    assert empty.returncode == 2
