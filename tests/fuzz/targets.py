# SPDX-License-Identifier: Apache-2.0
"""What reads files from others, and good files to begin with."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from analysis import integrity
from analysis.report import write_report
from base.errors import WarpbedError
from base.paths import ROOT
from store import folder as store_folder
from testbed.bundle.unpack import unpack
from testbed.campaign.model import load as load_campaign
from testbed.experiments import prepare
from testbed.finish import finish
from tests.faults.cases import Run
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
        return load_campaign(file)


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
        return refused(lambda: write_report(self.run.parent)) + refused(lambda: store_folder.read(self.run))


class Collected(InventedRun):
    """A raw file; the records are made from it again."""

    def read(self, data: bytes) -> str:
        for file, content in self.raw.items():
            file.write_bytes(content)
        (self.run / self.FILE).write_bytes(data)
        return refused(lambda: finish(self.run))


class PlanFile(Collected):
    FILE = "raw/plan.json"


class FactsFile(Collected):
    FILE = "raw/guest.json"


class SocketSamples(Collected):
    FILE = "raw/sockets.bin"


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
    "run.json": InventedRun,
    "plan.json": PlanFile,
    "guest.json": FactsFile,
    "sockets.bin": SocketSamples,
    "client.json": FlowResult,
    "bundle": BundleFile,
}
