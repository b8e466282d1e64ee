# SPDX-License-Identifier: Apache-2.0
"""Campaign files, their order and limits, and a campaign on the virtual host."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.endpoint import hops
from analysis import campaign_clock
from analysis.results import FORMAT
from base.errors import SpecError, UsageError, WarpbedError
from base.quantities import size_bytes
from hosts.virtual.launch import GuestKernel
from testbed import cli
from testbed.campaign import ends, table, virtual
from testbed.campaign.journal import LOOK_S, Journal
from testbed.campaign.limits import day_left_s, exceeds_total
from testbed.campaign.model import Campaign, load
from testbed.campaign.objects import objects_of
from testbed.campaign.schedule import run_of
from testbed.campaign.times import estimated_runs, run_start_s
from tests import lab

pytestmark = pytest.mark.real_host
NCTU = lab.ROOT / "campaigns/nctu.yml"
MEGABYTES = lab.ROOT / "campaigns/nctu-megabytes.yml"
SMALL = """\
warpbed: 1
campaign: small
title: Two sizes in virtual time
sender: a
receivers:
  b: {virtual: {topology: {name: line, params: {rate: 20mbit, delay: 5ms, buffer: 40p}}}}
algorithms: [reno, medley]
sizes: [106KB, 1MB]
pause: 1min
every: 10min
lasts: 10min
captures: {budget: 100KB}
"""


CLAIM = "claims: [{{source: x, metric: completion_s, where: {{{}}}, order: {{of: cca, values: [reno, medley]}}}}]"


def test_every_run_of_the_nctu_campaign_is_every_combination_once_in_another_order() -> None:
    campaign, _ = load(NCTU)
    first, second = run_of(campaign, 1, "wan"), run_of(campaign, 2, "wan")
    keys = [(t.receiver, t.cca, t.size) for t in first]
    assert len(keys) == 63 == len(set(keys))
    assert [keys.count(("d", "medley", "116.25MB"))] == [1]
    assert sorted(keys) == sorted((t.receiver, t.cca, t.size) for t in second)
    assert keys != [(t.receiver, t.cca, t.size) for t in second]
    assert run_of(campaign, 1, "wan") == first
    ids = [t.id for number in (1, 2) for host in ("wan", "virtual") for t in run_of(campaign, number, host)]
    assert len(set(ids)) == len(ids)


def published_s(campaign: Campaign) -> dict[tuple[str, int, str], float]:
    """By receiver, bytes and algorithm."""
    return {
        (r, size_bytes(s), c): v
        for r, sizes in campaign.published.items()
        for s, ccas in sizes.items()
        for c, v in ccas.items()
    }


def test_the_published_rates_are_megabits_per_second() -> None:
    """Ho 2008 Table 6.4 gives 3.591 "Mbps" for 930 in 259 s: megabits where the sizes are, megabytes where these are megabytes."""
    megabits, megabytes = published_s(load(NCTU)[0]), published_s(load(MEGABYTES)[0])
    assert len(megabits) == len(megabytes) == 63
    assert 116.25 * 8 / megabits["d", 116_250_000, "reno"] == pytest.approx(3.591, rel=1e-3)
    assert 930 / megabytes["d", 930_000_000, "reno"] == pytest.approx(3.591, rel=1e-3)
    assert {(r, size * 8, c): seconds for (r, size, c), seconds in megabits.items()} == megabytes


def test_both_readings_are_judged_by_the_same_claims() -> None:
    """But for the sizes that four of them name."""
    bits, bytes_ = load(NCTU)[0].claims, load(MEGABYTES)[0].claims
    assert len(bits) == len(bytes_) == 9
    for one, other in zip(bits, bytes_, strict=True):
        assert (one.source, one.says, one.relation) == (other.source, other.says, other.relation)
        if "size" in one.where:
            assert size_bytes(str(other.where["size"])) == 8 * size_bytes(str(one.where["size"]))


def test_runs_begin_at_full_hours_and_never_overlap() -> None:
    campaign, _ = load(NCTU)
    assert run_start_s(campaign, 1, 0) == 0
    assert run_start_s(campaign, 2, 8.4 * 3600) == 9 * 3600
    assert run_start_s(campaign, 2, 9 * 3600) == 9 * 3600
    assert run_start_s(campaign, 21, 168 * 3600) is None
    assert estimated_runs(campaign, 63 * 8 * 60) == 19


@given(st.lists(st.tuples(st.floats(0, 3 * 86400), st.integers(1, 10**10)), max_size=20), st.integers(1, 6 * 10**10))
@example([(175744.88978960927, 1)], 10**10)  # a sum that is rounded down
def test_no_day_carries_more_than_its_limit(sent: list[tuple[float, int]], size: int) -> None:
    campaign, _ = load(NCTU)
    events: list[dict[str, Any]] = [{"time": t, "event": "started", "bytes": count} for t, count in sorted(sent)]
    now = 3 * 86400.0
    when = now + day_left_s(campaign, events, size, now)
    within = sum(e["bytes"] for e in events if when - e["time"] < 86400)
    assert within + size <= 10 * 10**9 or within == 0
    assert exceeds_total(campaign, events, size) == (sum(e["bytes"] for e in events) + size > 50 * 10**9)


def test_without_limits_in_its_file_a_campaign_has_those_that_are_set_here(tmp_path: Path) -> None:
    (tmp_path / "c.yml").write_text(SMALL)
    campaign, _ = load(tmp_path / "c.yml")
    assert (campaign.limits.volume, campaign.limits.volume_per_day) == (None, None)

    def sent(gigabytes: int) -> list[dict[str, Any]]:
        return [{"time": 0.0, "event": "started", "bytes": gigabytes * 10**9}]

    assert not exceeds_total(campaign, sent(999), 10**9) and exceeds_total(campaign, sent(1000), 1)
    assert day_left_s(campaign, sent(99), 10**9, 60.0) == 0 < day_left_s(campaign, sent(100), 1, 60.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("algorithms: [reno, medley]", "algorithms: [rena]"), "did you mean reno?"),
        (
            ("algorithms: [reno, medley]", "algorithms: [reno]\nbpf: {mine: mine.bpf.c}"),
            "none of the campaign's algorithms",
        ),
        (("algorithms: [reno, medley]", "algorithms: [reno]\nbpf: {reno: mine.bpf.c}"), "has another name"),
        (("algorithms: [reno, medley]", "algorithms: [mine]\nbpf: {mine: mine.c}"), "neither a source"),
        (("sizes: [106KB, 1MB]", "sizes: [106KB, 106KB]"), "one of them occurs twice"),
        (("sender: a", "sender: b"), "b is the sender and cannot receive"),
        (("sizes: [106KB, 1MB]", "sizes: [0B]"), "allowed are 1B to"),
        (("pause: 1min", "pause: 1 minute"), "is not a time"),
        (("pause: 1min", "paus: 1min"), "did you mean pause?"),
        (("campaign: small", "campaign: ../../etc"), "must be"),
        (("captures: {budget: 100KB}", "captures: {budget: 1KB}"), "at least 10KB"),
        (("captures: {budget: 100KB}", "published: {x: {}}"), "no receiver 'x'"),
        (("captures: {budget: 100KB}", CLAIM.format("size: 2MB")), "size is never 2MB; did you mean 1MB?"),
        (
            ("captures: {budget: 100KB}", CLAIM.format("sise: 1MB")),
            "'sise' is no parameter of a campaign; did you mean size?",
        ),
        (
            ("captures: {budget: 100KB}", CLAIM.replace("completion_s", "utilization").format("size: 1MB")),
            "are about completion_s",
        ),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(SpecError, match=r"campaign.yml:\d+: ") as caught:
        load(lab.write(tmp_path, SMALL.replace(*change), "campaign.yml"))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "algorithms", ["[bpf_lbc]", "[mine]\nbpf: {mine: mine.bpf.c}"], ids=["the project's", "a user's"]
)
def test_a_bpf_program_is_refused_in_virtual_time(tmp_path: Path, algorithms: str) -> None:
    text = SMALL.replace("algorithms: [reno, medley]", f"algorithms: {algorithms}")
    campaign, _ = load(lab.write(tmp_path, text, "campaign.yml"))
    with pytest.raises(SpecError, match="which User-Mode Linux cannot"):
        virtual.check(campaign)


def test_an_object_is_part_of_the_ids_of_its_transfers_only(tmp_path: Path) -> None:
    campaign, _ = load(lab.write(tmp_path, SMALL.replace("[reno, medley]", "[reno, bpf_lbc]"), "campaign.yml"))
    without, first, second = (
        run_of(campaign, 1, "wan", objects=sums) for sums in ({}, {"bpf_lbc": "1"}, {"bpf_lbc": "2"})
    )
    assert [t.id for t in run_of(campaign, 1, "wan")] == [t.id for t in without]
    for a, b, c in zip(without, first, second, strict=True):
        assert len({a.id, b.id, c.id}) == (3 if a.cca == "bpf_lbc" else 1)


def test_a_source_that_is_not_there_is_named_with_its_place(tmp_path: Path) -> None:
    text = SMALL.replace("algorithms: [reno, medley]", "algorithms:\n- reno\n- mine\nbpf: {mine: mine.bpf.c}")
    campaign, document = load(lab.write(tmp_path, text, "campaign.yml"))
    line = text.splitlines().index("- mine") + 1
    with pytest.raises(SpecError, match=rf"campaign.yml:{line}: algorithms.1: .*mine.bpf.c: there is no such file"):
        objects_of(campaign, document)


def transfer_of(folder: Path, cca: str, run: int, seconds: float, size: str = "106KB") -> None:
    """A transfer's result as the campaign leaves it, as far as its table and its claims read it."""
    one = folder / f"{cca}-{size}-{run}"
    one.mkdir(parents=True)
    document = {
        "format": FORMAT, "run": one.name, "experiment": "small", "seed": run, "host": "virtual", "status": "complete",
        "error": None,
        "params": {"receiver": "b", "cca": cca, "size": size, "run": run}, "spec": {}, "environment": {}, "timing": {},
        "verdict": {"value": "valid", "reasons": []}, "metrics": {"flows": [{"flow": "t", "completion_s": seconds}]},
    }  # fmt: skip
    (one / "run.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("reno", "outcome"), [((2.0, 2.1, 2.05), "holds"), ((1.0, 1.1, 1.05), "contradicted"), ((2.0,), "undecided")]
)
def test_a_campaign_s_claims_are_decided_over_its_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reno: tuple[float, ...], outcome: str
) -> None:
    file = lab.write(tmp_path, SMALL + CLAIM.format("size: 106KB") + "\n", "campaign.yml")
    for run, seconds in enumerate(reno, start=1):
        transfer_of(tmp_path / "results/small", "reno", run, seconds)
        transfer_of(tmp_path / "results/small", "medley", run, 1.5 + run / 100)
    assert cli.main(["campaign", "table", str(file), "--results", str(tmp_path / "results")]) == 0
    assert f"\n{outcome}: completion_s: cca: reno > medley where size=106KB" in capsys.readouterr().out


