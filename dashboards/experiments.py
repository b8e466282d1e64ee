# SPDX-License-Identifier: Apache-2.0
"""Experiments: all runs with their verdicts, and links to the other dashboards."""

from __future__ import annotations

from typing import Any

from dashboards.parts import ZERO_S, Query, Variable, bars, board, number, rows

WHERE = "r.experiment IN (${experiment:sqlstring}) AND r.verdict_shown IN (${verdict:sqlstring})"
RUNS = "(SELECT *, coalesce(nullif(verdict, ''), status) AS verdict_shown FROM runs) r"
COLOURS = {"valid": "green", "suspect": "orange", "invalid": "red", "failed": "dark-red"}


def verdict_colours(column: str = "verdict") -> dict[str, list[tuple[str, Any]]]:
    values = {
        name: {"color": colour, "index": index, "text": name} for index, (name, colour) in enumerate(COLOURS.items())
    }
    return {column: [("mappings", [{"type": "value", "options": values}]), ("custom.displayMode", "color-text")]}


def run_link() -> tuple[str, Any]:
    url = ("/d/warpbed-run?var-experiment=${__data.fields.experiment:percentencode}&var-run=${__data.fields.run:percentencode}"
           f"&from={ZERO_S * 1000}&to=${{__data.fields.to_ms}}")  # fmt: skip
    return ("links", [{"title": "Open this run", "url": url, "targetBlank": False}])


def dashboard() -> Any:
    made = board(
        "experiments",
        "All runs in the store: verdict, host, kernel, algorithm and seed, with links into the other dashboards.",
    )
    made = made.time("now-1y", "now")
    made = made.with_variable(Variable("experiment", "Experiment", "SELECT DISTINCT experiment FROM runs ORDER BY 1", multi=True,
                                       description="Experiments whose runs are listed"))  # fmt: skip
    made = made.with_variable(Variable("verdict", "Verdict", f"SELECT DISTINCT verdict_shown FROM {RUNS} WHERE experiment IN (${{experiment:sqlstring}}) ORDER BY 1",
                                       multi=True, description="Verdicts that are listed; failed runs have none"))  # fmt: skip
    made = made.with_panel(
        number("Runs", "Runs in the store.", "short", Query(f"SELECT count(*) AS runs FROM {RUNS} WHERE {WHERE}"))
    )
    for name in ("valid", "suspect", "invalid"):
        query = Query(f"SELECT count(*) AS runs FROM {RUNS} WHERE {WHERE} AND r.verdict = '{name}'")
        made = made.with_panel(number(name.capitalize(), f"Runs whose verdict is {name}.", "short", query))
    made = made.with_panel(number("Without a result", "Attempts that failed; their folders keep the reason.", "short",
                                  Query(f"SELECT count(*) AS runs FROM {RUNS} WHERE {WHERE} AND r.status <> 'complete'")))  # fmt: skip
    made = made.with_panel(number("Time emulated", "Sum of the runs' own durations.", "s",
                                  Query(f"SELECT coalesce(sum(duration_s), 0) AS duration_s FROM {RUNS} WHERE {WHERE}")))  # fmt: skip
    made = made.with_panel(rows("Runs", "Every run; a click on its name opens it.", Query(
        f"SELECT experiment, run, verdict_shown AS verdict, cca, label AS parameters, seed, host, kernel, duration_s, wall_s, reasons, error, "
        f"made_at, ingested_at AS stored_at, ({ZERO_S} + duration_s) * 1000 AS to_ms "
        f"FROM {RUNS} WHERE {WHERE} ORDER BY experiment, cca, label, run LIMIT 5000"), height=14,
        overrides={**verdict_colours(), "run": [run_link(), ("custom.width", 260)], "duration_s": [("unit", "s")],
                   "wall_s": [("unit", "s")], "to_ms": [("custom.hidden", True)]}))  # fmt: skip
    return made.with_panel(bars("Verdicts by experiment", "How many runs of each experiment are valid, suspect, invalid or failed.", "short", Query(
        f"SELECT experiment, count(*) FILTER (WHERE verdict_shown = 'valid') AS valid, count(*) FILTER (WHERE verdict_shown = 'suspect') AS suspect, "
        f"count(*) FILTER (WHERE verdict_shown = 'invalid') AS invalid, count(*) FILTER (WHERE status <> 'complete') AS failed "
        f"FROM {RUNS} WHERE {WHERE} GROUP BY 1 ORDER BY 1 LIMIT 100"), "experiment", width=24))  # fmt: skip
