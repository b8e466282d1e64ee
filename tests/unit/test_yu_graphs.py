# SPDX-License-Identifier: Apache-2.0
"""Yu's random graphs: a file of many runs on few graphs is checked quickly, and graphs are the sample of what is decided."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from analysis.reproduction import yu2009
from analysis.results import Run
from network.model import Network
from plan.model import FlowPlan
from testbed import compile as compiler
from testbed.experiments import prepare
from tests.comparisons import decided

FILE = """\
warpbed: 1
name: graphs
title: Two graphs and five gaps
duration: 10s
topology: {name: transit_stub, params: {nodes: 25, seed: 1}}
hosts: {overhead: none}
traffic:
  - {name: t, kind: transfers, cca: reno, from: t1, to: [t1a1, t1b2], gap: exponential(1s), life: 5s}
sweep:
  parameters: {gap: traffic.0.gap, graph: topology.params.seed}
  factorial: {gap: [exponential(1s), exponential(2s), exponential(3s), exponential(4s), exponential(5s)], graph: [1, 2]}
seeds: [1]
"""


def test_runs_on_one_graph_share_its_paths_and_size_buffers_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sized = []
    whole = compiler.socket_buffers

    def counted(network: Network, flows: Iterable[FlowPlan]) -> tuple[int, int]:
        sized.append(network)
        return whole(network, flows)

    monkeypatch.setattr(compiler, "socket_buffers", counted)
    file = tmp_path / "graphs.yml"
    file.write_text(FILE)
    plans = prepare(file).plans
    assert len(plans) == len(sized) == 10
    assert len({id(plan.network) for plan in plans}) == 2
    assert len({plan.network for plan in plans}) == 2


def runs(factor: Mapping[str, float], spread: float = 0.01) -> list[Run]:
    """Five graphs of which each has another level; a start's first seconds and total are Reno's times its factor, a little apart."""
    five_graphs = []
    for graph in range(1, 6):
        for cca in (yu2009.RENO, *yu2009.STARTS):
            for rate, gap in (*yu2009.RATES, yu2009.OFTEN, yu2009.SELDOM):
                level = 1000.0 * graph * float(str(rate).removesuffix("mbit"))
                early = level * (factor.get(cca, 1.0) + spread * graph / 5)
                first = {"1": early, "5": early, "10": early * (1.5 if cca in ("liss", "iss") else 1)}
                metrics = {"initial_packets": first, "delivered_packets": level / factor.get(cca, 1.0)}
                params = {"graph": graph, "cca": cca, "rate": rate, "gap": gap}
                five_graphs.append(
                    Run("e", f"{cca}-{graph}-{rate}-{gap}", Path(), 1, params, status="complete", metrics=metrics)
                )
    return five_graphs


def test_the_graphs_are_the_sample_and_each_is_held_against_reno_on_itself() -> None:
    """Levels differ fivefold between graphs, ratios by a hundredth."""
    checks = decided("yu2009-fig2.11", runs({"liss": 1.1, "iss": 1.08, "miss": 1.3, "js": 1.5}))
    early = [check for check in checks if check.part == "1"]
    assert all(check.holds for check in early) and len(early) == 10
    assert [check.holds for check in checks if check.part == "2"] == [True, True]
    assert [check.published for check in checks if check.part == "numbers"] == [0.959, 0.938]
    assert [check.holds for check in checks if check.part == "numbers"] == [False, False]  # 1/1.3 and 1/1.5


def test_a_start_that_is_below_reno_contradicts_and_one_graph_decides_nothing() -> None:
    five_graphs = runs({"liss": 0.9, "iss": 0.9, "miss": 0.9, "js": 0.8})
    checks = [check for check in decided("yu2009-fig2.11", five_graphs) if check.part == "1"]
    assert not any(check.holds or check.undecided for check in checks[:4])
    single = decided("yu2009-fig2.11", [run for run in five_graphs if run.params["graph"] == 1])
    assert all(check.undecided for check in single if check.part in ("1", "2"))


def test_the_gain_has_to_grow_as_connections_come_more_often() -> None:
    five_graphs = runs({"liss": 1.1, "iss": 1.1, "miss": 1.2, "js": 1.3}, spread=0.0)
    checks = [check for check in decided("yu2009-fig2.13", five_graphs) if check.part == "1"]
    assert [(check.holds, check.undecided) for check in checks] == [(False, False)] * 4  # no growth at all


def test_the_lead_on_200_nodes_is_held_against_that_on_600() -> None:
    def on_600(lead: float) -> list[Run]:
        levels = {cca: 1.0 if cca == yu2009.RENO else lead for cca in (yu2009.RENO, *yu2009.STARTS)}
        return [
            Run(
                yu2009.LARGE,
                f"{cca}-{graph}-{rate}",
                Path(),
                1,
                {"graph": graph, "cca": cca, "rate": rate, "gap": gap, "buffer": buffer},
                status="complete",
                metrics={"initial_packets": {"5": 100.0 * graph * level + graph}, "delivered_packets": 1.0},
            )
            for graph in range(1, 6)
            for cca, level in levels.items()
            for rate, gap, buffer in (yu2009.SLOW, yu2009.USUAL)
        ]

    levels_on_200 = {"liss": 1.3, "iss": 1.3, "miss": 1.3, "js": 1.3}
    on_200 = [dataclasses.replace(run, experiment=yu2009.SMALL) for run in runs(levels_on_200)]
    for lead, holds in ((1.1, True), (1.6, False)):
        checks = [one for one in decided("yu2009-fig2.14", [*on_200, *on_600(lead)]) if one.part == "3"]
        assert [(one.holds, one.undecided) for one in checks] == [(holds, False)] * 4