def end(**more: Any) -> dict[str, Any]:
    return {"address": "192.0.2.1", "host": "192.0.2.1", "agent": "/var/lib/warpbed/agent.pyz", **more}


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        ({"a": end()}, "b of the campaign is not in the inventory"),
        ({"a": end(), "b": end(address="192.0.2.2")}, "b is not a consenting receiver"),
        ({"a": end(), "b": end(consent="we, today")}, "same wan_address"),
        ({"a": end(), "b": end(address="224.0.0.1", consent="x")}, "not the address of a host"),
        ({"a": end(host="-oProxyCommand=touch /tmp/x"), "b": end()}, "hosts.a.host"),
        ({"a": end(root="/tmp/$(id)"), "b": end()}, "hosts.a.root"),
    ],
)
def test_hosts_that_must_not_be_used_are_refused(tmp_path: Path, hosts: dict[str, Any], message: str) -> None:
    campaign, _ = load(lab.write(tmp_path, SMALL, "campaign.yml"))
    with pytest.raises(UsageError) as caught:
        ends.parse(json.dumps({"hosts": hosts}), campaign)
    assert message in str(caught.value)


def test_a_journal_that_a_crash_has_cut_loses_that_line_only(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.add("begun")
    journal.add("started", transfer="x")
    with open(journal.file, "rb+") as file:
        file.seek(-9, os.SEEK_END)
        file.truncate()
    journal.add("resumed")
    assert [event["event"] for event in journal.events()] == ["begun", "resumed"]


def test_two_processes_do_not_conduct_one_campaign(tmp_path: Path) -> None:
    with Journal(tmp_path).held():
        assert Journal(tmp_path).is_held()
        with pytest.raises(WarpbedError, match="another process conducts"), Journal(tmp_path).held():
            pass
    assert not Journal(tmp_path).is_held()


def test_who_looks_at_a_campaign_for_a_moment_does_not_keep_it_from_being_conducted(tmp_path: Path) -> None:
    looking = Journal(tmp_path)
    with contextlib.ExitStack() as stack:
        stack.enter_context(looking.held())  # as `campaign status` does, a little longer
        letting_go = threading.Timer(2 * LOOK_S, stack.pop_all().close)
        letting_go.start()
        with Journal(tmp_path).held():
            letting_go.join()
            assert looking.is_held()


def test_traceroutes_lines_become_hops_with_delays() -> None:
    text = (
        "traceroute to 192.0.2.9 (192.0.2.9), 30 hops max, 60 byte packets\n"
        " 1  192.0.2.1  0.305 ms  0.288 ms  0.301 ms\n"
        " 2  * * *\n"
        " 3  192.0.2.5  1.530 ms 192.0.2.6  1.6 ms !X *\n"
    )
    assert hops(text) == [
        {"hop": 1, "addresses": ["192.0.2.1"], "rtt_ms": [0.305, 0.288, 0.301]},
        {"hop": 2, "addresses": [], "rtt_ms": []},
        {"hop": 3, "addresses": ["192.0.2.5", "192.0.2.6"], "rtt_ms": [1.53, 1.6]},
    ]


def test_a_virtual_campaign_delivers_exact_sizes_and_resumes(kernel: GuestKernel, tmp_path: Path) -> None:
    file = lab.write(tmp_path, SMALL, "campaign.yml")
    results: list[str | Path] = ["--results", tmp_path / "results"]
    output = lab.warpbed("campaign", "execute", file, *results)
    folder = tmp_path / "results/small"
    by_run = {run["run"]: run for run in lab.runs(folder)}
    assert len(by_run) == 4
    for run in by_run.values():
        size = {"106KB": 106_000, "1MB": 1_000_000}[run["params"]["size"]]
        cut = any(reason["rule"] == "capture-cut" for reason in run["verdict"]["reasons"])
        assert cut == (size == 1_000_000), "100 KB of headers hold 892 packets, data and ACKs of the small file only"
        if not cut:
            assert lab.table(run["path"], "flows")["delivered_bytes"].tolist() == [size]
        client = json.loads((run["path"] / "raw/t.client.json").read_text())
        assert client["bytes"] == size and client["cca"] == run["params"]["cca"]
    campaign, _ = load(file)
    (row,) = [c for c in table.cells(campaign, table.measured(folder)) if (c.size, c.cca) == ("1MB", "reno")]
    assert row.mean_s is not None and 0.4 < row.mean_s < 1.2, "1 MB at 20 Mbit/s takes 0.42 s at least"
    assert "a – b (seconds, mean of n; gain over reno)" in output
    starts = campaign_clock.read(folder)
    order = [transfer.run for transfer in run_of(campaign, 1, "virtual")]
    assert order == [1, 1, 1, 1] and sorted(starts) == sorted(by_run), "each transfer has its own place in the campaign"
    gaps = [after - before for before, after in itertools.pairwise(sorted(starts.values()))]
    assert min(starts.values()) == 0 and all(60 < gap < 63 for gap in gaps), (
        "a pause of a minute, and up to 1 MB at 20 Mbit/s"
    )
    missing = next(iter(by_run.values()))["path"]
    before = lab.digests(missing)
    for path in sorted(missing.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    missing.rmdir()
    again = lab.warpbed("campaign", "execute", file, *results)
    assert again.count("[1/1] ") == 1 or again.count("times real time") == 1
    assert lab.digests(missing) == before
    assert "nothing to do: all 4 transfers are there" in lab.warpbed("campaign", "execute", file, *results)
    assert "small: over; 4 of about 4" in lab.warpbed("campaign", "status", file, *results)
