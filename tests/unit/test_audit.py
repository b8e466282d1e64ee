# SPDX-License-Identifier: Apache-2.0
"""The findings of the audit of the algorithms (docs/audit.md): each names tests that are there, and those that need no guest are here."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from base.paths import ROOT
from kernels.reference.base import Reno
from schema.names import project_ccas
from tests.harness.differential import INFINITE_SSTHRESH, OPEN, Comparison, compare
from tests.harness.harness import Hook
from tests.harness.scenarios import rough, standard
from tests.unit.test_threat_model import NAMED, missing

PAGE = (ROOT / "docs/audit.md").read_text()
MODULES = ROOT / "kernels/modules"
FINDINGS = (
    *("A1", "A2a", "A2b", "A2c", "A2d", "A2e", "A2f", "A3", "A4", "A5", "A6", "A7a", "A7b", "A8", "A9", "A10"),
    *("A11a", "A11b", "A11c", "A11d", "A12a", "A12b", "A12c", "A12d", "A12e", "A13a", "A13b", "A13c", "A13d"),
    *("A14a", "A14b", "A14c", "A14d", "A14e", "A14f", "A15"),
    *("A16a", "A16b", "A16c", "A16d", "A16e", "A16f", "A17a", "A17b", "A18"),
)


def test_every_finding_names_tests_that_are_there() -> None:
    rows = dict(re.findall(r"^\| (A\d+[a-f]?) [WCTS] [^|]+\| (.+) \|$", PAGE, re.MULTILINE))
    assert tuple(rows) == FINDINGS
    assert [finding for finding, tests in rows.items() if not NAMED.search(tests)] == []
    assert missing(PAGE) == []


def test_every_algorithm_has_a_published_value_that_a_run_is_held_against() -> None:
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| [^|]+ \| (.+) \|$", PAGE, re.MULTILINE)
    assert sorted(name for names, _ in rows for name in re.findall(r"\w+", names)) == sorted(project_ccas())
    assert [names for names, tests in rows if not NAMED.search(tests)] == []


def test_authors_and_degrees_are_those_of_the_title_pages() -> None:
    """What stands before a thesis' degree anywhere in the project, against the title pages of the theses."""
    title_pages = {
        "Midori Kato, bachelor's thesis",
        "Koichi Tokuda, master's thesis",
        "Mohammed Afifi, master's thesis",
        "Cheng-Yuan Ho, dissertation",
    }
    said = set()
    for pattern in ("kernels/modules/*.[ch]", "kernels/reference/*.py", "docs/algorithms/*.md"):
        for file in ROOT.glob(pattern):
            text = re.sub(r"\s+(\*\s+)?", " ", file.read_text())
            said |= set(re.findall(r"[A-Z][\w-]+ [A-Z]\w+, (?:bachelor's thesis|master's thesis|dissertation)", text))
    assert said == title_pages


def test_ttfwc_s_largest_interval_stands_for_a_window_above_50_000_packets() -> None:
    """Kato 2012 eq 2.1 with p = 1 / interval; 2^24 - 1, which it was, is a window of 5016."""
    (shift,) = re.findall(r"#define TTFWC_LI_MAX\s+\(\(1U << (\d+)\) - 1\)", (MODULES / "tcp_ttfwc.c").read_text())

    def window(interval: int) -> float:
        p = 1 / interval
        return 1 / (math.sqrt(2 * p / 3) + 12 * math.sqrt(3 * p / 8) * p * (1 + 32 * p * p))

    assert window(2**24 - 1) == pytest.approx(5016, abs=1)
    assert window(2 ** int(shift) - 1) > 50_000


def test_no_module_changes_what_may_be_queued_below_tcp() -> None:
    """TCP small queues go by sk_pacing_shift and the pacing rate; with a shift of 31 two packets wait for a card's completions."""
    touching = [
        file.name for file in MODULES.glob("*.[ch]") if re.search(r"sk_pacing_shift|tcp_limit_output", file.read_text())
    ]
    assert touching == []


