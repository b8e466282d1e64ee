# SPDX-License-Identifier: Apache-2.0
"""The table over algorithms as Markdown: docs/evaluation.md is made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analysis.evaluation.outcomes import FAILS, NOT_RUN, OUTCOMES, PASSES, UNDECIDED, Judged, Said
from analysis.table import number

HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Made by `./warpbed evaluate … --table docs/evaluation.md`; do not edit. -->
# Evaluation: RFC 9743's criteria

`./warpbed evaluate medley` holds an algorithm against what RFC 9743 (BCP 133, "Specifying New Congestion Control Algorithms") asks
the community to consider: each criterion is an experiment in `experiments/evaluate/` that also runs alone, with CUBIC and Reno in the
same cells, and its outcome is what became of its [claims](claims.md). One HTML page, JSON and JUnit XML are written to
`results/evaluations/CCA/`; the exit code is 1 where a criterion fails.

| option | meaning |
|---|---|
| `--quick` | of every swept parameter but the algorithm the first value, and two seeds |
| `--module FOLDER` | evaluate a module `tcp_NAME.c` of your own in a copy of the checkout; this one stays as it is |
| `--only collapse,ecn` | only these files |
| `--no-run` | decide from the runs that are there |
| `--table FILE` | this page, for the algorithms that are named |

The RFC gives no thresholds; **each bound is this project's**, most of them "at most so much worse than CUBIC". CUBIC itself is compared
with Reno. Failing one says where to look, not that an algorithm is unfit. Algorithms run with their modules' own parameters. Levels are
the RFC's words for how much it asks (*described*: it asks nothing). Headings and levels were read in the working group's last draft of
the text, draft-ietf-ccwg-rfc5033bis-08, not in the RFC as printed.

The two seeds of the quick form leave wide intervals (Student's t with one degree of freedom): *undecided* is what they say where
flows compete or losses are random. The whole form has three seeds, more queues and larger buffers.
On two idle cores the quick form took 1 min 26 s for Reno (108 runs, CUBIC's among them), and for the 26 algorithms of this page, 1404 runs,
26 minutes.

Two outcomes are known from that text, and come out so: Reno and CUBIC send until a FIFO buffer is full (bufferbloat: CUBIC's
queue is the longer one), and the first version of BBR, which Linux has, causes sustained loss where several
flows share less than one and a half BDPs of buffer (high-loss).

Of what the RFC lists, these have no experiment here: tunnels, misbehaving nodes, multipath, circuit breakers, algorithms for
real-time media (a stream of constant rate stands for them), deployment. The test cases of the BBR draft's appendix
are not among these files. Everything is IPv4: connections get their algorithm by rules for ports, and the guest's kernel is
built without those of IPv6 (CONFIG_IPV6_MULTIPLE_TABLES).
"""


def table(by_algorithm: Mapping[str, Sequence[Judged]], *, quick: bool) -> str:
    """The page over these algorithms."""
    return "".join(_lines(by_algorithm, quick))


def _lines(by_algorithm: Mapping[str, Sequence[Judged]], quick: bool) -> Iterator[str]:
    yield HEAD
    form = "`--quick`, two seeds" if quick else "the whole form"
    yield f"\n## Who passes what\n\n{PASSES}: ✓, {FAILS}: ✕, {UNDECIDED}: ?, {NOT_RUN}: –. From {form}.\n\n"
    names = list(by_algorithm)
    marks = {PASSES: "✓", FAILS: "✕", UNDECIDED: "?", NOT_RUN: "–"}
    yield f"| criterion | RFC 9743 | level | {' | '.join(names)} |\n|---|---|---|{'---|' * len(names)}\n"
    first = next(iter(by_algorithm.values()), ())
    by_name = {name: {one.name: one for one in judged} for name, judged in by_algorithm.items()}
    for one in first:
        cells = " | ".join(marks[by_name[name][one.name].outcome] for name in names)
        yield f"| [{one.name}](../experiments/evaluate/{one.name}.yml) | {one.section} | {one.level} | {cells} |\n"
    for outcome in OUTCOMES:
        counts = " | ".join(str(sum(one.outcome == outcome for one in by_algorithm[name])) for name in names)
        yield f"| {outcome} | | | {counts} |\n"
    yield "\n## What fails\n\n"
    for name in names:
        failing = [one for one in by_algorithm[name] if one.outcome == FAILS]
        if failing:
            yield f"**{name}**\n\n"
            for one in failing:
                yield f"- {one.name}: {_why(one)}\n"
            yield "\n"


def _why(one: Judged) -> str:
    """The claims that are contradicted, each with the means of its metric."""
    return " ".join(f"{said.says}{_means(one, said)}" for said in one.said if said.outcome == "contradicted")


def _means(one: Judged, said: Said) -> str:
    name = said.words.partition(":")[0]
    for measured in one.measured:
        if measured.metric == name:
            values = [value for value in measured.values if value.mean is not None]
            texts = [
                f"{value.algorithm} {number(value.mean)}{', ' + value.where if value.where else ''}" for value in values
            ]
            return f" ({name}: {'; '.join(texts)})"
    return ""
