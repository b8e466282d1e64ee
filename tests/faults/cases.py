# SPDX-License-Identifier: Apache-2.0
"""The commands that are repeated with a failing call, and what must hold after each, whatever has failed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, Protocol

from analysis import integrity
from base.errors import WarpbedError
from hosts.base import Execution, Outcome
from hosts.identity import KernelInputs
from hosts.per_kernel import RunHosts
from network.model import address_plan
from plan.model import Plan
from plan.samples import MAGIC
from testbed import results as published
from testbed import runner
from testbed.campaign import attempt as attempt_module
from testbed.campaign import conductor as conductor_module
from testbed.campaign import remote
from testbed.campaign.conductor import Conductor
from testbed.campaign.ends import End
from testbed.campaign.journal import FOLDER, Journal
from testbed.campaign.model import load
from testbed.cli import ended
from testbed.collecting import Trouble
from testbed.experiments import prepare
from testbed.finish import finish
from testbed.finish import main as finish_main
from testbed.identity import run_id
from testbed.results import ASIDE, Results
from tests import pcap_craft
from tests.faults.forks import forked, imitate, note_imports

PACKETS, PAYLOAD = 10, 1000
CAMPAIGN = f"""\
warpbed: 1
campaign: demo
title: One transfer
sender: a
receivers: {{b: {{}}}}
algorithms: [reno]
sizes: [{PACKETS * PAYLOAD}B]
pause: 0s
every: 0s
runs: 1
attempts: 3
traceroute: false
patience: 2s
"""
EXPERIMENT = f"""\
warpbed: 1
name: faulty
title: One short flow
duration: 1s
topology: {{name: line, params: {{rate: none, delay: 0ms}}}}
flows:
  - {{name: f1, cca: reno, from: s1, to: d1, app: file, size: {PACKETS * PAYLOAD}B}}
samplers: {{tcp_probe: false}}
"""
ENDS = {
    name: End(address=address, host="h", agent="/var/lib/warpbed/agent.pyz", consent="mine")
    for name, address in (("a", "192.0.2.10"), ("b", "192.0.2.20"))
}


class Case(Protocol):
    """Something that a command does with files below a folder."""

    folder: Path

    def prepare(self) -> None:
        """Make the folder as it is before."""

    def work(self) -> int:
        """The command; its exit code. Called in a process of its own, with a failing call and then again without."""

    def check(self, whole: bool, settled: bool) -> list[str]:
        """What does not hold. whole: after a command that says it is done; settled: after one in which nothing failed."""


class Waits:
    """The conductor's clock: its patience is used up by what it waits, not by how slow this machine is, and no wait takes time."""

    def __init__(self) -> None:
        self._waited_s = 0.0

    def monotonic(self) -> float:
        return self._waited_s

    @staticmethod
    def time_ns() -> int:
        return time.time_ns()

    def time(self) -> float:
        return time.time() + self._waited_s

    def sleep(self, seconds: float) -> None:
        self._waited_s += seconds


