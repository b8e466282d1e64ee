# SPDX-License-Identifier: Apache-2.0
"""What the commands of testbed.cli do."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from analysis import metrics as metric_registry
from analysis.errors import AnalysisError
from analysis.expectations import check_all
from analysis.report import write_report
from analysis.results import Run as ResultRun
from analysis.results import load_experiment
from analysis.table import Style, as_csv, as_json, render
from testbed import ansible
from testbed.cache import ROOT
from testbed.errors import UsageError, WarpbedError
from testbed.experiments import Prepared, prepare
from testbed.progress import Progress
from testbed.results import Results
from testbed.runner import Job, Runner
from testbed.selection import select
from testbed.spec.load import load
from testbed.spec.model import Experiment
from testbed.spec.names import algorithms, nearest, project_ccas
from testbed.virtual.kernel import DEFAULT_SERIES, find
from topologies import registry

HOSTS = {"virtual": "a User-Mode-Linux guest in virtual time on this machine"}


def run(options: argparse.Namespace) -> int:
    """Check the file, then hand over to playbooks/run_experiment.yml."""
    _select(_prepared(options), options)
    variables = {
        "experiment": str(options.experiment.resolve()), "experiment_jobs": options.jobs, "experiment_only": options.only,
        "experiment_seed": options.seed, "experiment_results": str(options.results.resolve()),
    }
    return ansible.play("run_experiment.yml", variables)


def execute(options: argparse.Namespace) -> int:
    """Execute what is missing in this process; a pipe as standard input is the sign to stop when it ends."""
    prepared = _prepared(options)
    kernel = find(prepared.experiment.kernel)
    results = Results(options.results.resolve(), prepared.experiment.name)
    jobs = [
        Job(run, plan, run.run_id("virtual", kernel.key))
        for run, plan in zip(prepared.runs, prepared.plans, strict=True)
    ]
    chosen = {id(run) for run in _select(prepared, options)}
    jobs = list({job.run_id: job for job in jobs if id(job.run) in chosen}.values())
    missing = [job for job in jobs if not results.is_complete(job.run_id)]
    progress = Progress(len(missing), sum(j.plan.duration_s for j in missing), sys.stdout, _terminal())
    runner = Runner(results, kernel, options.jobs or None, progress.event)
    _stop_on_signals(runner)
    try:
        summary = runner.run_all(jobs)
    finally:
        progress.close()
    if summary.cancelled:
        raise WarpbedError(f"interrupted; {len(summary.done) + summary.present} of {len(jobs)} runs are there, the same command goes on")
    if not summary.done and not summary.failed:
        print(f"nothing to do: all {len(jobs)} runs are there")
    return _conclude(results.folder, [job.run_id for job in jobs], prepared) or (1 if summary.failed else 0)


def _conclude(folder: Path, run_ids: list[str], prepared: Prepared) -> int:
    """Print the table, the expectations and the report's path; 1 where an expectation does not hold."""
    runs = load_experiment(folder, run_ids)
    print(render(runs, Style.of_terminal()), end="")
    code = _expectations(runs, prepared)
    print(f"report: {write_report(folder, names=_run_ids(prepared))}")
    return code


def _run_ids(prepared: Prepared) -> list[str]:
    """Ids of all runs of the file as it is now, in the sweep's order."""
    build = find(prepared.experiment.kernel).key
    return list(dict.fromkeys(run.run_id("virtual", build) for run in prepared.runs))


def _expectations(runs: Sequence[ResultRun], prepared: Prepared) -> int:
    code = 0
    claims = [e.model_dump(exclude_none=True) for e in prepared.experiment.expectations]
    for finding in check_all(claims, runs):
        claim = finding.expectation
        where = ", ".join(f"{name}={value}" for name, value in claim.where.items())
        print(f"{finding.outcome}: {claim.metric} {claim.bound}{f' where {where}' if where else ''}"
              f"{f' ({finding.reason})' if finding.reason else ''}{f' [{claim.source}]' if claim.source else ''}")
        if finding.outcome != "holds":
            code = 1
    return code


def _prepared(options: argparse.Namespace) -> Prepared:
    if options.jobs < 0 or options.seed < 0:
        raise UsageError("--jobs and --seed take numbers from 1 on (0: the default)")
    prepared = prepare(options.experiment, options.seed or None)
    host = options.host or prepared.experiment.host
    if host not in HOSTS:
        raise UsageError(f"host {host!r} is not built into this version; allowed: {', '.join(HOSTS)}")
    if prepared.errors:
        raise UsageError("\n".join(f"{options.experiment}: {f.rule}: {f.message}" for f in prepared.errors))
    return prepared


def _select(prepared: Prepared, options: argparse.Namespace) -> list[object]:
    chosen = select(prepared.runs, options.only)
    if not chosen:
        raise UsageError(f"--only {options.only}: no run is left")
    return list(chosen)


def _stop_on_signals(runner: Runner) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: runner.cancel())
    if os.environ.get("WARPBED_STOP_AT_EOF") == "1":

        def wait() -> None:
            while os.read(sys.stdin.fileno(), 4096):  # unbuffered: a lock held at exit would abort the interpreter
                pass
            runner.cancel()

        threading.Thread(target=wait, daemon=True).start()


def _terminal() -> str | None:
    if named := os.environ.get("WARPBED_TERMINAL"):
        return named
    return os.ttyname(sys.stderr.fileno()) if sys.stderr.isatty() and sys.stdout.isatty() else None


