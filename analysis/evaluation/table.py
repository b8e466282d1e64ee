# SPDX-License-Identifier: Apache-2.0
"""The table over algorithms as Markdown: docs/evaluation.md is made of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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
| `--kernel KERNEL` | on another kernel: [below](#another-kernel) |
| `--only collapse,ecn` | only these files |
| `--no-run` | decide from the runs that are there |
| `--table FILE` | this page, for the algorithms that are named |

The RFC gives no thresholds; **each bound is this project's**, most of them "at most so much worse than CUBIC". CUBIC itself is compared
with Reno. Failing one says where to look, not that an algorithm is unfit. Algorithms run with their modules' own parameters. Levels are
the RFC's words for how much it asks (*described*: it asks nothing). Headings and levels were read in the working group's last draft of
the text, draft-ietf-ccwg-rfc5033bis-08, not in the RFC as printed.

The two seeds of the quick form leave wide intervals (Student's t with one degree of freedom): *undecided* is what they say where
flows compete or losses are random. The whole form has three seeds, more queues and larger buffers; for Reno it took 5 min 58 s of two cores
(246 runs, CUBIC's among them) on a slower machine than that of the times below.
On two idle cores the quick form took 1 min 26 s for Reno (108 runs, CUBIC's among them), and for the 26 algorithms of this page, 1404 runs,
26 minutes.

### Another kernel

`--kernel 6.1` (or `6.12`) evaluates an algorithm of that kernel, its own or a module of this project, beside that kernel's CUBIC and
Reno; its report is in `results/evaluations/CCA-6.1/`. What the kernel cannot have (AccECN, DualPI2) is not run, with the reason.
`--kernel PATH` takes a kernel's tree or tarball, which it builds as `build-kernels --source` does, or the folder of such a build; runs
and report are in `results/evaluations/kernels/KEY/`. There `bbr` is what that tree calls so. The configuration is this project's, so
that an algorithm of a tree whose name Linux does not have cannot be named; where it needs nothing new of the kernel, `--module` takes it.

Of what the RFC lists, these have no experiment here: tunnels, misbehaving nodes, multipath, circuit breakers, algorithms for
real-time media (a stream of constant rate stands for them), deployment. IPv6, which the text does not name, has one
([how](experiment-files.md#ipv6)).

## CUBIC, Reno and BBR: what is known of them

Where one of the three fails, or a text says what to expect, this is what the literature has. All else of CUBIC's and Reno's passes, or is
undecided with the seeds of this form.

- bufferbloat: Reno and CUBIC send until a FIFO buffer is full (the RFC's own words); CUBIC comes back to 0.7 of where it lost, Reno to half
  (RFC 9438 s4.6, RFC 5681). Here both fill it, and CUBIC's mean queue is 1.55 times Reno's.
- high-loss, path-change: the first BBR, which Linux has, loses without end where several flows share less than one and a half BDPs of
  buffer (the RFC, from Hock, Bless and Zitterbart 2017), and sends at the rate that it measured up to ten round trips ago. It fails both.
- constrained: CUBIC grows with time, not with round trips (RFC 9438 s4.2), which are a second and more here, so a window of a few
  packets grows by more than one in each. It loses 10 % of its packets, Reno 1 %.
- bandwidth-up: the path holds 333 packets, and 99 with its buffer before the step. Reno has 50 to 99 of them and adds one in each
  round trip (RFC 5681), 50 to 125 in the time that counts: 0.41 to 0.56 of the link. CUBIC, 99 + 0.4 (t − 4.2)³ after a loss,
  comes to 0.29 to 0.36. Here they use 0.54 and 0.37, BBR 0.98.
- ack-aggregation: Reno needs a BDP of buffer for a full link (Villamizar and Song 1994), CUBIC 0.43 of one (1 / 0.7 − 1). With
  waits of 30 ms 33 packets are 0.57 of one. Reno uses 0.89, CUBIC 0.97.
- sub-packet, bandwidth-plateau, tail-drop: loss-based algorithms fill the buffer, however short the path. All use the whole link.

## The BBR draft's test cases

draft-ietf-ccwg-bbr (its source of August 2026, which names 22 test cases in an appendix) asks for emulation or simulation of a path
of fixed bandwidth and delay, from 1 ms to 1 s and 64 kbit/s to 10 Gbit/s. Those that say what anybody can see from outside are
experiments for every algorithm:

| test case | here |
|---|---|
| Exiting STARTUP on Bandwidth Plateau | `bandwidth-plateau`: the draft's 2 %, of the rate that is sent |
| Increasing Bandwidth 10x | `bandwidth-up`: 10 to 100 Mbit/s; "a reasonable number of round trips" is fifty here |
| Decreasing Bandwidth 10x | `bandwidth-down`: 100 to 10 Mbit/s; after two seconds the draft's 2 % of losses |
| Achieving Expected STARTUP, and Cruise, Bandwidth on a Link With Aggregation | `ack-aggregation`: bunches of 30 ms |
| Correctly Managing Sub-Packet BDPs | `sub-packet`: 128 kbit/s, 8 ms |
| Handling Token Bucket Policers | `policer`, with the RFC's criteria |
| Handling Spurious Fast Recovery | `reordering`, with the RFC's criteria: what is lost by it, not the restored variables |

The draft gives no buffers, and of the paths only the 10 and 100 Mbit/s; the others are this project's. The remaining 14 ask about
variables and phases of BBR's third version (STARTUP and DRAIN by loss, inflight or time; PROBE_UP, PROBE_DOWN, PROBE_REFILL and
PROBE_RTT; spurious timeouts): they change the path or the application when a phase begins, which only an instrumented BBR tells,
and Linux has the first version, without PROBE_UP, PROBE_DOWN, PROBE_REFILL, `inflight_longterm` and `bw_shortterm`.
"""
RFC = "RFC 9743"


