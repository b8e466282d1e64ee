# SPDX-License-Identifier: Apache-2.0
"""Experiments: all runs with their verdicts, and links to the other dashboards."""

from __future__ import annotations

from typing import Any

from dashboards.addresses import ZERO_S
from dashboards.parts import (
    INSPECT,
    MINUTE,
    RUN_ORDER,
    WHOLE,
    Query,
    assembled,
    board,
    number,
    one_of,
    rows,
)
from dashboards.variables import LATEST, Variable, several

WHERE = f"{one_of('r.experiment', 'experiments')} AND {one_of('r.verdict_shown', 'verdict')}"
RUNS = "(SELECT *, coalesce(nullif(verdict, ''), status) AS verdict_shown FROM runs) r"
LISTED = "/d/warpbed-experiments?var-experiments=${__data.fields.experiment:percentencode}"
COLOURS = {"valid": "green", "suspect": "orange", "invalid": "red", "failed": "dark-red"}

SELECT_EXPERIMENTS = "SELECT DISTINCT experiment FROM runs ORDER BY 1"
SELECT_VERDICTS = f"""
    SELECT DISTINCT verdict_shown FROM {RUNS} WHERE {one_of("r.experiment", "experiments")} ORDER BY 1
"""
COUNT = f"SELECT count(*) AS runs FROM {RUNS} WHERE {WHERE}"
EVERY_RUN = f"""
    SELECT experiment, run, verdict_shown AS verdict, cca, (SELECT string_agg(v.name || ' ' || v.value, ', ' ORDER BY v.name)
            FROM run_params v WHERE v.run_id = r.run_id AND v.name <> 'cca') AS parameters,
        seed::text AS seed, host, kernel, duration_s, wall_s, concat_ws('; ', nullif(reasons, ''), nullif(error, '')) AS why, made_at,
        ({ZERO_S} + duration_s) * 1000 AS to_ms
    FROM {RUNS} JOIN (SELECT r.experiment, row_number() OVER (ORDER BY {LATEST}, 1) AS place FROM runs r GROUP BY 1) e USING (experiment)
    WHERE {WHERE} ORDER BY e.place, {RUN_ORDER} LIMIT 5000
"""
RUN_WORDS = {
    "experiment": ("Experiment", 120), "run": ("Run", 205), "verdict": ("Verdict", 68), "cca": ("Algorithm", 88),
    "parameters": ("Parameters", 270), "seed": ("Seed", 90), "host": ("Host", 65), "kernel": ("Kernel", 75),
    "duration_s": ("Length", 70),
    "wall_s": ("Took", 70), "why": ("Why", 0), "made_at": ("Made", 140),
}  # fmt: skip
BY_VERDICT = f"""
    SELECT experiment, max(coalesce(r.made_at, r.ingested_at)) AS latest, count(*) AS runs,
        nullif(count(*) FILTER (WHERE verdict_shown = 'valid'), 0) AS valid,
        nullif(count(*) FILTER (WHERE verdict_shown = 'suspect'), 0) AS suspect,
        nullif(count(*) FILTER (WHERE verdict_shown = 'invalid'), 0) AS invalid,
        nullif(count(*) FILTER (WHERE status <> 'complete'), 0) AS failed,
        string_agg(DISTINCT nullif(cca, ''), ', ') AS algorithms
    FROM {RUNS} WHERE {WHERE} GROUP BY 1 ORDER BY {LATEST}, 1 LIMIT 1000
"""
VERDICT_WORDS = {
    "experiment": ("Experiment", 230), "latest": ("Latest run", 150), "runs": ("Runs", 70), "valid": ("Valid", 70),
    "suspect": ("Suspect", 80), "invalid": ("Invalid", 75), "failed": ("Failed", 75),
    "algorithms": ("Algorithms", 0),
}  # fmt: skip


def verdict_colours(column: str = "verdict") -> dict[str, list[tuple[str, Any]]]:
    values = {
        name: {"color": colour, "index": index, "text": name} for index, (name, colour) in enumerate(COLOURS.items())
    }
    return {column: [("mappings", [{"type": "value", "options": values}]), ("custom.displayMode", "color-text")]}


def run_link(title: str = "Open this run") -> tuple[str, Any]:
    url = (
        "/d/warpbed-run?var-experiment=${__data.fields.experiment:percentencode}"
        "&var-run=${__data.fields.run:percentencode}"
        f"&from={ZERO_S * 1000}&to=${{__data.fields.to_ms}}"
    )
    return ("links", [{"title": title, "url": url, "targetBlank": False}])


def of_verdict(name: str) -> Any:
    """How many runs have a verdict."""
    query = Query(f"{COUNT} AND r.verdict = '{name}'")
    return number(name.capitalize(), f"Runs whose verdict is {name}.", "short", query)


def dashboard() -> Any:
    page = board(
        "experiments",
        "All runs in the store: verdict, host, kernel, algorithm and seed, with links into the other dashboards.",
    ).time("now-1y", "now")
    listed = "Experiments whose runs are listed"
    variables = [
        *several(SELECT_EXPERIMENTS, description=listed),
        Variable(
            "verdict",
            "Verdict",
            SELECT_VERDICTS,
            multi=True,
            description="Verdicts that are listed; failed runs have none",
        ),
    ]
    panels = [
        number("Runs", "Runs in the store.", "short", Query(COUNT)),
        *(of_verdict(name) for name in ("valid", "suspect", "invalid")),
        number(
            "Failed",
            "Attempts that failed; their folders keep the reason.",
            "short",
            Query(f"{COUNT} AND r.status <> 'complete'"),
        ),
        number(
            "Emulated",
            "Sum of the runs' own durations.",
            "s",
            Query(f"SELECT coalesce(sum(duration_s), 0) AS duration_s FROM {RUNS} WHERE {WHERE}"),
        ),
        rows(
            "Verdicts by experiment",
            "How many runs of each experiment are valid, suspect, invalid or failed, the latest first; a click lists its runs.",
            Query(BY_VERDICT),
            height=8,
            overrides={
                "experiment": [("links", [{"title": "List its runs", "url": LISTED, "targetBlank": False}])],
                "latest": MINUTE,
                **{
                    name: [("color", {"mode": "fixed", "fixedColor": colour}), ("custom.displayMode", "color-text")]
                    for name, colour in COLOURS.items()
                },
            },
            columns=VERDICT_WORDS,
        ),
        rows(
            "Runs",
            "Every run, those of the latest experiment first; a click on its name opens it.",
            Query(EVERY_RUN),
            height=14,
            overrides={
                **verdict_colours(),
                "run": [run_link()],
                "duration_s": [("unit", "s")],
                "wall_s": [("unit", "s")],
                "seed": WHOLE,
                "made_at": MINUTE,
                "to_ms": [("custom.hidden", True)],
                "why": INSPECT,
            },
            columns=RUN_WORDS,
        ),
    ]
    return assembled(page, variables, panels)
