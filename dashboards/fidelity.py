# SPDX-License-Identifier: Apache-2.0
"""Fidelity: requested against measured values, and the runs excluded because of them."""

from __future__ import annotations

from typing import Any

from dashboards.addresses import ZERO_S
from dashboards.experiments import SELECT_EXPERIMENTS, run_link, verdict_colours
from dashboards.parts import (
    INSPECT,
    RUN_ORDER,
    Query,
    assembled,
    bars,
    board,
    number,
    one_of,
    rows,
)
from dashboards.variables import several

WHERE = one_of("r.experiment", "experiments")
EXCLUDED = "(r.verdict = 'invalid' OR r.status <> 'complete')"

VALID_SHARE = f"""
    SELECT avg(CASE WHEN verdict = 'valid' THEN 1.0 ELSE 0.0 END) AS valid
    FROM runs r WHERE {WHERE} AND status = 'complete'
"""
ASKED_AND_MEASURED = f"""
    SELECT r.experiment, r.run, coalesce(nullif(r.reasons, ''), 'as requested') AS findings, r.verdict, r.host,
        r.spec #>> '{{topology,params,rate}}' AS rate_asked,
        u.utilization, r.spec #>> '{{topology,params,delay}}' AS delay_asked, l.rtt_min_ms AS rtt_min_measured,
        r.spec #>> '{{topology,params,buffer}}' AS buffer_asked, q.queue_max_packets AS queue_max_measured,
        ({ZERO_S} + r.duration_s) * 1000 AS to_ms
    FROM runs r
    LEFT JOIN (SELECT run_id, value AS queue_max_packets FROM run_metrics WHERE name = 'queue_max_packets') q USING (run_id)
    LEFT JOIN (SELECT run_id, value AS utilization FROM run_metrics WHERE name = 'utilization') u USING (run_id)
    LEFT JOIN (SELECT run_id, value AS rtt_min_ms FROM run_metrics WHERE name = 'rtt_min_ms') l USING (run_id)
    WHERE {WHERE} AND r.status = 'complete' ORDER BY r.verdict, r.experiment, {RUN_ORDER} LIMIT 2000
"""
ASKED_WORDS = {
    "experiment": ("Experiment", 140), "run": ("Run", 220), "verdict": ("Verdict", 75), "host": ("Host", 70),
    "rate_asked": ("Rate", 90), "utilization": ("Utilization", 95), "delay_asked": ("Delay", 80),
    "rtt_min_measured": ("Min RTT", 95),
    "buffer_asked": ("Buffer", 80), "queue_max_measured": ("Max queue", 110), "findings": ("Findings", 0),
}  # fmt: skip
BY_RULE = f"""
    SELECT x.rule, count(*) FILTER (WHERE x.severity = 'error') AS errors,
        count(*) FILTER (WHERE x.severity <> 'error') AS warnings
    FROM (SELECT rule, severity FROM run_reasons JOIN runs r USING (run_id) WHERE {WHERE}) x GROUP BY 1
    UNION ALL SELECT 'none broken', 0, 0
        WHERE NOT EXISTS (SELECT FROM run_reasons JOIN runs r USING (run_id) WHERE {WHERE})
    ORDER BY 1
"""
HEADROOM = f"""
    SELECT r.host, r.experiment, r.run, r.duration_s / nullif(r.wall_s, 0) AS headroom
    FROM runs r WHERE {WHERE} AND r.wall_s > 0 ORDER BY 4, 3 LIMIT 1000
"""
EXCLUDED_RUNS = f"""
    SELECT r.experiment, r.run, concat_ws('; ', nullif(r.reasons, ''), nullif(r.error, '')) AS why,
        coalesce(nullif(r.verdict, ''), r.status) AS verdict
    FROM runs r WHERE {WHERE} AND {EXCLUDED}
    UNION ALL SELECT '', 'none', 'every run counts', ''
        WHERE NOT EXISTS (SELECT FROM runs r WHERE {WHERE} AND {EXCLUDED})
    ORDER BY 1, 2 LIMIT 2000
"""


def dashboard() -> Any:
    page = board("fidelity", "Requested and measured values, time limits, and the runs that do not count.").time(
        "now-1y", "now"
    )
    panels = [
        number("Valid", "Share of the complete runs that are valid.", "percentunit", Query(VALID_SHARE), width=6),
        number(
            "Excluded runs",
            "Invalid or failed: they enter no mean.",
            "short",
            Query(f"SELECT count(*) AS runs FROM runs r WHERE {WHERE} AND {EXCLUDED}"),
            width=6,
        ),
        number(
            "Rules broken",
            "Findings of all rules, errors and warnings.",
            "short",
            Query(f"SELECT count(*) AS findings FROM run_reasons JOIN runs r USING (run_id) WHERE {WHERE}"),
            width=6,
        ),
        number(
            "Slowest run",
            "Wall time over the run's own time. In virtual time, a value above 1 makes a run slow but does not change its results.",
            "suffix: × its length",
            Query(f"SELECT max(wall_s / nullif(duration_s, 0)) AS ratio FROM runs r WHERE {WHERE}"),
            width=6,
        ),
        rows(
            "Requested and measured",
            "What the experiment requests of its links and what was measured. Rate, delay, loss and buffer are checked by rules; "
            "their findings are beside the run.",
            Query(ASKED_AND_MEASURED),
            height=11,
            overrides={
                **verdict_colours(),
                "utilization": [("unit", "percentunit")],
                "findings": INSPECT,
                "run": [run_link()],
                "to_ms": [("custom.hidden", True)],
                "rtt_min_measured": [("unit", "ms")],
            },
            columns=ASKED_WORDS,
        ),
        bars(
            "Findings by rule",
            "How often each rule was broken; docs/fidelity.md explains them.",
            "short",
            Query(BY_RULE),
            "rule",
            colours={"errors": "red", "warnings": "orange"},
        ),
        rows(
            "CPU headroom",
            "The run's own time over wall time, smallest first; below 1 the machine is slower than the run. Real-time hosts need 1; "
            "the verdict's rules check their load.",
            Query(HEADROOM),
            width=12,
            height=9,
            overrides={"headroom": [("custom.displayMode", "gradient-gauge"), ("min", 0), ("decimals", 1)]},
            columns={
                "host": ("Host", 80),
                "experiment": ("Experiment", 190),
                "run": ("Run", 220),
                "headroom": ("Headroom", 0),
            },
        ),
        rows(
            "Excluded runs",
            "Why they do not count.",
            Query(EXCLUDED_RUNS),
            height=8,
            overrides={**verdict_colours(), "why": INSPECT},
            columns={
                "experiment": ("Experiment", 160),
                "run": ("Run", 260),
                "verdict": ("Verdict", 80),
                "why": ("Why", 0),
            },
        ),
    ]
    return assembled(page, several(SELECT_EXPERIMENTS), panels)
