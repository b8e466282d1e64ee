# SPDX-License-Identifier: Apache-2.0
"""`./warpbed campaign ACTION FILE`: the same transfers again and again for days (docs/wan.md)."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from base.errors import UsageError, WarpbedError
from base.paths import ROOT
from base.screen import outlived
from base.text import clean, clean_lines
from testbed import ansible
from testbed.campaign import ends, judged, known_ends, left_at_ends, remote, table, virtual
from testbed.campaign import status as campaign_status
from testbed.campaign.conductor import Conductor, StoppedError
from testbed.campaign.journal import Journal
from testbed.campaign.model import Campaign, load
from testbed.campaign.objects import objects_of
from testbed.campaign.outcome import is_damaged, runs_in
from testbed.campaign.times import estimated_runs, shortest_run_s
from testbed.commands import arguments as common
from testbed.commands.output import render
from testbed.compile_bpf import not_allowed
from testbed.engine import options as engine
from testbed.progress import Progress
from testbed.results import Results
from testbed.session import stop_on_signals, terminal

HELP = "repeat the same transfers for days, over the wide area or in virtual time"
ACTIONS = ("run", "execute", "check", "status", "stop", "table")
HOSTS = ("virtual", "wan")


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", choices=ACTIONS)
    command.add_argument("campaign", type=Path, help="campaign file, such as campaigns/nctu.yml")
    command.add_argument("--host", choices=HOSTS, default="virtual", help="kind of host (default: virtual)")
    command.add_argument("-i", "--inventory", type=Path, default=None, help="inventory of the hosts (wan only)")
    command.add_argument("--jobs", type=int, default=0, metavar="N", help="transfers in parallel (virtual only)")
    # the play gives them in the environment, which other users of this machine cannot read
    command.add_argument("--ends", default=os.environ.get("WARPBED_ENDS"), metavar="JSON", help=argparse.SUPPRESS)
    command.add_argument("--again", action="store_true", help="retry missing transfers (wan only)")
    command.add_argument("--format", choices=["text", "json", "csv"], default="text", help="of status and table")
    engine.arguments(command)
    common.results(command)


def main(options: argparse.Namespace) -> int:
    campaign, document = load(options.campaign)
    engine.check(options)
    if options.engine != "local" and options.host != "virtual":
        raise UsageError("--engine dask: transfers between real hosts are conducted from here, one after the other")
    if options.jobs < 0:
        raise UsageError("--jobs takes numbers from 1 on (0: one per CPU)")
    if options.host == "virtual" and options.action in ("run", "execute", "check"):
        virtual.check(campaign)
    options.objects = {}
    if options.host == "wan" and options.action in ("run", "execute", "check"):
        options.objects = objects_of(campaign, document)
        if problems := not_allowed(options.objects.values(), options.host):
            raise UsageError(*(f"{options.campaign}: bpf: {problem}" for problem in problems))
    folder: Path = options.results.resolve() / campaign.campaign
    action = {"run": _run, "execute": _execute, "check": _check, "stop": _stop, "status": _status, "table": _table}
    return action[options.action](options, campaign, folder)


def _run(options: argparse.Namespace, campaign: Campaign, folder: Path) -> int:
    """Hand over to playbooks/wan_campaign.yml."""
    variables: dict[str, object] = {
        "campaign": str(options.campaign.resolve()),
        "campaign_host": options.host,
        "campaign_jobs": options.jobs,
        "campaign_engine": engine.words(options),
        "campaign_results": str(options.results.resolve()),
        "campaign_kernel_series": campaign.kernel,
    }
    return ansible.play("wan_campaign.yml", variables, inventory=_inventory(options))


def _inventory(options: argparse.Namespace) -> str:
    if options.host == "virtual":
        return "virtual"
    inventory: Path = options.inventory or ROOT / "inventory/wan"
    if not inventory.exists():
        raise UsageError(f"{inventory}: no such inventory; docs/wan.md shows how to write one")
    return str(inventory.resolve())


def _execute(options: argparse.Namespace, campaign: Campaign, folder: Path) -> int:
    results = Results(options.results.resolve(), campaign.campaign)
    journal = Journal(folder)
    with journal.held():
        journal.resume()
        conduct = _virtual if options.host == "virtual" else _wan
        code = conduct(options, campaign, results, journal)
        print(table.render(campaign, table.cells(campaign, table.measured(folder))), end="")
        _print_damaged(folder)
    return code


def _print_damaged(folder: Path) -> None:
    """Name what is not in the table because it cannot be read."""
    for run in filter(is_damaged, runs_in(folder)):
        print(clean_lines(f"damaged: {run.path.name}: {run.error}"), file=sys.stderr)


def _virtual(options: argparse.Namespace, campaign: Campaign, results: Results, journal: Journal) -> int:
    from hosts.per_kernel import RunHosts  # only for this: the other actions start sooner
    from hosts.virtual.host import VirtualHost
    from hosts.virtual.kernel import find

    kernel = find(campaign.kernel)
    journal.add("resumed" if journal.events() else "begun", host="virtual")
    per_run = len(campaign.receivers) * len(campaign.algorithms) * len(campaign.sizes)
    progress = Progress(estimated_runs(campaign, shortest_run_s(campaign)) * per_run, 0.0, sys.stdout, terminal())

    def announce(message: str) -> None:
        journal.add("run", reason=message)
        print(clean(message), flush=True)

    with contextlib.ExitStack() as stack:
        stack.callback(progress.close)
        runner = stack.enter_context(engine.runner_of(options, results, RunHosts(VirtualHost(kernel)), progress.event))
        stop_on_signals(runner)
        summary = virtual.conduct(campaign, results, kernel.key, runner, journal.is_stopped, announce)
    for transfer, reason in summary.failed.items():
        journal.add("missing", transfer=transfer, reason=reason)
    if summary.cancelled or journal.is_stopped():
        journal.add("stopped")
        raise WarpbedError(f"{campaign.campaign}: stopped; run the same command again to resume with the next transfer")
    journal.add("over")
    if not summary.done and not summary.failed:
        print(f"nothing to do: all {summary.present} transfers are there")
    return 1 if summary.failed else 0


def _wan(options: argparse.Namespace, campaign: Campaign, results: Results, journal: Journal) -> int:
    before = known_ends.read(results.folder)
    if options.ends is None and not before:
        raise UsageError(f"--host wan: {_unknown(results.folder)}")
    hosts = ends.parse(before if options.ends is None else options.ends, campaign, before)
    known_ends.write(results.folder, hosts)
    there = _made(journal)
    stop = threading.Event()
    stop_on_signals(_Cancel(stop))
    conductor = Conductor(
        campaign,
        hosts,
        results,
        journal,
        _teller(stop),
        stop.is_set,
        options.again,
        options.objects,
    )
    try:
        with outlived():  # where nobody reads its lines it stops in order
            missing = conductor.conduct()
    except StoppedError as error:
        journal.add("stopped")
        raise WarpbedError(str(error)) from error
    for transfer in missing:
        print(f"missing: {transfer}")
    if not missing and _made(journal) == there:
        print(f"nothing to do: all {there} transfers are there")
    return 1 if missing else 0


def _teller(stop: threading.Event) -> Callable[[str], None]:
    """Prints a line for people; where nobody reads it any more, the campaign is to stop as by a signal."""

    def tell(message: str) -> None:
        try:
            print(clean(message), flush=True)
        except BrokenPipeError:
            stop.set()
            with open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), sys.stdout.fileno())

    return tell


def _unknown(folder: Path) -> str:
    return (
        f"the hosts of {folder} are not known to this user of this machine; they come from an inventory, by "
        "`campaign run FILE --host wan -i INVENTORY`, and never from a results folder"
    )


def _made(journal: Journal) -> int:
    return sum(event["event"] == "done" for event in journal.events())


class _Cancel:
    def __init__(self, event: threading.Event) -> None:
        self.cancel = event.set


def _check(options: argparse.Namespace, campaign: Campaign, folder: Path) -> int:
    per_run = len(campaign.receivers) * len(campaign.algorithms) * len(campaign.sizes)
    runs = estimated_runs(campaign, shortest_run_s(campaign))
    print(
        f"{options.campaign}: {per_run} transfers a run, {campaign.size_of_run_bytes / 1e9:.2f} GB; at most {runs} runs in "
        f"{campaign.lasts} ({runs * campaign.size_of_run_bytes / 1e9:.0f} GB), ready to run"
    )
    return 0


def _status(options: argparse.Namespace, campaign: Campaign, folder: Path) -> int:
    status = campaign_status.read(campaign, folder)
    if options.format == "csv":
        print(render([asdict(status)], "csv"), end="")
    elif options.format == "json":
        print(status.as_json())
    else:
        print(clean_lines(campaign_status.render(campaign, status).rstrip("\n")))
    return 0


def _stop(options: argparse.Namespace, campaign: Campaign, folder: Path) -> int:
    journal = Journal(folder)
    if not journal.is_held():
        print(f"{campaign.campaign}: no process conducts it; {campaign_status.read(campaign, folder).state}")
        return _close_services(campaign, journal, folder)
    journal.stop()
    print(f"{campaign.campaign}: ends after the transfers under way; `campaign run` resumes it")
    return 0


def _close_services(campaign: Campaign, journal: Journal, folder: Path) -> int:
    """End what a killed process has left of this campaign running at the hosts; 1 where one of them cannot be asked."""
    kept, code, events = known_ends.read(folder), 0, journal.events()
    if not kept:
        if not any(event.get("host") == "wan" for event in events):
            return 0
        print(f"{_unknown(folder)}; no host was asked what still runs there", file=sys.stderr)
        return 1
    own = left_at_ends.begun(events)
    for name, end in ends.parse(kept, campaign).items():
        try:
            for transfer, state in remote.ask(name, end, "list")["transfers"].items():
                if transfer in own and state in ("ready", "running", "starting"):
                    remote.ask(name, end, "close", id=transfer)
                    print(clean_lines(f"{name}: {transfer} ended"))
        except WarpbedError as error:
            print(error.shown, file=sys.stderr)
            code = 1
        except (LookupError, TypeError, AttributeError) as error:
            print(f"{name}: answers what no agent of ours does ({type(error).__name__})", file=sys.stderr)
            code = 1
    return code


def _table(options: argparse.Namespace, campaign: Campaign, folder: Path) -> int:
    rows = table.cells(campaign, table.measured(folder))
    if options.format == "json":
        print(table.as_json(rows))
    elif options.format == "csv":
        print(render([asdict(row) for row in rows], "csv"), end="")
    else:
        print(table.render(campaign, rows), end="")
        print(judged.render(judged.findings(campaign, folder)), end="")
    _print_damaged(folder)
    return 0
