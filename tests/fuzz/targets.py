# SPDX-License-Identifier: Apache-2.0
"""What reads files from others, and good files to begin with."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from analysis import integrity, records
from analysis.report import write_report
from base.errors import WarpbedError
from base.paths import ROOT
from base.text import clean_lines
from hosts.lab import machines
from network import traces
from store import actions
from testbed.bundle.unpack import unpack
from testbed.campaign import attempt, remote, status
from testbed.campaign.conductor import Conductor, StoppedError
from testbed.campaign.ends import End, parse
from testbed.campaign.journal import Journal
from testbed.campaign.model import load as load_campaign
from testbed.collecting import Trouble
from testbed.experiments import prepare
from testbed.finish import finish
from testbed.results import Results
from tests.faults.cases import CAMPAIGN, ENDS, PACKETS, PAYLOAD, Run, Transfer
from tests.faults.forks import forked


class Target(Protocol):
    def __init__(self, place: Path) -> None:
        """place: a folder of its own."""

    def seeds(self) -> Sequence[bytes]:
        """Good files."""

    def read(self, data: bytes) -> str:
        """What a command does with such a file; what it says of it."""


class ExperimentFile:
    """An experiment file, up to the plans of its runs."""

    FILES: tuple[str, ...] = (
        "experiments/quickstart.yml",
        "experiments/buffer-sizes.yml",
        "experiments/*.yml",
        "benchmarks/golden_runs/*.yml",
    )

    def __init__(self, place: Path) -> None:
        self.place = place

    def seeds(self) -> Sequence[bytes]:
        files = {file for pattern in self.FILES for file in sorted(ROOT.glob(pattern))}
        return [data for file in sorted(files) if len(data := file.read_bytes()) < 8000]

    def read(self, data: bytes) -> str:
        file = self.place / "experiment.yml"
        file.write_bytes(data)
        return refused(lambda: self.load(file))

    def load(self, file: Path) -> object:
        return prepare(file)


class CampaignFile(ExperimentFile):
    FILES = ("campaigns/*.yml",)

    def load(self, file: Path) -> object:
        """As `campaign check` and `campaign status` do, of a campaign that has not begun."""
        campaign = load_campaign(file)[0]
        return campaign.size_of_run_bytes, status.render(campaign, status.read(campaign, self.place / "results"))


class TraceFile:
    """A trace of rates beside an experiment file."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def seeds(self) -> Sequence[bytes]:
        times = traces.synthetic_times(12_000_000, 0.3, 100_000_000, 2_000_000_000, 1)
        return ["".join(f"{ms}\n" for ms in times).encode(), b"1\n2\n2\n500\n", b"7\n"]

    def read(self, data: bytes) -> str:
        (self.place / "path.trace").write_bytes(data)
        with traces.beside(self.place):
            try:
                trace = traces.load("path.trace")
                if not 0 < trace.mean_bps <= trace.peak_bps:
                    raise RuntimeError(f"rates {trace.mean_bps}, {trace.peak_bps}")
            except ValueError as error:  # which the experiment file's line is put before
                return str(error)
        return ""


class HostsOfACampaign:
    """What a play says of an inventory's hosts."""

    def __init__(self, place: Path) -> None:
        file = place / "campaign.yml"
        file.write_text(CAMPAIGN)
        self.campaign = load_campaign(file)[0]

    def seeds(self) -> Sequence[bytes]:
        hosts = {name: end.model_dump(mode="json") for name, end in ENDS.items()}
        return [json.dumps({"hosts": hosts, "absent": ["c"]}).encode()]

    def read(self, data: bytes) -> str:
        return refused(lambda: parse(data.decode(errors="replace"), self.campaign))


class JournalFile:
    """A campaign's journal; what is read is its state, and where to go on with it."""

    def __init__(self, place: Path) -> None:
        file = place / "campaign.yml"
        file.write_text(CAMPAIGN)
        self.campaign, self.results = load_campaign(file)[0], place / "results"
        self.journal = Journal(self.results / "demo")
        transfer = "run-00001-b-reno-10000B"
        facts = {"transfer": transfer, "attempt": 1}
        for event, more in (
            ("begun", {"host": "wan"}), ("run", {"run": 1}), ("started", {**facts, "bytes": PACKETS * PAYLOAD}),
            ("failed", {**facts, "reason": "the link went down"}), ("missing", {"transfer": transfer, "reason": "given up"}),
            ("done", {"transfer": transfer, "seconds": 1.5}), ("over", {"missing": 0}),
        ):  # fmt: skip
            self.journal.add(event, **more)

    def seeds(self) -> Sequence[bytes]:
        return [self.journal.file.read_bytes()]

    def read(self, data: bytes) -> str:
        self.journal.file.write_bytes(data)
        said = refused(lambda: status.render(self.campaign, status.read(self.campaign, self.journal.folder.parent)))
        conductor = Conductor(
            self.campaign, ENDS, Results(self.results, "demo"), self.journal, lambda _: None, lambda: True, retry_s=0.0
        )
        try:
            conductor.conduct()
        except (StoppedError, WarpbedError):
            pass
        return clean_lines(said)


