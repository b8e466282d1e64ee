# SPDX-License-Identifier: Apache-2.0
"""Queueing systems by dask-jobqueue: scripts are submitted as each system's manual has it, their workers make the runs, and all jobs end.

The systems' commands are stood in for by programs of this test, which read what they are given, say what the systems say, and execute
the script.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from base.errors import UsageError
from hosts.per_kernel import RunHosts
from testbed.engine import clusters, stub
from testbed.engine.conductor import DaskRunner
from testbed.engine.supplies import Supplies
from testbed.results import Results
from tests import sleeping
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@dataclass(frozen=True)
class System:
    """A queueing system: its commands, its words for a job that was taken, and how its scripts ask for queue, time and name."""

    submit: str
    cancel: str
    says: str
    asks: tuple[str, ...]
    by_input: bool = False


SYSTEMS = {
    "slurm": System(
        "sbatch", "scancel", "Submitted batch job $number", ("#SBATCH -p long", "#SBATCH -t 00:20:00", "#SBATCH -J wb")
    ),
    "pbs": System("qsub", "qdel", "$number.server", ("#PBS -q long", "#PBS -l walltime=00:20:00", "#PBS -N wb")),
    "sge": System(
        "qsub",
        "qdel",
        'Your job $number (\\"wb\\") has been submitted',
        ("#$ -q long", "#$ -l h_rt=00:20:00", "#$ -N wb"),
    ),
    "lsf": System(
        "bsub",
        "bkill",
        "Job <$number> is submitted to queue <long>.",
        ("#BSUB -q long", "#BSUB -W 00:20", "#BSUB -J wb"),
        by_input=True,
    ),
}
SUBMIT = """#!/bin/sh
number=$$
{take}
setsid sh {jobs}/$number.sh >{jobs}/$number.log 2>&1 </dev/null &
echo $! >{jobs}/$number.pid
echo "{says}"
"""
CANCEL = """#!/bin/sh
echo "$1" >>{jobs}/cancelled
kill -- -"$(cat {jobs}/"$1".pid)"
"""
CONFIGURATION = """
jobqueue:
  {kind}:
    name: wb
    job-name: wb
    cores: 1
    processes: 1
    memory: 500MB
    queue: long
    walltime: '{walltime}'
    death-timeout: 60
    local-directory: {folder}
    log-directory: {folder}
    job-extra-directives: []
    worker-extra-args: [--no-dashboard]
    scheduler-options: {{host: 127.0.0.1, dashboard_address: null}}
"""


@pytest.fixture(params=SYSTEMS)
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A kind of queue whose commands are this test's, and its part of Dask's configuration in a file."""
    import dask
    import dask_jobqueue  # noqa: F401 (its defaults become part of Dask's configuration)

    system, jobs, commands = SYSTEMS[request.param], tmp_path / "jobs", tmp_path / "commands"
    jobs.mkdir()
    commands.mkdir()
    given = "" if system.by_input else '-- "$1"'
    take = f"cat {given} >{jobs}/$number.sh"
    for name, text in ((system.submit, SUBMIT), (system.cancel, CANCEL)):
        (commands / name).write_text(text.format(take=take, jobs=jobs, says=system.says))
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    (tmp_path / "dask").mkdir()
    walltime = "00:20" if request.param == "lsf" else "00:20:00"
    (tmp_path / "dask/jobqueue.yaml").write_text(
        CONFIGURATION.format(kind=request.param, folder=tmp_path, walltime=walltime)
    )
    read = dask.config.merge(dask.config.config, dask.config.collect(paths=[str(tmp_path / "dask")], env={}))
    with dask.config.set(jobqueue=read["jobqueue"]):
        yield request.param
    for file in jobs.glob("*.pid"):
        try:
            os.killpg(int(file.read_text()), signal.SIGKILL)
        except ProcessLookupError:
            continue


def test_jobs_of_a_queue_make_the_runs_and_end(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stub, "run_task", sleeping.sleeps)
    monkeypatch.setattr(Supplies, "artifacts", lambda self, kernel: ())
    (tmp_path / "results").mkdir()
    host: Any = sleeping.FakeHost()
    results = Results(tmp_path / "results", "small")
    with clusters.client_of("", kind, 2) as client:
        wait_until(lambda: len(client.nthreads()) == 2, 120)
        assert set(client.nthreads().values()) == {1}, "a thread for a core"
        summary = DaskRunner(results, RunHosts(host), client, lambda event: None).run_all(sleeping.jobs(tmp_path))
    assert len(summary.done) == sleeping.RUNS and summary.failed == {}
    assert len(sleeping.begun(tmp_path)) == sleeping.RUNS
    scripts = [file.read_text() for file in (tmp_path / "jobs").glob("*.sh")]
    assert len(scripts) == 2, "two workers are two jobs"
    for script in scripts:
        assert set(SYSTEMS[kind].asks) <= set(script.splitlines()), script
    numbers = sorted(file.stem for file in (tmp_path / "jobs").glob("*.pid"))
    wait_until(lambda: sorted((tmp_path / "jobs/cancelled").read_text().split()) == numbers, 60)
    processes = [Path("/proc") / file.read_text().strip() for file in (tmp_path / "jobs").glob("*.pid")]
    wait_until(lambda: not any(process.exists() for process in processes), 60)


def test_a_queue_that_refuses_a_job_is_one_clear_error(kind: str, tmp_path: Path) -> None:
    command = tmp_path / "commands" / SYSTEMS[kind].submit
    command.write_text("#!/bin/sh\necho 'no such queue: long'\nexit 1\n")
    with (
        pytest.raises(UsageError, match=rf"--cluster {kind}: (?s:.*)non-zero exit code(?s:.*)no such queue"),
        clusters.client_of("", kind, 1),
    ):
        pass
