# SPDX-License-Identifier: Apache-2.0
"""`./warpbed rerun`: check a bundle, make its runs again, and say for each figure whether it is the same."""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import integrity
from analysis.results import Run, load_run
from base import quantities
from base.errors import SpecError, UsageError
from base.paths import ROOT
from base.screen import print_table
from base.small_files import small_json
from base.text import clean
from base.watcher import remove_folder, watching
from hosts.registry import HOST_KINDS
from testbed.captures import BULKY
from testbed.commands import run as run_command
from testbed.commands.arguments import host
from testbed.commands.output import add_format, render, spoken_aside
from testbed.commands.prepared import answered_ids
from testbed.experiments import Prepared, prepare
from testbed.identity import userland_changes
from testbed.reproduction.costs import of_plans
from testbed.results import Results
from testbed.selection import select

if TYPE_CHECKING:
    from testbed.bundle.manifest import Manifest, Recorded
    from testbed.bundle.same import Row

HELP = "check a bundle, make its runs again, and say for each figure whether it is the same"
RERUNS = ".reruns"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("bundle", type=Path, help="an archive of ./warpbed bundle, whoever made it")
    command.add_argument("--no-run", action="store_true", help="only check it: names, sizes, digests, experiment files")
    command.add_argument("--only", default="", metavar="EXPR", help="only these runs, e.g. cca=medley,buffer=50p|250p")
    command.add_argument("--jobs", type=int, default=0, metavar="N", help="runs in parallel (default: one per CPU)")
    command.add_argument("--limit", default="20GB", metavar="SIZE", help="most that it may unpack to (default: 20GB)")
    command.add_argument(
        "--results",
        type=Path,
        metavar="DIR",
        help=f"where the new runs go (default: results/{RERUNS}/<the bundle's digest>)",
    )
    host(command)
    add_format(command)


def main(options: argparse.Namespace) -> int:
    """0: every figure is the same; 1: one differs, or a run failed; 2: the bundle cannot be used."""
    from testbed.bundle.unpack import unpack  # which not every command needs

    try:
        limit = quantities.size_bytes(options.limit)
    except ValueError as error:
        raise UsageError(f"--limit {options.limit}: {error}") from error
    with _folder() as folder, spoken_aside(options.format):
        manifest = unpack(options.bundle, folder, limit)
        prepared = {one.name: _checked(folder, one, options) for one in manifest.experiments}
        recorded = {one.name: _recorded(folder, one) for one in manifest.experiments}
        _tell(manifest, prepared)
        if options.no_run:
            return 0
        base = options.results or ROOT / "results" / RERUNS / _digest(options.bundle)[:16]
        rows: list[Row] = []
        failed = False
        for one in manifest.experiments:
            more, wrong = _again(one, prepared[one.name], recorded[one.name], base.resolve(), options)
            rows += more
            failed = failed or wrong
        print(f"new runs: {base}")
    print_table(render([asdict(row) for row in rows], options.format))
    return 1 if failed or any(row.outcome != "same" for row in rows) else 0


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder for the unpacked bundle, which goes with this process however it ends."""
    folder = Path(tempfile.mkdtemp(prefix="warpbed-bundle-"))
    with watching(remove_folder, str(folder), quiet=True):
        yield folder


def _checked(folder: Path, one: Recorded, options: argparse.Namespace) -> Prepared:
    """A bundle's experiment file, validated as any other, and allowed to run here."""
    kind = options.host or one.host
    if options.host is None and kind != "virtual":
        raise UsageError(
            f"{one.file}: was made on host {one.host}; a stranger's bundle runs there only with --host {one.host}"
        )
    if kind not in HOST_KINDS:
        raise UsageError(f"{one.file}: host {kind!r} is not built into this version; allowed: {', '.join(HOST_KINDS)}")
    try:
        prepared = prepare(folder / one.file, host=kind)
    except SpecError as error:
        raise UsageError(*(str(problem).replace(f"{folder}/", "") for problem in error.problems)) from error
    if prepared.experiment.name != one.name:
        raise UsageError(f"{one.file}: is experiment {prepared.experiment.name}, not {one.name} as the bundle says")
    if options.host is None and prepared.experiment.host != one.host:
        raise UsageError(f"{one.file}: asks for host {prepared.experiment.host}, the bundle says {one.host}")
    if prepared.errors:
        raise UsageError(*(f"{one.file}: {finding.rule}: {finding.message}" for finding in prepared.errors))
    return prepared