class Transfer:
    """A campaign's transfer: from the files at its two ends to a run folder here. The ends answer from this process; all
    that happens on this machine is the real thing (conductor, journal, collecting, publishing)."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.results, self.lost = folder, folder / "results", folder.with_name("lost")
        self.ends = folder.with_name("ends")  # beside: what fails here is this machine

    def prepare(self) -> None:
        self.folder.mkdir(parents=True)
        self.lost.unlink(missing_ok=True)
        shutil.rmtree(self.ends, ignore_errors=True)
        self.ends.mkdir()
        self.ends.with_name("c.yml").write_text(CAMPAIGN)

    def work(self) -> int:
        imitate(remote, "ask", self._ask)
        imitate(remote, "fetch", self._fetch)
        imitate(attempt_module, "collect_fetched", collect_fetched_in_fork)
        imitate(conductor_module, "time", Waits())
        campaign = load(self.ends.with_name("c.yml"))[0]
        journal = Journal(self.results / "demo")
        conductor = Conductor(
            campaign, ENDS, Results(self.results, "demo"), journal, print, lambda: False, retry_s=0.5, again=True
        )
        return ended(lambda: self._conduct(conductor, journal))

    @staticmethod
    def _conduct(conductor: Conductor, journal: Journal) -> int:
        with journal.held():
            if missing := conductor.conduct():
                raise WarpbedError(f"missing: {', '.join(missing)}")
        return 0

    def check(self, whole: bool, settled: bool) -> list[str]:
        wrong = whole_runs(self.results / "demo", wanted=1 if whole else None, settled=settled)
        if self.lost.exists():
            wrong.append(f"the only copy was removed at the ends: {self.lost.read_text()}")
        if settled and (left := sorted(self._at_ends())):
            wrong.append(f"left at the ends: {left}")
        return wrong

    def _at_ends(self, side: str = "") -> set[str]:
        """The names of attempts' files at the ends, or at one of them."""
        return {
            file.name
            for file in self.ends.iterdir()
            if file.suffix in ((f".{side}",) if side else (".sender", ".receiver"))
        }

    def gone(self) -> list[str]:
        """Attempts whose files are at no end any more, and of which nothing is here."""
        names = [file.name.rpartition(".") for file in self.ends.iterdir()]
        begun = [attempt for attempt, _, what in names if what == "begun"]
        there = {attempt for attempt, _, what in names if what != "begun"}
        return [f"{attempt} is nowhere" for attempt in begun if attempt not in there and not self._is_here(attempt)]

    def _fetch(self, name: str, _end: End, transfer: str, target: Path, **_: Any) -> None:
        side = "sender" if name == "a" else "receiver"
        if not (self.ends / f"{transfer}.{side}").exists():
            raise remote.RefusedError(f"{name}: no files of {transfer}")
        self.files(name, _end, transfer, target)

    @staticmethod
    def files(name: str, _end: End, _transfer: str, target: Path, **_: Any) -> None:
        """The files of an end."""
        side = "sender" if name == "a" else "receiver"
        target.mkdir()
        (target / "eth0.pcap").write_bytes(pcap_craft.pcap(_packets()))
        (target / f"{side}.json").write_text(json.dumps({"bytes": PACKETS * PAYLOAD, "seconds": 0.5}))
        (target / "sockets.bin").write_bytes(MAGIC)
        (target / "console.log").write_text("")

    def _ask(self, name: str, _end: End, do: str, _timeout_s: float = 0.0, **request: Any) -> dict[str, Any]:
        side = "sender" if name == "a" else "receiver"
        files = self.ends / f"{request.get('id', '')}.{side}"
        if do == "start":
            files.touch()
            (self.ends / f"{request['id']}.begun").touch()
        elif do == "remove":
            self._note_loss(str(request["id"]))
            files.unlink(missing_ok=True)
        elif do == "status" and not files.exists():
            return {"state": "absent"}
        elif do == "list":
            return {"transfers": {name.removesuffix(f".{side}"): "ended" for name in self._at_ends(side)}}
        return self.answers(do, side)

    @staticmethod
    def answers(do: str, side: str) -> dict[str, Any]:
        """What an end says of a transfer that it has made."""
        if do == "probe":
            return {
                "time_ns": time.time_ns(), "boot_id": "x", "uid": 0, "free_bytes": 10**13, "interface": "eth0",
                "algorithms": ["reno"], "kernel": {"release": "6.1"}, "tools": {}, "clock": {"source": None},
            }  # fmt: skip
        if do == "start":
            return {"state": "ready" if side == "receiver" else "running"}
        if do == "remove":
            return {}
        return {
            "state": "ended", "ok": True, "reason": "", "start_realtime_ns": pcap_craft.START_S * 10**9,
            "start_monotonic_ns": 0, "ended_s": 1.0, "capture_drops": 0, "captures_cut": False,
            "environment": {"kernel": {"release": "6.1"}, "tools": {}, "nodes": {side: {"interfaces": {}}}},
        }  # fmt: skip

    def _note_loss(self, attempt: str) -> None:
        """The end's files may go only where the run is here, whole or kept as failed, or the journal says what became of it."""
        if (self.ends / f"{attempt}.begun").exists() and not self._is_here(attempt):
            self.lost.write_text(attempt)

    def _is_here(self, attempt: str) -> bool:
        """Whether a run or a failed one is here, or the journal says that the attempt failed."""
        folder = self.results / "demo"
        run = attempt.rpartition(".a")[0]
        return (
            (folder / run / "run.json").is_file()
            or any(folder.glob(f"{run}.failed-*"))
            or any(event["event"] == "failed" and event.get("transfer") == run for event in Journal(folder).events())
        )