def loaded(name: str) -> dict[str, object]:
    document: dict[str, object] = YAML(typ="safe", pure=True).load((ROOT / "experiments" / name).read_text())
    return document


def entries(document: dict[str, object], key: str) -> list[dict[str, object]]:
    items = document.get(key) or []
    assert isinstance(items, list)
    return items


SACK_AND_CTCP = ("reno", "perack", "ctcp")
"""SACK is Linux' Reno, and where it counts ACKs `perack`."""


def test_experiments_begin_as_the_theses_flows_do() -> None:
    """Yu 2009 page 29: cwnd 1, ssthresh 10, a window of 100 at most. Ho 2008 page 45: 64 KB for SACK and CTCP alone."""
    traffic = entries(loaded("yu2009/fig2.3-2.8-short.yml"), "traffic")
    starts = {(e["initial_window"], e["initial_ssthresh"], e["max_window"]) for e in traffic if "cca" in e}
    assert starts == {(1, 10, 100)}
    rows = []
    for file in sorted((ROOT / "experiments/ho2008").glob("*.yml")):
        sweep = loaded(f"ho2008/{file.name}").get("sweep") or {}
        assert isinstance(sweep, dict)
        rows += [row for row in sweep.get("list") or () if "ssthresh" in row]
    assert len(rows) > 100
    assert {(row["cca"] in SACK_AND_CTCP, row["ssthresh"]) for row in rows} <= {
        (True, 64),
        (True, 45),
        (False, "none"),
    }


@pytest.mark.parametrize("name", ["fig2-9-10.yml", "fig2-9-10-short.yml", "fig6-11.yml", "fig6-11-short.yml"])
def test_gentle_highspeeds_senders_have_a_link_no_faster_than_the_path(name: str) -> None:
    """Tokuda 2003 s5.1.1: else the first packet of a window is never ACKed before the window has been sent."""
    params = loaded(f"tokuda2003/{name}")["topology"]["params"]  # type: ignore[index]
    own, path = params.get("fast_rate") or params["access_rate"].split()[0], params.get("rate", "1gbit")
    assert (own, path) == ("1gbit", "1gbit")


def hook(letter: str, **values: object) -> Hook:
    """A hook of an open connection on a window that is in use."""
    plain = Hook(
        port=40000, hook=letter, now_us=0, una=1, nxt=1 + 1448 * 40, cwnd=10, ssthresh=INFINITE_SSTHRESH, count=0,
        rtt_us=0,
        in_flight=10, delivered=1, packets_out=10, retrans=0, duplicates=0, mss=1448, state=OPEN, now_ns=0,
        limited=True,
        unsent=False, filled=True, nothing_to_send=False,
    )  # fmt: skip
    return dataclasses.replace(plain, **values)  # type: ignore[arg-type]


def slow_start(acks: int = 5) -> list[Hook]:
    """One ACK a packet, one packet more for each; the ACK's own hooks are P (the sample) and A (the window after it)."""
    hooks = [hook("I")]
    for i in range(acks):
        at = {"now_us": 100_000 + 1000 * i, "una": 1 + 1448 * (i + 1), "delivered": 2 + i, "count": 1}
        hooks += [hook("P", cwnd=10 + i, rtt_us=50_000, **at), hook("A", cwnd=11 + i, rtt_us=1, **at)]
    return hooks


def changed(hooks: list[Hook], number: int, **values: object) -> Comparison:
    """Compared with Reno after one hook was changed."""
    other = [*hooks]
    other[number] = dataclasses.replace(other[number], **values)  # type: ignore[arg-type]
    return compare(other, lambda first: Reno(float(first.cwnd)))


def seen(comparison: Comparison) -> set[tuple[str, str]]:
    return {(wrong.hook, wrong.what) for wrong in comparison.mismatches}


def test_the_comparison_has_nothing_against_what_is_right() -> None:
    comparison = changed(slow_start(), 0)
    assert comparison.mismatches == [] and comparison.windows == 5


