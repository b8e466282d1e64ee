# SPDX-License-Identifier: Apache-2.0
"""Kato 2012 s5.2.3: what the hooks of an algorithm take, and what of it is ftrace's.

`benchmarks.cost_per_call --record` measures the hooks themselves, whose numbers of one run can be compared with one another. The thesis'
numbers are ftrace's, whose own work for each traced function is in them: `tests.lab_machine.traced --record` measures so, too.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Iterator

from analysis.models.checks import Check, decides, relation
from analysis.models.kato2012 import after_losses, lost
from base.paths import ROOT
from schema.catalogue import FILE, Entry, load

FOLDER = ROOT / "experiments" / "kato2012"
COSTS, TRACED = FOLDER / "costs.json", FOLDER / "traced.json"
TTFWC = {"tfwc": "TTFWC(0.0)", "ttfwc": "TTFWC(0.4)", "ttfwc2": "TTFWC(0.9)"}
"""Our names, and those of the thesis' tables."""
SAME_COST = 1.12
"""TTFWC(0.9) over CUBIC by Table 5.1: as far as "as costly" goes."""
LOSS_EVENTS = 0.01
UNDER_FTRACE = "with each function traced, as the thesis measured (Debian's kernel), thousands of instructions"


def costs() -> dict[str, tuple[float, float, float]]:
    """Algorithm → ns per ACK before losses, per ACK after them, per loss."""
    rows = json.loads(COSTS.read_text(encoding="utf-8"))
    return {name: (float(ack), float(later), float(loss)) for name, (ack, later, loss) in rows.items()}


def traced(hook: str) -> dict[str, float]:
    """Algorithm → mean of a hook's calls by function_graph, thousands of instructions; 0 where it has none that can be traced."""
    hooks = json.loads(TRACED.read_text(encoding="utf-8"))["hooks"]
    return {name: float(found[hook][1]) if hook in found else 0.0 for name, found in hooks.items()}


@functools.cache
def least_traced_us() -> float:
    """What the thesis' tracing takes at least: CUBIC's hook for a new state, which as a rule compares two numbers (s5.2.3)."""
    catalogue, _ = load(FOLDER / FILE)
    (entry,) = (one for one in catalogue.entries if one.id == "kato2012-claim5.2.3")
    return dict(_rows(entry))["change of congestion state"][0]


def _rows(entry: Entry) -> Iterator[tuple[str, list[float]]]:
    tables = entry.published.numbers
    assert isinstance(tables, list)
    for name, *means in tables[0]["rows"]:
        yield name, means


@decides("kato2012-tab5.1")
def _avoidance_cost(entry: Entry) -> Iterator[Check]:
    ns = {name: later for name, (_, later, _) in costs().items()}
    shown = {name: f"{value:.1f}" for name, value in ns.items()}
    own = [ns[name] for name in TTFWC]
    words = "ns per ACK after losses, past the flat period"
    yield relation("1", f"{words}: TTFWC within {SAME_COST} times CUBIC", max(own) <= SAME_COST * ns["cubic"], shown)
    least, most = min(own) / ns["reno"], max(own) / ns["reno"]
    yield Check("2", f"{words}: TTFWC over Reno", least <= 9 <= most, 9, [least, most])
    claim = f"the dearest TTFWC within {SAME_COST} times the cheapest"
    yield relation("3", f"{words}: {claim}", max(own) <= SAME_COST * min(own), shown)

    under = traced("cong_avoid")
    own = [under[name] for name in TTFWC]
    shown = {name: f"{value:.2f}" for name, value in under.items()}
    holds = max(own) <= SAME_COST * under["cubic"]
    yield _explains("1", f"{UNDER_FTRACE}: TTFWC within {SAME_COST} times CUBIC", holds, shown)
    yield _explains("3", f"{UNDER_FTRACE}: {claim}", max(own) <= SAME_COST * min(own), shown)
    rows, tracing = dict(_rows(entry)), least_traced_us()
    printed = [(rows[name][0] - tracing) / (rows["RENO"][0] - tracing) for name in TTFWC.values()]
    says = (
        f"TTFWC over Reno by the table, less what tracing takes at least ({tracing} us, CUBIC's hook for a new state), "
        f"{min(printed):.1f} to {max(printed):.1f}: within what is measured here without tracing"
    )
    yield _explains("2", says, least <= max(printed) and min(printed) <= most, [round(least, 1), round(most, 1)])