MARKS = {PASSES: "✓", FAILS: "✕", UNDECIDED: "?", NOT_RUN: "–"}


@dataclass
class _Page:
    """What a page says. rows: criterion → section and level; marks, whys: by criterion and algorithm."""

    algorithms: list[str] = field(default_factory=list)
    rows: dict[str, tuple[str, str]] = field(default_factory=dict)
    outcomes: dict[tuple[str, str], str] = field(default_factory=dict)
    whys: dict[tuple[str, str], str] = field(default_factory=dict)


def table(
    by_algorithm: Mapping[str, Sequence[Judged]], *, quick: bool, before: str = "", criteria: Collection[str] = ()
) -> str:
    """The page over these algorithms.

    before: the page that is there; of the same form, it keeps what it says of other algorithms and criteria
    criteria: those that there are; a row of any other goes
    """
    page = _read(before) if _form(quick) in before else _Page()
    page.rows = {name: row for name, row in page.rows.items() if name in criteria}
    for algorithm, judged in by_algorithm.items():
        if algorithm not in page.algorithms:
            page.algorithms.append(algorithm)
        for one in judged:
            page.rows[one.name] = (_asked(one), one.level)
            page.outcomes[one.name, algorithm] = one.outcome
            page.whys[one.name, algorithm] = _why(one)
    return "".join(_lines(page, quick))


def _form(quick: bool) -> str:
    return "From `--quick`, two seeds." if quick else "From the whole form."


def _asked(one: Judged) -> str:
    return one.section if one.document == RFC else f"{one.document}: {one.section}"


def _read(text: str) -> _Page:
    """What a page that `_lines` wrote says."""
    page, algorithm = _Page(), ""
    outcome_of = {mark: outcome for outcome, mark in MARKS.items()}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if line.startswith("| criterion |"):
            page.algorithms = cells[3:]
        elif line.startswith("| [") and len(cells) == len(page.algorithms) + 3:
            name = cells[0][1:].partition("]")[0]
            page.rows[name] = (cells[1], cells[2])
            page.outcomes |= {
                (name, algorithm): outcome_of[mark]
                for algorithm, mark in zip(page.algorithms, cells[3:], strict=True)
                if mark in outcome_of
            }
        elif line.startswith("**") and line.strip("*") in page.algorithms:
            algorithm = line.strip("*")
        elif algorithm and line.startswith("- "):
            name, _, why = line[2:].partition(": ")
            page.whys[name, algorithm] = why
    return page


def _lines(page: _Page, quick: bool) -> Iterator[str]:
    yield HEAD
    legend = ", ".join(f"{outcome}: {mark}" for outcome, mark in MARKS.items())
    yield f"\n## Who passes what\n\n{legend}. {_form(quick)}\n\n"
    names = page.algorithms
    yield f"| criterion | RFC 9743 | level | {' | '.join(names)} |\n|---|---|---|{'---|' * len(names)}\n"
    for criterion, (asked, level) in sorted(page.rows.items()):
        cells = " | ".join(MARKS[page.outcomes.get((criterion, name), NOT_RUN)] for name in names)
        yield f"| [{criterion}](../experiments/evaluate/{criterion}.yml) | {asked} | {level} | {cells} |\n"
    for outcome in OUTCOMES:
        counts = (
            str(sum(page.outcomes.get((criterion, name), NOT_RUN) == outcome for criterion in page.rows))
            for name in names
        )
        yield f"| {outcome} | | | {' | '.join(counts)} |\n"
    yield "\n## What fails\n\n"
    for name in names:
        failing = [one for one in sorted(page.rows) if page.outcomes.get((one, name)) == FAILS]
        if failing:
            yield f"**{name}**\n\n"
            yield from (f"- {one}: {page.whys[one, name]}\n" for one in failing)
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