class Collect:
    """`collect` of a run that is there: its records are made again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = folder.with_name("made")

    def prepare(self) -> None:
        if not self.made.exists():
            transfer = Transfer(self.made)
            transfer.prepare()
            code, words = forked(transfer.work)
            if code:
                raise RuntimeError(f"a transfer without faults failed: {words}")
        shutil.copytree(self.made, self.folder)

    @property
    def _run(self) -> Path:
        (folder,) = (file.parent for file in self.made.glob("results/demo/*/run.json"))
        return self.folder / folder.relative_to(self.made)

    def work(self) -> int:
        return ended(self._collect)

    def _collect(self) -> int:
        finish(self._run)
        return 0

    def check(self, whole: bool, settled: bool) -> list[str]:
        document = json.loads((self._run / "run.json").read_text())
        names = {file.name for file in (self._run / "records").iterdir()}
        wanted = {file.name for file in (self.made / self._run.relative_to(self.folder) / "records").iterdir()}
        wrong = [f"records are missing: {sorted(wanted - names)}"] if wanted - names else []
        # records of a collection whose run.json could not be written any more differ from it, and that is said by
        # store load; once the command has ended well they may not
        part = integrity.PARTS if whole else ["raw"]
        wrong += integrity.problems(self._run, document, part)
        if whole:
            wrong += whole_runs(self._run.parent, wanted=1, settled=settled)
        return wrong


class Run:
    """`execute` of one run: everything after the host, whose raw files are written here, is the real thing. Records are made in a
    fork instead of a new Python, which would take most of the time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.results = folder, folder / "results"
        self.file = folder.with_name("experiment.yml")

    def prepare(self) -> None:
        self.folder.mkdir(parents=True)
        self.file.write_text(EXPERIMENT)

    def work(self) -> int:
        imitate(runner, "finishing", contextlib.nullcontext)
        imitate(runner, "collect_apart", collect_in_fork)
        return ended(self._execute)

    def _execute(self) -> int:
        asked = prepare(self.file)
        host = RecordedHost()
        jobs = [
            runner.Job(run, plan, run_id(run, plan, host)) for run, plan in zip(asked.runs, asked.plans, strict=True)
        ]
        summary = runner.Runner(Results(self.results, "faulty"), RunHosts(host), 1, lambda event: None).run_all(jobs)
        for words in summary.failed.values():
            print(words)
        return 1 if summary.failed else 0

    def check(self, whole: bool, settled: bool) -> list[str]:
        return whole_runs(self.results / "faulty", wanted=1 if whole else None, settled=settled)


class RecordedHost:
    """A host that has run the experiment already: it leaves the files of one transfer."""

    kind, one_at_a_time, facts = "virtual", True, {"key": "k"}

    def inputs(self, plan: Plan) -> KernelInputs:
        return KernelInputs("k", {})

    def problems(self, plan: Plan) -> list[str]:
        return []

    def execute(self, run: Execution) -> Outcome:
        run = run.of(run.plan)
        plans = address_plan(run.plan.network)
        packets = pcap_craft.pcap(_packets(plans["s1"].address, plans["d1"].address, run.plan.flows[0].port))
        for capture in run.plan.captures:
            interface = next(i.name for i in plans[capture.node].interfaces if i.peer == capture.peer)
            (run.folder / f"{interface}.pcap").write_bytes(packets)
        for side in ("client", "server"):
            (run.folder / f"f1.{side}.json").write_text(json.dumps({"bytes": PACKETS * PAYLOAD, "seconds": 0.5}))
        for name in ("sockets.bin", "queues.bin"):
            (run.folder / name).write_bytes(MAGIC)
        (run.folder / "console.log").write_text("")
        facts: dict[str, Any] = {
            "ok": True, "error": None, "start_realtime_ns": pcap_craft.START_S * 10**9, "start_monotonic_ns": 0,
            "ended_s": 1.0, "idle_rtt": {}, "queue_statistics": {}, "tcp_probe_lost": 0, "captures_cut": [],
            "capture_drops": {}, "environment": {"nodes": {}, "kernel": {"release": "6.1"}, "tools": {}},
        }  # fmt: skip
        (run.folder / "guest.json").write_text(json.dumps(facts))
        return Outcome(None, facts, 1.0, run.plan.duration_s)


def collect_in_fork(folder: Path, _forks: object, _cpu: int) -> Trouble | None:
    """testbed.collecting's collect_apart, but for the process that it is forked from and its CPU."""
    return _forked([str(folder)])


def collect_fetched_in_fork(folder: Path, heed: object) -> Trouble | None:
    """testbed.collecting's collect_fetched, but for the new Python and its limits."""
    del heed
    return _forked([str(folder), "--fetched"])