def _explains(part: str, says: str, holds: bool, shown: object) -> Check:
    return Check(part, says, holds, None, shown, "order", explains=True)


@decides("kato2012-tab5.2")
def _recovery_cost(entry: Entry) -> Iterator[Check]:
    ns = {name: loss for name, (_, _, loss) in costs().items()}
    ratios = {other: [round(ns[name] / ns[other], 1) for name in TTFWC] for other in ("reno", "cubic")}
    yield relation(
        "1", "ns per loss, TTFWC over Reno and over CUBIC: at least twice", min(map(min, ratios.values())) >= 2, ratios
    )
    rows, under = dict(_rows(entry)), traced("ssthresh")
    for other, row in (("reno", rows["RENO"]), ("cubic", rows["CUBIC"])):
        printed = [rows["TTFWC(0.0)"][0], row[0]]
        ratio = printed[0] / printed[1]
        words = f"TTFWC over {other}, within a half of the ratio of the table's means (ours)"
        held = all(0.5 * ratio <= here <= 1.5 * ratio for here in ratios[other])
        yield Check("1", f"ns per loss, {words}", held, printed, ratios[other])
        here = [round(under[name] / under[other], 1) for name in TTFWC]
        held = all(0.5 * ratio <= one <= 1.5 * ratio for one in here)
        yield _explains("1", f"a loss's hook {UNDER_FTRACE}, {words}, {ratio:.1f}", held, here)


@decides("kato2012-claim5.2.3")
def _total_cost(entry: Entry) -> Iterator[Check]:
    """An ACK of a flow at 1 % loss events: TTFWC computes past the flat period only, and a loss costs its share of the ACKs before it."""
    draw, past, acks = random.Random(1), 0, 0  # noqa: S311 (no secret)
    flow, delivered = after_losses([100] * 17, 0.4, exact=False, cwnd=10.0)
    for _ in range(300):
        interval = 1 + int(draw.expovariate(LOSS_EVENTS))
        past += max(0, interval - flow.flat)
        acks += interval
        delivered += interval
        lost(flow, delivered)
    ns = costs()
    share = past / acks
    ttfwc = (1 - share) * ns["ttfwc"][0] + share * ns["ttfwc"][1] + LOSS_EVENTS * ns["ttfwc"][2]
    cubic = ns["cubic"][1] + LOSS_EVENTS * ns["cubic"][2]
    words = f"ns per ACK with all hooks, 1 % loss events, {100 * share:.0f} % of ACKs past t1: TTFWC(0.4) and CUBIC, within a half (ours)"
    yield relation("1", words, ttfwc <= 1.5 * cubic, [round(ttfwc, 1), round(cubic, 1)])

    hooks = {name: traced(name) for name in ("cong_avoid", "pkts_acked", "ssthresh", "set_state")}
    weights = {
        "cong_avoid": 1.0,
        "pkts_acked": 1.0,
        "ssthresh": LOSS_EVENTS,
        "set_state": 2 * LOSS_EVENTS,
    }  # into recovery and out of it
    least = hooks["set_state"]["cubic"]  # TTFWC's two other hooks cannot be traced, and do as little
    whole = {
        name: sum(weights[hook] * (cost[name] or least) for hook, cost in hooks.items()) for name in ("ttfwc", "cubic")
    }
    says = (
        f"an ACK's share of all hooks {UNDER_FTRACE}, 1 % loss events, those of TTFWC that cannot be traced taken for CUBIC's for a new "
        "state: TTFWC(0.4) and CUBIC, within a half (ours)"
    )
    holds = whole["ttfwc"] <= 1.5 * whole["cubic"]
    yield _explains("1", says, holds, [round(cost, 2) for cost in whole.values()])
