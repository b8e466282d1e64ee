# SPDX-License-Identifier: Apache-2.0
"""Yu 2009 s3.3.2 and s3.4: what the text says of many transfers as a whole, not of each number of them.

"For all scenarios" stands beside Fig 3-3 and "consistently" beside Fig 3-4; those are claims of the experiment file, for each number
of transfers. Of the other figures the text compares the three senders with one another ("for all three models throughput with RED queue is
worse"), so all numbers of transfers are added, seed by seed; "in most cases" (Fig 3-8) counts them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

from analysis.models.checks import Check
from analysis.reproduction.intervals import within
from analysis.reproduction.measured import compares, explains
from analysis.results import Run
from schema.catalogue import Entry

SENDERS = {"perack": "delayed ACKs", "lbc": "LBC", "ssipp": "SSIPP"}
EXPERIMENT = "yu2009-fig3_3-3_8-short"
THROUGHPUT, LOSS, QUEUE = "transfer_throughput_mbps.ftp", "loss_rate", "queue_mean_packets"
LEVEL = 0.01
"""Of throughput and of the share of packets that arrive, what no longer makes one sender better: a hundredth (ours)."""
QUEUE_LEVEL = 0.05
"""The same of the mean queue, a twentieth (ours)."""
Cells = dict[tuple[str, bool], dict[int, dict[int, float]]]
"""(sender, whether the queue is RED) → number of transfers → seed → value; receivers delay ACKs, also where a file has no others."""


def cells(runs: Sequence[Run], metric: str) -> Cells:
    name, _, key = metric.partition(".")
    found: Cells = {}
    for run in runs:
        value = run.metrics.get(name)
        value = value.get(key) if isinstance(value, dict) else value
        if (
            run.counted
            and run.seed is not None
            and isinstance(value, int | float)
            and run.params.get("ack", "second") == "second"
        ):
            kind = str(run.params["cca"]), str(run.params["queue"]).startswith("red")
            found.setdefault(kind, {}).setdefault(int(run.params["count"]), {})[run.seed] = float(value)
    return found


def sums(known: Cells, sender: str, *, red: bool) -> dict[int, float]:
    """Over all numbers of transfers, of each seed that has them all."""
    by_count = known.get((sender, red), {})
    counts = {count for one in known.values() for count in one}
    if not counts or set(by_count) != counts:
        return {}
    seeds = set.intersection(*(set(values) for values in by_count.values()))
    return {seed: sum(values[seed] for values in by_count.values()) for seed in sorted(seeds)}


def differences(first: dict[int, float], second: dict[int, float]) -> list[float]:
    return [first[seed] - second[seed] for seed in first if seed in second]


def more(part: str, words: str, first: dict[int, float], second: dict[int, float], level: float = 0.0) -> Check:
    """level: the share of the second that is no difference"""
    sample = differences(first, second)
    least = level * math.fsum(second.values()) / max(1, len(second))
    return within(part, f"{words}: difference above 0", sample, math.nextafter(0, 1), math.inf, level=least)


def _order(part: str, known: Cells, *, red: bool) -> Iterator[Check]:
    where = "with RED" if red else "with drop-tail"
    for first, second in (("ssipp", "lbc"), ("lbc", "perack")):
        words = f"throughput {where}, all numbers of transfers added, {SENDERS[first]} less {SENDERS[second]}, Mbit/s"
        yield more(part, words, sums(known, first, red=red), sums(known, second, red=red), LEVEL)


@compares("yu2009-fig3.5", EXPERIMENT, "2", by_metrics=True)
def _slope(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    """With drop-tail, between the two largest numbers of transfers."""
    known = cells(runs, QUEUE)
    columns = {sender: known.get((sender, False), {}) for sender in SENDERS}
    counts = sorted(set.intersection(*(set(by_count) for by_count in columns.values())))
    if len(counts) < 2:
        return
    fewer, most = counts[-2:]
    rises = {
        sender: {seed: many - by_count[fewer][seed] for seed, many in by_count[most].items() if seed in by_count[fewer]}
        for sender, by_count in columns.items()
    }
    for sender in ("ssipp", "lbc"):
        words = (
            f"mean queue of {most} transfers less that of {fewer}, packets, {SENDERS['perack']} less {SENDERS[sender]}"
        )
        yield more("2", words, rises["perack"], rises[sender])


@compares("yu2009-fig3.6", EXPERIMENT, "1", "2", by_metrics=True)
def _throughput(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    known = cells(runs, THROUGHPUT)
    yield from _order("1", known, red=True)
    for sender, name in SENDERS.items():
        words = f"{name}: throughput with drop-tail less that with RED, all numbers of transfers added, Mbit/s"
        yield more("2", words, sums(known, sender, red=False), sums(known, sender, red=True))


@compares("yu2009-fig3.7", EXPERIMENT, "2", by_metrics=True)
def _goodput(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    known = cells(runs, LOSS)
    for sender, name in SENDERS.items():
        words = f"{name}: share lost at the queue with RED less that with drop-tail, all numbers of transfers added"
        yield more("2", words, sums(known, sender, red=True), sums(known, sender, red=False))


@compares("yu2009-fig3.8", EXPERIMENT, "1", "2", by_metrics=True)
def _queue(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    known = cells(runs, QUEUE)
    yield _most(known)
    for sender, name in SENDERS.items():
        words = f"{name}: mean queue with drop-tail less that with RED, all numbers of transfers added, packets"
        yield more("2", words, sums(known, sender, red=False), sums(known, sender, red=True))


def _most(known: Cells) -> Check:
    """The order of the three at most of the numbers of transfers that were run."""
    senders = [known.get((name, True), {}) for name in ("perack", "ssipp", "lbc")]
    counts = sorted(set.intersection(*(set(one) for one in senders)))
    outcomes, shown = [], []
    for count in counts:
        steps = [
            more("1", "", larger[count], smaller[count], QUEUE_LEVEL) for smaller, larger in itertools.pairwise(senders)
        ]
        wrong = any(not step.holds and not step.undecided for step in steps)
        outcomes.append("no" if wrong else "open" if any(step.undecided for step in steps) else "yes")
        means = [sum(one[count].values()) / len(one[count]) for one in senders]
        shown.append(f"{count} transfers: {' '.join(f'{mean:.3g}' for mean in means)} ({outcomes[-1]})")
    holds = outcomes.count("yes") * 2 > len(counts)
    against = outcomes.count("no") * 2 >= len(counts) > 0
    words = "mean queues with RED, packets: delayed ACKs below SSIPP below LBC, at most of the numbers of transfers"
    return Check("1", words, holds, None, "; ".join(shown), "order", "", undecided=not holds and not against)


@explains("yu2009-fig3.8", "yu2009-fig3_5-faster-short", "1", by_metrics=True)
def _queue_of_a_faster_link(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    check = _most(cells(runs, QUEUE))
    yield dataclasses.replace(check, says=f"with 3 Mbit/s, {check.says}", explains=True)


@compares("yu2009-claim3.4", EXPERIMENT, "1", "2", by_metrics=True)
def _conclusion(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    throughput, loss, queue = (cells(runs, metric) for metric in (THROUGHPUT, LOSS, QUEUE))
    for red in (False, True):
        yield from _order("1", throughput, red=red)
        where = "RED" if red else "drop-tail"
        arrived = {kind: _arrived(by_count) for kind, by_count in loss.items()}
        words = f"share that arrives with {where}, all numbers of transfers added, SSIPP less LBC"
        yield more("2", words, sums(arrived, "ssipp", red=red), sums(arrived, "lbc", red=red), LEVEL)
        words = f"mean queue with {where}, all numbers of transfers added, LBC less SSIPP"
        yield more("2", words, sums(queue, "lbc", red=red), sums(queue, "ssipp", red=red), QUEUE_LEVEL)


def _arrived(by_count: dict[int, dict[int, float]]) -> dict[int, dict[int, float]]:
    """Goodput over throughput: the share that is not lost at the queue."""
    return {count: {seed: 1 - lost for seed, lost in values.items()} for count, values in by_count.items()}
