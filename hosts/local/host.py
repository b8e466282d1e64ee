# SPDX-License-Identifier: Apache-2.0
"""Execute plans with Mininet in real time on this machine, and leave it as it was."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.paths import ROOT
from hosts.base import Execution, Outcome, failure
from hosts.identity import KernelInputs, bpf_versions
from hosts.local import probe
from hosts.local.undo import BusyError, Undo, loaded_modules, undoing
from hosts.realtime import in_real_time, modules_of
from hosts.virtual.console import Console
from hosts.watch import ended, error_of, facts_of, follow
from plan.model import Module, Plan
from schema.model import Experiment

SYSTEM_PYTHON = "/usr/bin/python3"
PREPARE_S = 60.0
TRACING = Path("/sys/kernel/tracing")
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


@dataclass(frozen=True)
class LocalHost:
    """This machine, one run at a time."""

    kind: str = "local"
    one_at_a_time: bool = True

    @property
    def key(self) -> str:
        """The running kernel: its release and build."""
        uname = os.uname()
        return hashlib.sha256(f"{uname.release} {uname.version}".encode()).hexdigest()[:20]

    def inputs(self, plan: Plan) -> KernelInputs:
        return KernelInputs(self.key, bpf_versions(plan))

    @property
    def facts(self) -> dict[str, Any]:
        uname = os.uname()
        return {"key": self.key, "kernel_release": uname.release, "version": uname.version}

    def problems(self, plan: Plan) -> list[str]:
        return probe.problems(plan)

    def execute(self, run: Execution) -> Outcome:
        modules = modules_of(run.plan)
        run = run.of(in_real_time(run.plan, []))
        started = time.monotonic()
        try:
            with undoing() as undo:
                error, console, code = _execute(run, modules, undo)
        except BusyError:
            error = failure("start", "local", "another run is in real time on this machine; wait until it has ended")
            return Outcome(error, {}, time.monotonic() - started, 0.0)
        facts = facts_of(run.folder)
        error = error or error_of(console, facts, code, run.folder / "console.log")
        return Outcome(error, facts, time.monotonic() - started, console.virtual_s)


def open_host(experiment: Experiment) -> LocalHost:
    return LocalHost()


def _execute(run: Execution, modules: Sequence[Module], undo: Undo) -> tuple[dict[str, str] | None, Console, int]:
    """Run the agent; returns why it was stopped, what it said, and its exit code."""
    console = Console()
    with open(run.folder / "console.log", "wb") as log:
        try:
            tracing = _prepare(run.plan, modules, undo)
        except (OSError, subprocess.SubprocessError) as error:
            message = getattr(error, "stderr", "") or str(error)
            return failure("prepare", "local", message.strip()), console, 1
        process = _start(run.folder, tracing)
        try:
            stopped = follow(process, console, log, run)
        finally:
            assert process.stdin is not None
            process.stdin.close()  # the agent ends what it has started and goes; so does that where the agent is killed
            code = ended(process)
            assert process.stdout is not None
            process.stdout.close()
    return stopped, console, code


def _start(folder: Path, tracing: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [SYSTEM_PYTHON, "-B", "-P", "-m", "agent.host", str(folder), str(tracing)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(),
        cwd="/",
    )


def _environment() -> Mapping[str, str]:
    return {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONPATH": str(ROOT),
    }


def _prepare(plan: Plan, modules: Sequence[Module], undo: Undo) -> Path:
    """Load modules, allow the algorithms and make a place for trace events; returns that."""
    undo.add("modules", *loaded_modules())
    for module in modules:
        _load(module)
    ours = {one.cca for one in plan.bpf}  # the agent registers them
    for flow in plan.flows:
        if flow.cca not in ours and flow.cca not in probe.ALGORITHMS.read_text().split():
            _load(Module(f"tcp_{flow.cca}"))
    before = ALLOWED.read_text().split()
    more = [name for name in dict.fromkeys(flow.cca for flow in plan.flows) if name not in (*before, *ours)]
    if more:
        _write(ALLOWED, " ".join([*before, *more]), undo)
    for cca, params in plan.cca_params.items():
        for name, value in params.items():
            _write(Path(f"/sys/module/tcp_{cca}/parameters/{name}"), value, undo)
    if not (TRACING / "instances").is_dir():
        undo.add("umount", str(TRACING))
        _ran("mount", "-t", "tracefs", "tracefs", str(TRACING))
    instance = TRACING / "instances" / f"warpbed-{uuid.uuid4().hex[:8]}"
    undo.add("rmdir", str(instance))
    instance.mkdir()
    return instance


def _write(file: Path, value: str, undo: Undo) -> None:
    undo.add("write", str(file), file.read_text().strip())
    file.write_text(value)


def _load(module: Module) -> None:
    name = module.path.rpartition("/")[2].removesuffix(".ko")
    parameters = [f"{key}={value}" for key, value in module.params.items()]
    if name in loaded_modules():
        raise OSError(f"module {name} is loaded already, perhaps with other parameters; unload it with rmmod {name}")
    _ran("modprobe", name, *parameters)


def _ran(*command: str) -> None:
    """Raises subprocess.SubprocessError where it fails or does not end."""
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=PREPARE_S, stdin=subprocess.DEVNULL)
