# SPDX-License-Identifier: Apache-2.0
"""What goes into a bundle: experiment files with their traces, runs, figures, and what says how they were made."""

from __future__ import annotations

import fnmatch
import json
import stat
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis import integrity
from analysis.report import write_report
from analysis.results import Run, load_experiment
from base.cache import sha256_of
from base.errors import UsageError
from base.paths import ROOT
from base.small_files import small_json
from network import traces
from testbed.bundle.manifest import NAME, name_problem
from testbed.captures import BULKY
from testbed.commands.prepared import answered_ids, as_written
from testbed.experiments import Prepared, prepare
from testbed.results import Results

ALWAYS = ("CITATION.cff", "LICENSES/Apache-2.0.txt", "LICENSES/GPL-2.0-only.txt")
ENVIRONMENT = ("requirements.lock", "hosts/virtual/pinned_packages.json")


@dataclass(frozen=True)
class Source:
    """A file of a bundle: its name there, and where its content is."""

    name: str
    content: Path | bytes


@dataclass(frozen=True)
class Part:
    """An experiment with its complete runs; missing: runs of the file that are not complete."""

    file: str
    prepared: Prepared
    runs: tuple[Run, ...]
    missing: int
    folder: Path

    @property
    def name(self) -> str:
        return self.prepared.experiment.name


def part_of(file: Path, results: Path) -> Part:
    """An experiment file with the runs that answer it now, whatever kernel made them.

    Raises UsageError where a file of a run is not as it was when the run was finished.
    """
    prepared = prepare(file)
    store = Results(results, prepared.experiment.name)
    ids = answered_ids(prepared, prepared.experiment.host, store)
    loaded = load_experiment(store.folder, ids) if store.folder.is_dir() else ()
    runs = tuple(run for run in loaded if run.complete)
    for run in runs:
        document = small_json(run.path / "run.json")
        if wrong := integrity.problems(run.path, document):
            raise UsageError(
                integrity.said(run.path, wrong, "a bundle holds what was measured; move the run away and run it again")
            )
    path = file.resolve()
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT / "experiments") else f"experiments/{path.name}"
    return Part(name, prepared, runs, len(ids) - len(runs), store.folder)


def files_of(part: Part, *, captures: bool, work: Path) -> Iterator[Source]:
    """An experiment's file, traces, runs and figures. work: a folder for the figures, which are drawn anew."""
    own = Path(part.prepared.document.file)
    yield Source(part.file, own)
    named = {name for run in part.prepared.runs for name in run.inputs(part.prepared.experiment.host).traces}
    for name in sorted(named):
        yield Source(f"{Path(part.file).parent}/{name}", traces.place(own.parent, name))
    for run in part.runs:
        for file in sorted(run.path.rglob("*")):
            inside = file.relative_to(run.path)
            left_out = (
                inside.parts[0] == "raw" and not captures and any(fnmatch.fnmatch(file.name, one) for one in BULKY)
            )
            if inside.parts[0] in ("raw", "records", "run.json") and not left_out and not file.is_dir():
                yield Source(f"results/{part.name}/{run.path.name}/{inside}", _plain(file))
    drawn = work / part.name
    drawn.mkdir()
    write_report(
        part.folder,
        drawn / "report.html",
        names=[run.run for run in part.runs],
        asked=as_written(part.prepared),
        figures=True,
    )
    for file in sorted(drawn.rglob("*")):
        if file.is_file():
            yield Source(f"figures/{part.name}/{file.relative_to(drawn)}", file)


def surroundings(parts: Sequence[Part]) -> Iterator[Source]:
    """Licences, the environment's locks, each kernel build's description, and those of its sources that are as they were."""
    for name in ALWAYS:
        yield Source(name, ROOT / name)
    for name in ENVIRONMENT:
        yield Source(f"environment/{Path(name).name}", ROOT / name)
    builds: dict[str, dict[str, Any]] = {}
    for run in (run for part in parts for run in part.runs):
        build = run.environment.get("build")
        if isinstance(build, dict) and str(build.get("key", "")).isalnum():
            builds[str(build["key"])] = build
    sources: dict[str, Path] = {}
    for key, build in sorted(builds.items()):
        yield Source(f"environment/kernel-{key}.json", (json.dumps(build, indent=1) + "\n").encode())
        module_sources = build.get("module_sources")
        listed = dict(module_sources) if isinstance(module_sources, dict) else {}
        recorded = {f"kernels/modules/{name}": digest for name, digest in listed.items()}
        patches = build.get("patches")
        applied = [one for one in patches if isinstance(one, dict)] if isinstance(patches, list) else []
        recorded |= {f"kernels/patches/{one.get('name')}": one.get("sha256") for one in applied}
        for name, digest in recorded.items():
            if (ROOT / name).is_file() and sha256_of(ROOT / name) == digest:
                sources[name] = ROOT / name
    for name, path in sorted(sources.items()):
        yield Source(f"sources/{name}", path)


def commit() -> str:
    """The checkout's commit, with `-changed` where files differ from it; empty where there is no Git."""

    def asked(*argv: str) -> str:
        try:
            done = subprocess.run(["git", *argv], cwd=ROOT, capture_output=True, text=True)
        except OSError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    revision = asked("rev-parse", "HEAD")
    return f"{revision}-changed" if revision and asked("status", "--porcelain", "--untracked-files=no") else revision


def checked(sources: Iterator[Source]) -> Iterator[Source]:
    """The same, once each; raises UsageError for a name that a bundle may not hold."""
    seen = set()
    for source in sources:
        if wrong := name_problem(source.name):
            raise UsageError(
                f"{source.content if isinstance(source.content, Path) else NAME}: as {source.name!r} in a bundle, it {wrong}"
            )
        if source.name not in seen:
            seen.add(source.name)
            yield source


def _plain(file: Path) -> Path:
    if not stat.S_ISREG(file.lstat().st_mode):
        raise UsageError(f"{file}: not a plain file; a bundle holds only those; move it away")
    return file
