# SPDX-License-Identifier: Apache-2.0
"""Variables of dashboards: what they list, with which value they begin, and the hidden ones that links take with them."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.cog.builder import Builder

from dashboards.addresses import ZERO_S
from dashboards.links import Raw
from dashboards.parts import SOURCE, one_of


def never_empty(sql: str) -> str:
    """The query of a variable; where it finds nothing, an empty text: Grafana 9.4 reports an error for an answer without a row."""
    nothing = "SELECT '', ''" if "__text" in sql else "SELECT ''"
    return f"WITH known AS ({sql}) SELECT * FROM known UNION ALL {nothing} WHERE NOT EXISTS (SELECT FROM known)"


class Variable(Builder[Any]):
    """A template variable filled by a query; `multi` takes several, and All where `every` says so; `hidden` is there for links only."""

    def __init__(
        self,
        name: str,
        label: str,
        sql: str,
        *,
        multi: bool = False,
        every: bool = True,
        description: str = "",
        hidden: bool = False,
    ) -> None:
        query = never_empty(" ".join(sql.split()))
        every = multi and every
        current = {"selected": True, "text": ["All"], "value": ["$__all"]} if every else {}
        self.content = {
            "name": name, "label": label, "type": "query", "datasource": SOURCE, "query": query, "definition": query,
            "refresh": 2, "sort": 0, "multi": multi, "includeAll": every, "current": current,
            "hide": 2 if hidden else 0, "options": [], "regex": "",
            "skipUrlSync": False, "description": description,
        }  # fmt: skip

    def build(self) -> Any:
        return Raw(self.content)


LATEST = "max(coalesce(r.made_at, r.ingested_at)) DESC"
"""SQL to order experiments by: a dashboard that shows one begins with the first."""
SELECT_COMPLETE = (
    f"SELECT r.experiment FROM runs r WHERE r.status = 'complete' GROUP BY r.experiment ORDER BY {LATEST}, 1"
)


def several(
    sql: str, *more: Variable, first: str = "true", every: bool = True, description: str = "", hidden: bool = False
) -> list[Variable]:
    """The experiments of a dashboard over several, and for its links: the latest of those chosen, and how long their runs are.

    more: variables that narrow its runs; first: the condition on runs (r) whose experiment goes before others
    every: all are shown at first; else the first of `sql`
    """
    latest = f"""
        SELECT r.experiment FROM runs r WHERE {one_of("r.experiment", "experiments")} GROUP BY 1
        ORDER BY bool_or({first}) DESC, bool_or(r.status = 'complete') DESC, {LATEST}, 1 LIMIT 1
    """
    chosen, one = one_of("r.experiment", "experiments"), one_of("r.experiment", "experiment")
    return [
        Variable("experiments", "Experiments", sql, multi=True, every=every, description=description, hidden=hidden),
        *more,
        Variable("experiment", "Latest experiment", latest, hidden=True),
        length(one if every else chosen),
        *([Variable("compared", "Compared", _compared(chosen, one), hidden=True)] if every else []),
    ]


MOST_COMPARED = 4
"""Experiments; of more, and of all that there are, Compare shows the latest."""


def _compared(chosen: str, one: str) -> str:
    """The query of a variable with the parameters of a link to Compare, whose experiments cannot be All.

    Its charts are for runs that have something in common; and from Grafana 11 on a list without All keeps the word that a URL gives it.
    """
    quoted = """(SELECT string_agg(CASE WHEN c ~ '[A-Za-z0-9_.~-]' THEN c
        ELSE regexp_replace(encode(convert_to(c, 'UTF8'), 'hex'), '(..)', '%\\1', 'g') END, '' ORDER BY n)
        FROM regexp_split_to_table(e.experiment, '') WITH ORDINALITY s(c, n))"""
    return f"""
        SELECT concat_ws('&', coalesce(string_agg('var-experiments=' || {quoted}, '&' ORDER BY e.experiment), 'var-experiments='),
            'from={ZERO_S * 1000}', 'to=' || ceil(({ZERO_S} + coalesce(max(e.longest), 60)) * 1000)::bigint)
        FROM (SELECT r.experiment, max(r.duration_s) AS longest FROM runs r
            CROSS JOIN (SELECT count(DISTINCT r.experiment) AS every,
                count(DISTINCT r.experiment) FILTER (WHERE {chosen}) AS some FROM runs r) n
            WHERE CASE WHEN n.some <= {MOST_COMPARED} AND n.some < n.every THEN {chosen} ELSE {one} END
            GROUP BY 1) e
    """


def length(where: str) -> Variable:
    """The end of the longest of some runs on a run's own time, in milliseconds, for links."""
    return Variable(
        "to_ms",
        "End",
        f"SELECT ceil(({ZERO_S} + coalesce(max(r.duration_s), 60)) * 1000)::bigint::text FROM runs r WHERE {where}",
        hidden=True,
    )