class MachinesOfALab:
    """What a play says of a lab's machines (WARPBED_LAB)."""

    def __init__(self, place: Path) -> None:
        pass

    def seeds(self) -> Sequence[bytes]:
        common = {
            "user": "root",
            "identity": "id",
            "known_hosts": "known",
            "become": True,
            "modules": {"tcp_medley": "A1"},
        }
        return [
            json.dumps(
                {"machines": {
                    "one": {"node": "s1", "nics": {"d1": "eth1"}, "host": "192.0.2.1", "port": 22, **common},
                    "two": {"node": "d1", "nics": {"s1": "eth1"}, "host": "2001:db8::2", "control": ["eth0"], **common},
                }}
            ).encode()
        ]  # fmt: skip

    def read(self, data: bytes) -> str:
        return clean_lines(refused(lambda: machines.load(data.decode(errors="replace") or "{}")))


@dataclass
class Imitated:
    """The way to a host that gives these answers to questions."""

    answers: dict[str, object]

    def call(self, *_program: str, data: bytes = b"", timeout_s: float = 0.0) -> subprocess.CompletedProcess[bytes]:
        answer = json.dumps(self.answers.get(json.loads(data)["do"]))
        return subprocess.CompletedProcess([], 0, answer.encode(), b"")


def collect_here(folder: Path, **_: object) -> Trouble | None:
    """testbed.collecting's in this process, whose branches are counted."""
    try:
        finish(folder)
    except Exception as error:  # noqa: BLE001 — whatever it is, it is a failed attempt
        return Trouble(str(error) or type(error).__name__)
    return None


class AnswersOfHosts:
    """What the two hosts of a campaign answer when they are asked; all that they are asked for comes from one document."""

    def __init__(self, place: Path) -> None:
        self.place = place
        file = place / "campaign.yml"
        text = CAMPAIGN.replace("patience: 2s", "patience: 0s\ntransfer_at_most: 200ms").replace(
            "attempts: 3", "attempts: 1"
        )
        file.write_text(text)
        self.campaign = load_campaign(file)[0]

    def seeds(self) -> Sequence[bytes]:
        transfer = Transfer(self.place / "unused")
        questions = {"probe": "probe", "start": "status", "status": "status", "remove": "remove"}
        sides = ("sender", "receiver")
        return [
            json.dumps(
                {side: {do: transfer.answers(like, side) for do, like in questions.items()} for side in sides}
            ).encode()
        ]

    def read(self, data: bytes) -> str:
        results = self.place / "results"
        shutil.rmtree(results, ignore_errors=True)
        try:
            answers = json.loads(data)
        except (ValueError, RecursionError):
            return "not JSON"
        if not isinstance(answers, dict):
            return "nothing of any question"

        def way(end: End) -> Imitated:
            of_end = answers.get("sender" if end == ENDS["a"] else "receiver")
            return Imitated(of_end if isinstance(of_end, dict) else {})

        said: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(remote, "_remote", way)
            patch.setattr(remote, "fetch", Transfer(self.place / "unused").files)
            patch.setattr(attempt, "collect_fetched", collect_here)
            patch.setattr(attempt, "POLL_S", 0.01)
            patch.setattr(attempt, "POLL_AT_MOST_S", 0.05)
            patch.setattr(attempt, "SLACK_S", 0.0)
            journal = Journal(results / "demo")
            conductor = Conductor(
                self.campaign, ENDS, Results(results, "demo"), journal, said.append, lambda: False, retry_s=0.0
            )
            refused(conductor.conduct)
            refused(lambda: status.render(self.campaign, status.read(self.campaign, results / "demo")))
        return clean_lines("\n".join(said)) if "missing" in "".join(said) else ""