def check(options: argparse.Namespace) -> int:
    """Validate and lint; 1 where a fidelity rule of severity error is broken."""
    prepared = prepare(options.experiment)
    if options.kernel:
        print(DEFAULT_SERIES if prepared.experiment.kernel == "default" else prepared.experiment.kernel)
        return 0
    for finding in prepared.findings:
        if not options.quiet or finding.severity == "error":
            print(f"{options.experiment}: {finding.severity}: {finding.rule}: {finding.message}")
    if not options.quiet:
        cells = len({run.experiment.model_dump_json() for run in prepared.runs})
        print(f"{options.experiment}: {len(prepared.runs)} runs ({cells} combinations), {'not ' if prepared.errors else ''}ready to run")
    return 1 if prepared.errors else 0


def listing(options: argparse.Namespace) -> int:
    """Print what there is, a line each."""
    if options.what == "experiments":
        for path in sorted((ROOT / "experiments").rglob("*.yml")):
            print(f"{path.relative_to(ROOT)}: {load(path)[0].title}")
    elif options.what == "algorithms":
        own = project_ccas()
        for name in algorithms():
            print(f"{name}: {'module ' + str(own[name].relative_to(ROOT)) if name in own else 'the kernel’s own'}")
    elif options.what == "topologies":
        for name in registry.names():
            words = (registry.load(name).__doc__ or "").strip().splitlines()[0]
            print(f"{name}: {words} Parameters: {', '.join(registry.parameter_names(name))}")
    elif options.what == "metrics":
        for name, metric in sorted(metric_registry.REGISTRY.items()):
            print(f"{name} [{metric.unit or '1'}]: {metric.description}")
    else:
        for name, words in HOSTS.items():
            print(f"{name}: {words}")
    return 0


def collect(options: argparse.Namespace) -> int:
    """Make records, metrics and verdicts again, of one run or of all runs of an experiment."""
    from testbed.finish import finish

    path: Path = options.path
    folders = [path] if (path / "run.json").is_file() else sorted(file.parent for file in path.glob("*/run.json"))
    folders = [folder for folder in folders if ".failed-" not in folder.name]
    if not folders:
        raise UsageError(f"{path}: neither a run's folder nor an experiment's with complete runs")
    for folder in folders:
        finish(folder)
        print(folder)
    return 0


def _results_of(options: argparse.Namespace) -> tuple[Path, list[str] | None]:
    """Folder of an experiment's results, and the ids that count: those of the file as it is now where a file is
    given, all that are there where a name is given (None)."""
    path = Path(options.experiment)
    if path.suffix in (".yml", ".yaml"):
        prepared = prepare(path)
        folder, names = options.results / prepared.experiment.name, _run_ids(prepared)
    else:
        folder, names = options.results / options.experiment, None
    if not folder.is_dir():
        known = [entry.name for entry in options.results.glob("*") if entry.is_dir() and not entry.name.startswith(".")]
        raise UsageError(f"{folder}: no results; {nearest(folder.name, known)}; ./warpbed run makes them")
    return folder, names


def metrics(options: argparse.Namespace) -> int:
    """Print the metrics of all runs."""
    folder, names = _results_of(options)
    runs = load_experiment(folder, names)
    if options.format == "json":
        text = as_json(runs)
    elif options.format == "csv":
        text = as_csv(runs)
    else:
        text = render(runs, Style.of_terminal())
    print(text, end="" if text.endswith("\n") else "\n")
    return 0


def report(options: argparse.Namespace) -> int:
    folder, names = _results_of(options)
    try:
        print(f"report: {write_report(folder, names=names)}")
    except AnalysisError as error:
        raise WarpbedError(str(error)) from error
    return 0


def compare(options: argparse.Namespace) -> int:
    """Expectations against measurements; 1 where one does not hold."""
    folder, names = _results_of(options)
    return _expectations(load_experiment(folder, names), prepare(Path(options.experiment)))


def build_kernels(options: argparse.Namespace) -> int:
    series = DEFAULT_SERIES if options.series == "default" else options.series
    variables: dict[str, object] = {"kernel_build_series": series}
    if options.source is not None:
        variables["kernel_build_source"] = str(options.source.resolve())
    return ansible.play("build_kernels.yml", variables, failed_early=1)


def schema(options: argparse.Namespace) -> int:
    """The JSON Schema; with --check, 1 where the one in docs/ differs."""
    text = json.dumps(Experiment.model_json_schema(by_alias=True), indent=1, sort_keys=True) + "\n"
    file = ROOT / "docs/experiment.schema.json"
    if options.check:
        if file.read_text() != text:
            raise WarpbedError(f"{file} is out of date; ./warpbed schema > docs/experiment.schema.json")
        return 0
    print(text, end="")
    return 0


def test(options: argparse.Namespace) -> int:
    return test_with(options.arguments)


def test_with(arguments: list[str]) -> int:
    """Install what tests need, build the kernel, then run pytest."""
    code = ansible.play("test_environment.yml", {"kernel_build_series": DEFAULT_SERIES}, failed_early=1)
    if code:
        return code
    workers = [] if arguments else ["--numprocesses", str(len(os.sched_getaffinity(0))), "--dist", "worksteal"]
    command = [sys.executable, "-P", "-m", "pytest", *workers, *arguments]
    os.chdir(ROOT)
    return os.execv(command[0], command)