def _recorded(folder: Path, one: Recorded) -> tuple[Run, ...]:
    """The runs of the bundle; raises UsageError for one that is not complete, or whose files are not those that it lists."""
    runs = []
    for name in one.runs:
        place = folder / "results" / one.name / name
        run = load_run(place)
        if not run.complete:
            raise UsageError(
                f"results/{one.name}/{name}: {run.error or run.status}; a bundle holds complete runs only".replace(
                    f"{folder}/", ""
                )
            )
        document = small_json(place / "run.json")
        wrong = integrity.problems(place, document, may_lack=BULKY)
        if wrong:
            raise UsageError(integrity.said(Path("results", one.name, name), wrong, "ask who made the bundle"))
        runs.append(run)
    return tuple(runs)


def _tell(manifest: Manifest, prepared: Mapping[str, Prepared]) -> None:
    print(clean(f"{manifest.title}: {len(manifest.files)} files are what the bundle says"))
    print(clean(f"made by Warpbed {manifest.version}{f', commit {manifest.commit}' if manifest.commit else ''}"))
    for one in manifest.experiments:
        asked = prepared[one.name]
        cost = of_plans(asked.plans, asked.experiment.captures.keep)
        print(clean(f"{one.file}: {len(one.runs)} runs recorded; the file asks for {cost.words(1)}"))


def _again(
    one: Recorded, prepared: Prepared, recorded: Sequence[Run], base: Path, options: argparse.Namespace
) -> tuple[list[Row], bool]:
    """Make an experiment's runs again; what became of each figure, and whether a run failed."""
    from testbed.bundle.same import compare

    file = Path(prepared.document.file)
    code = run_command.of_file(file, options, host=options.host, only=options.only, results=base)
    store = Results(base, prepared.experiment.name)
    if code == 2 or not store.folder.is_dir():
        raise UsageError(f"{one.file}: nothing was run; the reason is above")
    kind = options.host or prepared.experiment.host
    ids = answered_ids(prepared, kind, store)
    repeated = [load_run(store.folder / name) for name in ids if (store.folder / name).is_dir()]
    chosen = {(repr(run.params), run.seed) for run in select(prepared.runs, options.only)}
    wanted = [run for run in recorded if not options.only or (repr(dict(run.params)), run.seed) in chosen]
    for line in _machines(wanted, repeated):
        print(clean(f"{one.name}: {line}"))
    rows = compare(wanted, repeated)
    return rows, any(row.outcome == "not made" for row in rows)


def _machines(recorded: Sequence[Run], repeated: Sequence[Run]) -> list[str]:
    """What decides packets and is not the same here, a line each."""
    if not recorded or not repeated:
        return []
    then, now = dict(recorded[0].inputs), dict(repeated[0].inputs)
    lines = (
        []
        if then.get("kernel") == now.get("kernel")
        else [f"kernel {then.get('kernel')} there, {now.get('kernel')} here"]
    )
    lines += [
        f"module {name}: {_text(then, name)} there, {_text(now, name)} here"
        for name in sorted({*_modules(then), *_modules(now)})
        if _text(then, name) != _text(now, name)
    ]
    lines += [f"program {change}" for change in userland_changes(then.get("userland") or {}, now.get("userland") or {})]
    return lines or ["kernel, modules and programs are the same"]


def _modules(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    modules = inputs.get("modules")
    return modules if isinstance(modules, dict) else {}


def _text(inputs: Mapping[str, Any], name: str) -> str:
    return str(_modules(inputs).get(name, "none"))


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
