# SPDX-License-Identifier: Apache-2.0
"""A campaign on the virtual host: each transfer is a run in a guest of its own, side by side on all CPUs.

Between two transfers nothing is sent, and a path remembers nothing (no metrics are saved), so transfers that are made side
by side have the packets of transfers made one after the other. Their places on the campaign's clock follow from their
measured lengths: each begins a pause after the end of the one before.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

from analysis import campaign_clock
from analysis.results import load_run
from base import quantities
from base.errors import UsageError
from network.frames import FULL_FRAME_BYTES
from network.model import path
from plan.model import Plan
from schema.load import Document, validate
from testbed import compile_bpf
from testbed.campaign.model import Campaign
from testbed.campaign.outcome import Outcome, of_run
from testbed.campaign.schedule import Transfer, run_of
from testbed.campaign.times import run_start_s
from testbed.compile import ccas_of, compile_plan
from testbed.lint import lint
from testbed.results import Results
from testbed.runner import Job, Runs, Summary
from testbed.runs import PlannedRun

HOST = "virtual"
SLOWEST_SHARE = 0.05
"""A transfer that gets less than this share of its path's rate does not end in time."""
LEAST_S = 30
PCAP_HEADER_BYTES = 16


def job_of(campaign: Campaign, transfer: Transfer) -> Job:
    """The run that makes a transfer.

    Raises UsageError where the receiver has no path for the virtual host or the path breaks a fidelity rule.
    """
    profile = campaign.receivers[transfer.receiver].virtual
    if profile is None:
        raise UsageError(f"receivers.{transfer.receiver}: no `virtual` path; the virtual host needs one")
    spec = {
        "warpbed": 1, "name": campaign.campaign, "title": campaign.title, "source": campaign.source,
        "kernel": campaign.kernel, "duration": campaign.transfer_at_most,
        "topology": profile.topology.model_dump(mode="json"),
        "hosts": {**campaign.hosts.model_dump(mode="json"), "overhead": None},
        "flows": [{
            "name": "t", "cca": named(campaign, transfer.cca), "app": "file", "size": transfer.size,
            "from": profile.source, "to": profile.destination,
        }],
        "captures": {"at": "ends", "snap": campaign.captures.snap},
        "samplers": {"tcp_probe": False, "sockets": campaign.sockets, "queues": "off"},
    }  # fmt: skip
    document = Document(f"{campaign.campaign} {transfer.receiver}", json.dumps(spec))
    run = PlannedRun(validate(spec, document), transfer.params, transfer.seed, document)
    compile_bpf.objects(
        ccas_of(run.experiment), document, in_virtual=True
    )  # compiled exactly, as for a real host, it says nothing
    return Job(run, limited(compile_plan(run.experiment, document, exact=True), campaign), transfer.id)


def named(campaign: Campaign, cca: str) -> str | dict[str, str]:
    """An algorithm as an experiment file names it; the virtual host refuses those that are BPF programs."""
    return {"name": cca, "bpf": campaign.bpf[cca]} if cca in campaign.bpf else cca


def limited(plan: Plan, campaign: Campaign) -> Plan:
    """The plan with the campaign's limits of time, rate and capture size; it ends with its transfer."""
    pacing = None if campaign.limits.rate is None else quantities.rate_bps(campaign.limits.rate)
    packets = packets_within(campaign)
    flow = plan.flows[0]
    rates = [d.rate_bps for _, _, d in path(plan.network, flow.source, flow.destination) if d.rate_bps]
    duration_s = plan.duration_s
    if rates and flow.size_bytes:
        duration_s = min(duration_s, round(LEAST_S + flow.size_bytes * 8 / (min(rates) * SLOWEST_SHARE)))
    return dataclasses.replace(
        plan,
        flows=tuple(dataclasses.replace(f, pacing_bps=pacing) for f in plan.flows),
        captures=tuple(dataclasses.replace(c, packets_at_most=packets) for c in plan.captures),
        duration_s=duration_s,
        ends_with_flows=True,
    )


def packets_within(campaign: Campaign) -> int:
    """How many packets a capture file within the budget can hold."""
    snap = FULL_FRAME_BYTES if campaign.captures.snap == "all" else quantities.size_bytes(campaign.captures.snap)
    return max(1, quantities.size_bytes(campaign.captures.budget) // (min(snap, FULL_FRAME_BYTES) + PCAP_HEADER_BYTES))


def check(campaign: Campaign) -> None:
    """Raise UsageError or SpecError where a transfer of the campaign could not be made on the virtual host."""
    names: set[tuple[str, str]] = set()
    for transfer in run_of(campaign, 1, HOST):
        if (transfer.receiver, transfer.cca) not in names:
            names.add((transfer.receiver, transfer.cca))
            errors = [f for f in lint(job_of(campaign, transfer).plan) if f.severity == "error"]
            if errors:
                raise UsageError("\n".join(f"receivers.{transfer.receiver}: {f.rule}: {f.message}" for f in errors))


def conduct(
    campaign: Campaign,
    results: Results,
    build: str,
    runner: Runs,
    cancelled: Callable[[], bool],
    report: Callable[[str], None],
) -> Summary:
    """Make runs until the campaign's clock has reached its end; what is there already is not made again."""
    total, clock_s, number = Summary(), 0.0, 1
    starts_s: dict[str, float] = {}
    while (start_s := run_start_s(campaign, number, clock_s)) is not None and not cancelled():
        transfers = run_of(campaign, number, HOST, build)
        # the long ones first, so that no CPU is left alone with one at the end
        jobs = [job_of(campaign, transfer) for transfer in sorted(transfers, key=lambda t: -t.size_bytes)]
        summary = runner.run_all(jobs)
        total.done += summary.done
        total.failed.update(summary.failed)
        total.present += summary.present
        total.cancelled = summary.cancelled
        if summary.cancelled:
            break
        clock_s = start_s
        for transfer in transfers:
            starts_s[transfer.id] = clock_s
            clock_s += length_s(results, transfer, campaign)
        campaign_clock.write(results.folder, starts_s)
        report(
            f"run {number}: {len(summary.done) + summary.present} of {len(transfers)} transfers; day {clock_s / 86400:.2f} of the campaign"
        )
        number += 1
    return total


def length_s(results: Results, transfer: Transfer, campaign: Campaign) -> float:
    """Seconds that a transfer takes on the campaign's clock, its pause included."""
    outcome: Outcome | None = of_run(load_run(results.path(transfer.id)))
    measured = quantities.seconds(campaign.transfer_at_most) if outcome is None else outcome.seconds
    return measured + quantities.seconds(campaign.pause)
