# SPDX-License-Identifier: Apache-2.0
"""`reproduce` of a thesis with one entry: its run, the decision, and the pages with the record of the run."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from hosts.per_kernel import RunHosts
from testbed import cli, runner
from testbed.commands import reproduce
from testbed.commands import run as run_command
from testbed.reproduction.bindings import read
from tests.catalogues import catalogue
from tests.faults.cases import EXPERIMENT, RecordedHost, collect_in_fork, whole_runs
from tests.faults.forks import imitate

CATALOGUE = catalogue("{claims: [Something arrives]}")
CLAIM = """\
claims:
  - {source: fig 1, metric: goodput_mbps, bounds: {min: 0}, decides: [t2000-fig1/1]}
"""


class Reproduce:
    """Everything but the guest, whose raw files are written here, and the checks of what is installed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.results, self.pages = folder, folder / "results", folder / "pages"
        self.world = folder.with_name("world")

    def prepare(self) -> None:
        self.folder.mkdir(parents=True)
        thesis = self.world / "experiments/t2000"
        thesis.mkdir(parents=True, exist_ok=True)
        (thesis / "catalogue.yaml").write_text(CATALOGUE)
        (thesis / "faulty.yml").write_text(EXPERIMENT + CLAIM)

    def work(self) -> int:
        imitate(runner, "finishing", contextlib.nullcontext)
        imitate(runner, "collect_apart", collect_in_fork)
        imitate(run_command, "ready_hosts", lambda kind, asked: RunHosts(RecordedHost()))
        imitate(reproduce, "read", lambda: read(self.world))
        words = [
            "reproduce",
            "--jobs=1",
            f"--results={self.results}",
            f"--pages={self.pages}",
            f"--record={self.pages}",
        ]
        return cli.main(words)

    def check(self, whole: bool, settled: bool) -> list[str]:
        wrong = whole_runs(self.results / "faulty", wanted=1 if whole else None, settled=settled)
        for page in self.pages.glob("[!.]*.md"):
            if not page.read_text().endswith("\n") or "<!-- SPDX" not in page.read_text():
                wrong.append(f"{page.name} is half there")
        for record in self.pages.glob("[!.]*.json"):
            try:
                json.loads(record.read_text())
            except ValueError as error:
                wrong.append(f"{record.name} is half there: {error}")
        if whole:
            wrong += [
                f"no {name}" for name in ("t2000.md", "t2000.json", "README.md") if not (self.pages / name).exists()
            ]
            wrong += [] if (self.results / "faulty/report.html").exists() else ["no report"]
            wrong += ["the entry is not decided"] if "0.08000 here" not in self._page() else []
        if settled:
            wrong += [f"left: {file.name}" for file in self.pages.glob(".*")]
        return wrong

    def _page(self) -> str:
        page = self.pages / "t2000.md"
        return page.read_text() if page.exists() else ""