def _forked(arguments: list[str]) -> Trouble | None:
    with tempfile.TemporaryFile() as words:
        child = os.fork()
        if child == 0:
            os.dup2(words.fileno(), 2)
            code = 1
            try:
                code = note_imports(finish_main(arguments))
            except BaseException:  # noqa: BLE001 — as the interpreter ends
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        words.seek(0)
        detail = words.read().decode(errors="replace").strip()
    is_disk = os.waitstatus_to_exitcode(status) == os.EX_IOERR
    return Trouble(detail or "?", is_disk) if status else None


class Unsynced(Transfer):
    """A transfer as it should not be: published before its files are on the disk. A cut of the power has to find it wrong."""

    def work(self) -> int:
        imitate(published, "sync_tree", lambda folder: None)
        return super().work()


class Broken:
    """A command as it should not be: the run has its name before it is whole. The loop has to find it wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(self) -> None:
        self.folder.mkdir(parents=True)

    def work(self) -> int:
        return ended(self._write)

    def _write(self) -> int:
        run = self.folder / "demo/r1"
        run.mkdir(parents=True, exist_ok=True)
        (run / "raw").mkdir(exist_ok=True)
        (run / "raw/a.pcap").write_bytes(bytes(100))
        document = {"verdict": {"value": "valid", "reasons": []}, "metrics": {}, integrity.KEY: integrity.digests(run)}
        (run / "run.json").write_text(json.dumps(document))
        return 0

    def check(self, whole: bool, settled: bool) -> list[str]:
        return whole_runs(self.folder / "demo", wanted=1 if whole else None, settled=settled)


def whole_runs(folder: Path, wanted: int | None, settled: bool) -> list[str]:
    """What is wrong with an experiment's folder: a half run under a whole one's name, or not the number that is wanted."""
    wrong, complete = [], 0
    for run in sorted(folder.glob("[!.]*")):
        if ".failed-" in run.name or run.name == "report.html":
            continue
        try:
            document = json.loads((run / "run.json").read_text())
        except (OSError, ValueError) as error:
            wrong.append(f"{run.name} is half there: {error}")
            continue
        complete += 1
        wrong += [f"{run.name}: {text}" for text in integrity.problems(run, document)]
        if not document.get(integrity.KEY) or document.get("verdict") is None:
            wrong.append(f"{run.name} was published before it was finished")
        else:
            wrong += _other(folder.name, document)
    if wanted is not None and complete != wanted:
        wrong.append(f"{complete} runs, {wanted} wanted")
    if settled and (hidden := [str(place.relative_to(folder)) for place in folder.rglob(".*") if place.name != FOLDER]):
        wrong.append(f"left: {hidden}")
    if settled and (left := list((folder.parent / ASIDE).glob("*"))):
        wrong.append(f"left aside: {[entry.name for entry in left]}")
    return wrong


_first: dict[str, Any] = {}
"""Verdict and metrics of the first run of each experiment, which is one without faults."""


def _other(experiment: str, document: dict[str, Any]) -> list[str]:
    """What a run says that the one without faults does not: an error of the disk is no result."""
    said = {
        "verdict": document["verdict"]["value"],
        "reasons": sorted({reason["code"] for reason in document["verdict"]["reasons"]}),
        "metrics": document["metrics"],
    }
    first = _first.setdefault(experiment, said)
    return [f"{name} {said[name]} instead of {first[name]}" for name in said if said[name] != first[name]]


def _packets(
    source: str = "192.0.2.10", destination: str = "192.0.2.20", port: int = 5201
) -> list[tuple[int, bytes, int]]:
    """A transfer: its control connection, and one data packet every 20 ms."""
    control = pcap_craft.Conversation(client=(source, 39999), server=(destination, port))
    control.open(0.0, 20.0)
    control.data(21.0, 0, 72)
    control.ack(41.0, 72)
    data = pcap_craft.Conversation(client=(source, 40000), server=(destination, port), client_isn=7000)
    data.open(50.0, 20.0)
    for number in range(PACKETS):
        at_ms = 80.0 + 20.0 * number
        data.data(at_ms, number * PAYLOAD, PAYLOAD)
        data.ack(at_ms + 20.0, (number + 1) * PAYLOAD)
    data.close(300.0, PACKETS * PAYLOAD)
    control.close(350.0, 72)
    return sorted([*control.frames, *data.frames], key=lambda frame: frame[0])
