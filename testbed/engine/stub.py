# SPDX-License-Identifier: Apache-2.0
"""What a Dask worker executes for a run: it finds or fetches the code, takes a CPU, and starts a process that makes the run.

This file goes to workers with the task (cloudpickle, by value), so it uses the standard library, Dask and fsspec only, and
imports inside functions.
"""

from __future__ import annotations

from typing import Any

ANSWER = "answer"
"""The event that carries a task's answer to the client."""
EVENT_S = 5.0
"""Progress of a run is told at most so often: a thousand workers share one scheduler."""


def called(program: bytes, order: bytes) -> Any:
    """What a task is: both come as bytes, which neither the client's Dask nor the scheduler looks into."""
    import pickle

    return pickle.loads(program)(pickle.loads(order))  # noqa: S301 (from the client, whose word a worker executes anyway)


def run_task(order: dict[str, Any]) -> dict[str, Any]:
    """Make one run; returns {run, status, message, worker, wall_s, entry}.

    status: "done"; "failed", the run gave no result here; "lacking", this worker cannot make any run; "stopped", told to end
    order: run, session, key of the task, payload (for testbed.engine.worker), root and python of the client, code (store mode),
        results and token (where workers share a file system with the client), venv, bytes of memory, topic for events
    """
    import errno
    import os
    import socket
    import time

    from distributed import get_worker

    worker: Any = get_worker()
    who = f"{worker.name} on {socket.gethostname()}"
    began = time.monotonic()

    def answer(status: str, message: str = "", entry: object = None) -> dict[str, Any]:
        said = {
            "run": order["run"], "status": status, "message": message, "worker": who, "address": worker.address,
            "wall_s": time.monotonic() - began, "entry": entry,
        }  # fmt: skip
        worker.log_event(order["topic"], {"event": ANSWER, "task": order["task"], "answer": said})
        return said

    if not hasattr(worker, "warpbed_processes"):
        worker.warpbed_processes, worker.warpbed_stopped = {}, set()
    results = order.get("results")
    if results and not os.path.exists(os.path.join(results, f".engine-{order['token']}")):
        return answer("lacking", f"{results} is not the client's folder of results here; mount it, or give --store URL")
    try:
        command, environment = _program(order)
    except Exception as error:  # noqa: BLE001 — whatever it is, this worker cannot make runs, and the client has to hear of it
        return answer("lacking", f"{type(error).__name__}: {error}")
    cpu = _free_cpu(lambda: order["session"] in worker.warpbed_stopped, order["memory_bytes"])
    if isinstance(cpu, str):
        return answer("stopped" if not cpu else "lacking", cpu)
    try:
        return answer(*_followed(worker, order, command, environment, cpu[0], who))
    except OSError as error:
        lacks = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
        return answer("lacking" if lacks else "failed", f"{type(error).__name__}: {error}")
    finally:
        os.close(cpu[1])


def stop_session(session: str, dask_worker: Any = None) -> int:
    """End what a client's session runs on this worker; returns how many processes were told to."""
    if not hasattr(dask_worker, "warpbed_processes"):
        return 0
    dask_worker.warpbed_stopped.add(session)
    there = list(dask_worker.warpbed_processes.get(session, ()))
    for process in there:
        try:
            process.stdin.close()  # which is its sign to end
        except OSError:
            pass
    return len(there)


