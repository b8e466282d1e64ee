# SPDX-License-Identifier: Apache-2.0
"""Medley's R and FTAT's phases, from the modules' get_info() through the whole pipeline to the store's events."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hosts.virtual.launch import GuestKernel
from store import files, folder
from tests import kept_results, lab

# Two flows that overflow a queue of half a bandwidth-delay product (42 packets): losses of congestion, rounds of about 50 ms.
SHARED = """\
warpbed: 1
name: phases
title: two flows overflow a queue
duration: 10s
topology: {name: dumbbell, params: {rate: 10mbit, delay: 25ms, buffer: 20p, access_rate: 1gbit, access_delay: 1ms, pairs: 2}}
flows:
  - {name: f1, cca: medley, from: s1, to: d1}
  - {name: f2, cca: reno, from: s2, to: d2}
sweep:
  parameters: {cca: flows.0.cca}
  factorial: {cca: [medley, ftat]}
samplers: {sockets: 10ms}
"""


def test_phases_are_sampled_and_become_events(kernel: GuestKernel, tmp_path: Path) -> None:
    runs = {run["params"]["cca"]: run for run in lab.runs(kept_results.results(tmp_path, SHARED))}
    for cca, wanted in (("medley", {0, 1}), ("ftat", {0, 1, 2})):
        table = lab.table(runs[cca]["path"], "tcp_info")
        of: dict[str, set[int | None]] = {flow: set() for flow in ("f1", "f2")}
        for flow, phase in zip(table["flow"], table["ca_phase"], strict=True):
            of[flow].add(None if np.isnan(phase) else int(phase))
        assert of == {"f1": wanted, "f2": {None}}
        with files.opened([folder.read(runs[cca]["path"])], [1]) as database:
            phases = database.execute(
                "SELECT text FROM events WHERE kind = 'phase' AND flow = 'f1' ORDER BY time_ns"
            ).fetchall()
        assert {text.partition(":")[0] for (text,) in phases} == {cca}
        assert {"medley": "medley: R true: the last loss was one of congestion", "ftat": "ftat: adaptive transmission"}[
            cca
        ] in {text for (text,) in phases}