class InventedRun:
    """A file of a run's folder; what is read is the report, the store's rows, or the records that are made again."""

    FILE = "run.json"

    def __init__(self, place: Path) -> None:
        self.place, self.made = place, place / "made"
        case = Run(self.made)
        case.prepare()
        code, words = forked(case.work)
        if code:
            raise RuntimeError(words)
        (self.run,) = (file.parent for file in self.made.glob("results/faulty/*/run.json"))
        self.content = (self.run / self.FILE).read_bytes()
        document = json.loads((self.run / "run.json").read_bytes())
        document.pop(integrity.KEY)  # somebody who changes files leaves them out, or writes new ones
        self.raw = {file: file.read_bytes() for file in (self.run / "raw").iterdir()} | {
            self.run / "run.json": json.dumps(document).encode()
        }

    def seeds(self) -> Sequence[bytes]:
        return [self.content]

    def read(self, data: bytes) -> str:
        (self.run / self.FILE).write_bytes(data)
        return refused(lambda: write_report(self.run.parent)) + refused(self.ask)

    def ask(self) -> str:
        """What `store ask --results` says of the run, of rows that the database would have."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            for question in ("rows", "series", "events"):
                values = {"experiment": "faulty", "run": self.run.name}
                actions.ask(question, values, None, self.run, "json")
        return said.getvalue()


class Collected(InventedRun):
    """A raw file; the records are made from it again."""

    def read(self, data: bytes) -> str:
        for file, content in self.raw.items():
            file.write_bytes(content)
        (self.run / self.FILE).write_bytes(data)
        return refused(lambda: finish(self.run))


class Intervals(InventedRun):
    """A record; it is read whole, too."""

    FILE = "records/intervals.parquet"

    def restore(self) -> None:
        (self.run / "run.json").write_bytes(self.raw[self.run / "run.json"])

    def read(self, data: bytes) -> str:
        self.restore()
        said = super().read(data)
        return (
            said
            + refused(lambda: records.whole(self.run / self.FILE))
            + refused(lambda: records.rows(self.run / self.FILE))
        )


class Flows(Intervals):
    FILE = "records/flows.parquet"


class Acks(Intervals):
    FILE = "records/acks.parquet"


class StoredPlan(Intervals):
    """The plan, of which the store takes what happened when."""

    FILE = "raw/plan.json"

    def read(self, data: bytes) -> str:
        self.restore()
        (self.run / self.FILE).write_bytes(data)
        return refused(self.ask)


class PlanFile(Collected):
    FILE = "raw/plan.json"


class FactsFile(Collected):
    FILE = "raw/guest.json"


class SocketSamples(Collected):
    FILE = "raw/sockets.bin"


class QueueSamples(Collected):
    FILE = "raw/queues.bin"


class FlowResult(Collected):
    FILE = "raw/f1.client.json"


class BundleFile(InventedRun):
    """A bundle, unpacked: its archive as it is written, or one that is not compressed, so that changes reach the manifest."""

    def seeds(self) -> Sequence[bytes]:
        from testbed.bundle import contents, write  # what makes bundles needs the extra `crate`

        file = self.place / "good.zip"
        part = contents.part_of(self.made.with_name("experiment.yml"), self.made / "results")
        write.write(file, "t", [part], captures=False, licence="CC-BY-4.0")
        stored = io.BytesIO()
        with zipfile.ZipFile(file) as archive, zipfile.ZipFile(stored, "w", zipfile.ZIP_STORED) as plain:
            for name in archive.namelist():
                plain.writestr(name, archive.read(name))
        return [file.read_bytes(), stored.getvalue()]

    def read(self, data: bytes) -> str:
        file, target = self.place / "bundle.zip", self.place / "unpacked"
        file.write_bytes(data)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        return refused(lambda: unpack(file, target, 10**8))


def refused(read: object) -> str:
    """The words in which a file is refused; empty where it is not."""
    try:
        read()  # type: ignore[operator]
    except WarpbedError as error:
        return str(error)
    return ""


TARGETS: dict[str, type[Target]] = {
    "experiment": ExperimentFile,
    "campaign": CampaignFile,
    "trace": TraceFile,
    "hosts of a campaign": HostsOfACampaign,
    "answers of hosts": AnswersOfHosts,
    "run.json": InventedRun,
    "plan.json": PlanFile,
    "guest.json": FactsFile,
    "sockets.bin": SocketSamples,
    "queues.bin": QueueSamples,
    "client.json": FlowResult,
    "bundle": BundleFile,
    "intervals.parquet": Intervals,
    "flows.parquet": Flows,
    "acks.parquet": Acks,
    "plan.json of the store": StoredPlan,
    "journal": JournalFile,
    "machines of a lab": MachinesOfALab,
}