def _program(order: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """How the process of a run is started: by this very environment, by the client's where it is seen here, or by the entry script."""
    import os
    import sys

    root = order["root"] if order.get("results") else _code(order["code"])
    if not os.path.exists(os.path.join(root, "testbed", "engine", "worker.py")):
        raise FileNotFoundError(f"{root}: the client's checkout is not visible here; mount it, or give --store URL")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
    environment.update(PYTHONPATH=root, PYTHONUNBUFFERED="1", LC_ALL="C.UTF-8")
    for python in (sys.executable, order["python"]):
        venv = os.path.dirname(os.path.dirname(python))
        if (
            os.path.basename(venv) == order["venv"]
            and os.path.exists(os.path.join(venv, ".complete"))
            and os.path.exists(python)
        ):
            environment["PATH"] = f"{os.path.dirname(python)}:{environment.get('PATH', '/usr/bin:/bin')}"
            return [python, "-P", "-m", "testbed.engine.worker"], environment
    environment["WARPBED_EXTRAS"] = "dask"
    return [os.path.join(root, "warpbed"), "exec", "python", "-P", "-m", "testbed.engine.worker"], environment


def _code(code: dict[str, Any]) -> str:
    """The folder of the project's code, fetched by its digest where it is not in this worker's cache."""
    import fcntl
    import hashlib
    import os
    import shutil
    import tarfile

    import fsspec

    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    cache = os.environ.get("WARPBED_CACHE") or os.path.join(home, "warpbed")
    final = os.path.join(cache, "engine", code["sha256"][:32])
    if os.path.exists(final):
        return final
    os.makedirs(os.path.dirname(final), exist_ok=True)
    with open(f"{final}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(final):
            work = f"{final}.aside"
            shutil.rmtree(work, ignore_errors=True)
            os.makedirs(work)
            system, path = code["system"], code["path"]
            if isinstance(system, str):
                system, path = fsspec.core.url_to_fs(path)
            archive = os.path.join(work, ".archive.tar")
            system.get_file(path, archive)
            with open(archive, "rb") as content:
                if (seen := hashlib.file_digest(content, "sha256").hexdigest()) != code["sha256"]:
                    raise ValueError(f"{path}: SHA-256 {seen}, not {code['sha256']}")
            with tarfile.open(archive) as packed:
                packed.extractall(work)  # noqa: S202 (the client's own, by the digest that it gave)
            os.unlink(archive)
            os.rename(work, final)
    return final


def _free_cpu(stopped: Any, memory_bytes: int) -> Any:
    """(CPU, descriptor of its lock): one of this machine's that no other run has, and memory for the guest; waits for both.

    "" where the session was stopped meanwhile, words where it would wait for ever.
    """
    import fcntl
    import os
    import tempfile
    import time

    folder = os.path.join(tempfile.gettempdir(), f"warpbed-cpus-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.stat(folder).st_uid != os.getuid():
        return f"{folder} belongs to somebody else; remove it"
    with open("/proc/meminfo") as file:
        memory = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file}
    if memory["MemTotal"] < memory_bytes:
        return f"the run's guest needs {memory_bytes >> 20} MiB, this machine has {memory['MemTotal'] >> 20} MiB"
    while not stopped():
        with open("/proc/meminfo") as file:
            free = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
        for cpu in sorted(os.sched_getaffinity(0)) if free >= memory_bytes else ():
            lock = os.open(os.path.join(folder, str(cpu)), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            os.set_inheritable(lock, True)  # the run's process holds it too, should this one be killed
            return cpu, lock
        time.sleep(0.2)
    return ""


def _followed(
    worker: Any, order: dict[str, Any], command: list[str], environment: dict[str, str], cpu: int, who: str
) -> tuple[str, str, object]:
    """Start a run's process, hand on its events, and return its last words: status, message, entry of the store."""
    import json
    import os
    import subprocess
    import tempfile
    import time

    last: tuple[str, str, object] | None = None
    reported_s = 0.0
    with tempfile.TemporaryFile() as output:
        process: Any = subprocess.Popen(
            [*command, str(os.getpid()), str(cpu)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output,
            env=environment, cwd="/", close_fds=False,
        )  # fmt: skip
        worker.warpbed_processes.setdefault(order["session"], set()).add(process)
        try:
            try:
                process.stdin.write(len(order["payload"]).to_bytes(8, "big") + order["payload"])
                process.stdin.flush()
            except (OSError, ValueError):
                pass  # its end says why
            for line in process.stdout:
                event = json.loads(line)
                if event["event"] == "result":
                    last = (event["status"], event["message"], event.get("entry"))
                elif event["event"] in ("started", "progress") and (
                    not reported_s or time.monotonic() - reported_s > EVENT_S
                ):
                    reported_s = time.monotonic()
                    worker.log_event(order["topic"], {**event, "worker": who})
            code = process.wait()
        finally:
            worker.warpbed_processes[order["session"]].discard(process)
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stdout.close()
            try:
                process.stdin.close()
            except OSError:
                pass
        output.seek(0)
        said = output.read().decode(errors="replace").strip()
    if last is not None:
        return last
    if order["session"] in worker.warpbed_stopped:
        return "stopped", "", None
    return "failed", f"the run's process ended with {code}: {said[-2000:] or 'no words'}", None