def test_the_comparison_sees_a_window_that_changed_without_a_reason() -> None:
    assert ("P", "cwnd between hooks") in seen(changed(slow_start(), 3, cwnd=14))
    assert ("P", "cwnd between hooks") in seen(changed(slow_start(), 3, cwnd=8))


def test_the_comparison_sees_a_module_that_takes_an_unused_window_for_a_used_one() -> None:
    """What the module says (of its hook A) against the stack's own flag, both ways."""
    assert ("A", "window in use") in seen(changed(slow_start(), 4, rtt_us=0))
    assert ("A", "window in use") in seen(changed(slow_start(), 3, limited=False))


def test_the_comparison_sees_a_threshold_at_every_hook() -> None:
    for number, letter in ((3, "P"), (4, "A")):
        assert (letter, "ssthresh") in seen(changed(slow_start(), number, ssthresh=50))


def test_the_comparison_sees_an_undo_that_gives_back_too_much() -> None:
    """A loss at a window of 15 makes ssthresh 7; undone, the window is 15 again."""
    last = {"now_us": 200_000, "cwnd": 15, "una": 1 + 1448 * 5, "delivered": 6}
    lost = [*slow_start(), hook("L", count=7, **last), hook("U", count=15, **last)]
    assert changed(lost, 0).mismatches == [] and changed(lost, 0).undos == 1
    assert seen(changed(lost, len(lost) - 1, count=20)) == {("U", "cwnd undone")}
    assert seen(changed(lost, len(lost) - 1, count=7)) == {("U", "cwnd undone")}
    assert seen(changed(lost, len(lost) - 2, count=10)) == {("L", "ssthresh")}


def test_the_comparison_knows_an_undo_after_fast_recovery_has_ended() -> None:
    """A late DSACK has the stack call undo_cwnd() in an open connection (tcp_try_undo_dsack()): the next hook sees that window."""
    last = {"now_us": 200_000, "una": 1 + 1448 * 5, "delivered": 6}
    reduced = [hook("L", cwnd=15, count=7, state=3, **last), hook("S", cwnd=7, ssthresh=7, count=OPEN, state=3, **last)]
    late = {"now_us": 250_000, "una": 1 + 1448 * 6, "delivered": 7, "count": 1}
    undone = [
        hook("P", cwnd=7, ssthresh=7, rtt_us=50_000, **late), hook("U", cwnd=7, ssthresh=7, **{**late, "count": 15}),
        hook("P", cwnd=15, rtt_us=50_000, **{**late, "now_us": 251_000, "delivered": 8}),
    ]  # fmt: skip
    whole = [*slow_start(), *reduced, *undone]
    assert changed(whole, 0).mismatches == [] and changed(whole, 0).undos == 1
    assert seen(changed(whole, len(whole) - 1, cwnd=14)) == {("P", "cwnd after an undo")}
    assert seen(changed(whole, len(whole) - 1, cwnd=30)) == {("P", "cwnd after an undo")}


def test_the_situations_are_those_that_the_audit_missed() -> None:
    """Each algorithm of the project is compared in them: its test asks for situations() or rough(); windows of thousands of packets have
    a test of their own (test_long_fat_paths.py), which lists all algorithms."""
    both = standard("x") | rough("x")
    assert {
        "reordering, undone",
        "late ACKs, undone",
        "ECN",
        "smaller MTU",
        "reneging, loss",
        "LAN",
    } <= set(both)
    assert {"beside others", "flows that come and go, loss", "chosen late"} <= set(both)
    assert both["LAN"].delay_ms * 2 < 1 and len({flow.cca for flow in both["beside others"].flows}) == 3
    tests = {
        file.stem.removeprefix("test_spec_"): file.read_text()
        for file in Path(ROOT / "tests/kernels").glob("test_spec_*.py")
    }
    shared = {"hstcp": "ghighspeed", "perack": "lbc", **dict.fromkeys(("liss", "iss", "miss", "js"), "group")}
    shared |= dict.fromkeys(("tfwc", "ttfwc2", "ttfwc3"), "ttfwc")
    for cca in project_ccas():
        assert re.search(r"\b(situations|rough)\(", tests[shared.get(cca, cca)]), cca
