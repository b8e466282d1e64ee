# SPDX-License-Identifier: Apache-2.0
"""Alert rules for Grafana, as it provisions them. Off unless `./warpbed dashboards provision --alerts` asks for them.

Each rule is a query whose rows are texts that say what it is about and one number; it fires for each row whose number is above its limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

EXPRESSION = "__expr__"
"""The data source of Grafana's own expressions."""
LEAST_S = 900
"""A campaign that is silent for less than this is never late."""

# Transfers of campaigns name their receiver; their times are those of the machine that made them.
TRANSFERS = """SELECT r.experiment AS campaign, p.value AS receiver, coalesce(r.made_at, r.ingested_at) AS at
    FROM runs r JOIN run_params p ON p.run_id = r.run_id AND p.name = 'receiver'"""


@dataclass(frozen=True)
class Rule:
    """limit: it fires above; pending: for so long before it does"""

    name: str
    title: str
    sql: str
    limit: float
    pending: str
    says: str


RULES = (
    Rule(
        "campaign-silent",
        "A campaign has no new transfer",
        f"""
        SELECT campaign, extract(epoch FROM now() - max(at))::float8
            / greatest({LEAST_S}, 2 * extract(epoch FROM max(gap)))::float8 AS late
        FROM (SELECT campaign, at, at - lag(at) OVER (PARTITION BY campaign ORDER BY at) AS gap FROM ({TRANSFERS}) t) gaps
        GROUP BY 1 HAVING count(gap) >= 2 AND max(at) > now() - interval '7 days'
        """,
        1.0,
        "5m",
        "The last transfer is longer ago than twice the longest pause between two so far (and 15 min). A campaign that has ended is silent "
        "for good: silence the alert; after a week it ends by itself.",
    ),
    Rule(
        "receiver-missing",
        "A campaign's receiver is missing",
        f"""
        SELECT campaign, receiver, extract(epoch FROM max(newest) - max(at))::float8
            / greatest({LEAST_S}, 2 * extract(epoch FROM max(gap)))::float8 AS late
        FROM (SELECT campaign, receiver, at, max(at) OVER (PARTITION BY campaign) AS newest,
            at - lag(at) OVER (PARTITION BY campaign, receiver ORDER BY at) AS gap FROM ({TRANSFERS}) t) gaps
        GROUP BY 1, 2 HAVING count(gap) >= 2 AND max(newest) > now() - interval '7 days'
        """,
        1.0,
        "5m",
        "Others of its campaign go on, and this one has been silent for more than twice its longest pause (and 15 min).",
    ),
    Rule(
        "invalid-share",
        "Many runs are invalid or failed",
        """
        SELECT r.experiment, avg(CASE WHEN r.status <> 'complete' OR r.verdict = 'invalid' THEN 1.0 ELSE 0.0 END)::float8 AS share
        FROM runs r WHERE r.ingested_at > now() - interval '1 day' GROUP BY 1 HAVING count(*) >= 5
        """,
        0.1,
        "5m",
        "Of at least five runs that were stored within a day more than a tenth. The dashboard Fidelity lists them with their reasons.",
    ),
    Rule(
        "store-size",
        "The store takes much of its disk",
        "SELECT pg_database_size(current_database()) / 1e9::float8 AS gb",
        50.0,
        "15m",
        "More than 50 GB. ./warpbed store forget EXPERIMENT gives space back; the results stay as files.",
    ),
)


def content() -> dict[str, Any]:
    """The provisioning file that makes the rules."""
    return {"apiVersion": 1, "groups": [
        {"orgId": 1, "name": "Warpbed", "folder": "Warpbed", "interval": "1m", "rules": [_rule(rule) for rule in RULES]}
    ]}  # fmt: skip


def removal() -> dict[str, Any]:
    """The provisioning file that takes them away, where they were made before."""
    return {"apiVersion": 1, "deleteRules": [{"orgId": 1, "uid": _uid(rule)} for rule in RULES]}


def _uid(rule: Rule) -> str:
    return f"warpbed-{rule.name}"


def _rule(rule: Rule) -> dict[str, Any]:
    span = {"from": 600, "to": 0}
    query = {"refId": "A", "rawQuery": True, "rawSql": " ".join(rule.sql.split()), "editorMode": "code",
        "format": "table",
             "intervalMs": 1000, "maxDataPoints": 1000}  # fmt: skip
    # no expression with $A: a provisioning file gives the dollar another meaning
    above = {"refId": "B", "type": "threshold", "expression": "A",
        "datasource": {"type": EXPRESSION, "uid": EXPRESSION},
             "conditions": [{"evaluator": {"type": "gt", "params": [rule.limit]}}]}  # fmt: skip
    return {
        "uid": _uid(rule), "title": rule.title, "condition": "B", "for": rule.pending, "noDataState": "OK",
        "execErrState": "Error",
        "data": [
            {"refId": "A", "relativeTimeRange": span, "datasourceUid": "warpbed", "model": query},
            {"refId": "B", "relativeTimeRange": span, "datasourceUid": EXPRESSION, "model": above},
        ],
        "labels": {"warpbed": rule.name}, "annotations": {"summary": rule.title, "description": rule.says},
    }  # fmt: skip
