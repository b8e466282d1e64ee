# SPDX-License-Identifier: Apache-2.0
"""Reproduction: the outcome of each table, figure and claim of the theses, with published and measured values and links to the runs."""

from __future__ import annotations

from typing import Any

from dashboards.parts import INSPECT, MINUTE, Query, assembled, bars, board, number, one_of, rows
from dashboards.variables import Variable, several

COLOURS = {
    "agrees": "green", "agrees in order or shape": "light-green", "contradicts, explained": "orange",
    "contradicts, unexplained": "red",
    "undecided": "yellow", "not run yet": "blue", "not bound yet": "text", "cannot be compared": "dark-purple",
}  # fmt: skip
"""Of the words of analysis.reproduction.outcomes.Judged.word."""
HELD = {"holds": "green", "contradicted": "red", "undecided": "yellow", "not run yet": "blue"}
WHERE = f"{one_of('o.thesis', 'thesis')} AND {one_of('o.outcome', 'outcome')}"

SELECT_EXPERIMENTS = "SELECT DISTINCT experiment FROM runs ORDER BY 1"
SELECT_THESES = "SELECT DISTINCT thesis FROM outcomes ORDER BY 1"
SELECT_OUTCOMES = f"""
    SELECT DISTINCT o.outcome FROM outcomes o WHERE {one_of("o.thesis", "thesis")} ORDER BY 1
"""
COUNT = f"SELECT count(*) AS entries FROM outcomes o WHERE {WHERE}"
COUNTS = ", ".join(f"nullif(count(*) FILTER (WHERE o.outcome = '{word}'), 0) AS \"{word}\"" for word in COLOURS)
BY_THESIS = f"""
    SELECT o.thesis, {COUNTS}
    FROM outcomes o WHERE {WHERE} GROUP BY 1 ORDER BY 1
"""
ENTRIES = f"""
    SELECT o.entry, o.outcome, o.title, o.place, o.reason, string_agg(DISTINCT nullif(e.experiment, ''), ', ') AS experiments,
        o.decided_at
    FROM outcomes o LEFT JOIN evidence e USING (entry) WHERE {WHERE}
    GROUP BY o.entry ORDER BY o.thesis, o.number LIMIT 2000
"""
MEASURED = f"""
    SELECT o.entry, e.part, e.held, e.published, e.measured, nullif(e.seeds, 0) AS seeds, e.says,
        concat_ws(' ', CASE WHEN e.explains THEN '(explains)' END, nullif(e.reason, '')) AS reason,
        coalesce(nullif(e.experiment, ''), 'a calculation') AS experiment, coalesce(nullif(e.experiment, ''), 'All') AS listed,
        (SELECT count(*) FROM runs r WHERE r.experiment = e.experiment AND e.experiment <> '') AS runs
    FROM outcomes o JOIN evidence e USING (entry) WHERE {WHERE} ORDER BY o.thesis, o.number, e.number LIMIT 5000
"""


def word_colours(column: str, colours: dict[str, str]) -> dict[str, list[tuple[str, Any]]]:
    values = {
        name: {"color": colour, "index": index, "text": name} for index, (name, colour) in enumerate(colours.items())
    }
    return {column: [("mappings", [{"type": "value", "options": values}]), ("custom.displayMode", "color-text")]}


def of_outcome(title: str, outcomes: tuple[str, ...], description: str) -> Any:
    chosen = ", ".join(f"'{word}'" for word in outcomes)
    return number(title, description, "short", Query(f"{COUNT} AND o.outcome IN ({chosen})"))


def dashboard() -> Any:
    page = board(
        "reproduction",
        "The theses' tables, figures and claims, and the outcome of each. ./warpbed reproduce --no-run --to-store fills it.",
    ).time("now-1y", "now")
    variables = [
        Variable("thesis", "Thesis", SELECT_THESES, multi=True),
        Variable("outcome", "Outcome", SELECT_OUTCOMES, multi=True),
        *several(SELECT_EXPERIMENTS, hidden=True),
    ]
    runs = "/d/warpbed-experiments?var-experiments=${__data.fields.listed:percentencode}"
    panels = [
        number("Entries", "Entries of the catalogues.", "short", Query(COUNT)),
        of_outcome("Agree", ("agrees", "agrees in order or shape"),
            "Every decided part holds, at least in order or shape."),
        of_outcome("Explained", ("contradicts, explained",), "Contradicted; a run or a calculation shows why."),
        of_outcome("Unexplained", ("contradicts, unexplained",), "Contradicted; nothing here shows why."),
        of_outcome("Open", ("undecided", "not run yet", "not bound yet"),
            "Undecided, not run yet, or not bound to a run yet."),
        of_outcome("Not comparable", ("cannot be compared",), "Cannot be compared; the catalogue says why."),
        bars("Outcomes by thesis", "Number of entries of each thesis by outcome.", "short", Query(BY_THESIS), "thesis",
             width=24, height=8, colours=COLOURS),
        rows(
            "Entries of the catalogues", "Each table, figure and claim, in the order of its thesis.", Query(ENTRIES),
            height=12,
            overrides={**word_colours("outcome", COLOURS), "decided_at": MINUTE, "title": INSPECT, "reason": INSPECT},
            columns={"entry": ("Entry", 170), "title": ("Title", 310),
                "place": ("Where", 190),
                     "outcome": ("Outcome", 205), "reason": ("Why", 0), "experiments": ("Experiments", 170),
                     "decided_at": ("Decided", 150)},
        ),
        rows(
            "Published and measured", "Each part that a run or a calculation decides; a click on an experiment lists its runs.",
            Query(MEASURED),
            height=14,
            overrides={**word_colours("held", HELD), "says": INSPECT, "measured": INSPECT, "reason": INSPECT,
                       "experiment": [("links", [{"title": "List its runs", "url": runs, "targetBlank": False}])],
                       "listed": [("custom.hidden", True)]},
            columns={"entry": ("Entry", 170), "part": ("Part", 125), "says": ("Claim", 0),
                "published": ("Published", 110),
                     "measured": ("Measured", 160), "seeds": ("Seeds", 60), "held": ("Result", 110),
                     "reason": ("Why", 180),
                     "experiment": ("Experiment", 150), "runs": ("Stored", 70)},
        ),
    ]  # fmt: skip
    return assembled(page, variables, panels)
