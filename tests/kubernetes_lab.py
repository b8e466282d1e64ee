# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a Kubernetes API server whose cluster has Dask's operator: what dask-kubernetes asks of them, and no more.

The resource that makes a cluster is checked with the schema that Dask's operator installs in a real one (its custom resource definition,
which comes with dask-kubernetes). Then its containers' programs run as processes of this machine, with the variables that the
operator gives them; a scheduler's port is a node port.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ruamel.yaml import YAML

from base.linux import die_with_parent
from tests.waiting import wait_until

DASK = "/apis/kubernetes.dask.org/v1"
RUNNING = {
    "phase": "Running",
    "conditions": [
        {"type": name, "status": "True"} for name in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ],
}
PROGRAMS = {"dask-scheduler": "dask_scheduler", "dask-worker": "dask_worker"}


@dataclass
class Cluster:
    """What the server has. resources: path → resource; created: the manifests that came, as they came"""

    folder: Path
    definition: Path
    with_operator: bool = True
    scheduler_dies: bool = False
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    starter: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    """The thread whose children the containers are: they end with it, and a request's thread ends with its connection."""

    def __post_init__(self) -> None:
        self.resources["/api/v1/nodes/n"] = resource(
            "Node", "v1", "n", status={"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]}
        )

    def create(self, manifest: dict[str, Any]) -> None:
        """As the operator does with a DaskCluster: a scheduler with its service, and the workers of the default group."""
        version = YAML(typ="safe").load(self.definition)["spec"]["versions"][0]
        importlib.import_module("jsonschema").validate(pruned(manifest), version["schema"]["openAPIV3Schema"])
        self.created.append(manifest)
        name, place = manifest["metadata"]["name"], f"/api/v1/namespaces/{manifest['metadata']['namespace']}"
        dask = place.replace("/api/v1", DASK)
        labels = {"dask.org/cluster-name": name, "dask.org/component": "scheduler"}
        port = self._scheduler(manifest["spec"]["scheduler"]["spec"]["containers"][0])
        service = manifest["spec"]["scheduler"]["service"]
        ports = [{**one, "nodePort": port} for one in service["ports"]]
        self.resources[f"{place}/services/{name}-scheduler"] = resource(
            "Service", "v1", f"{name}-scheduler", labels, spec={**service, "ports": ports, "clusterIP": "192.0.2.1"}
        )
        self.resources[f"{place}/pods/{name}-scheduler"] = resource(
            "Pod", "v1", f"{name}-scheduler", labels, status=RUNNING
        )
        workers = manifest["spec"]["worker"]
        for number in range(workers["replicas"]):
            self._worker(workers["spec"]["containers"][0], f"{name}-default-worker-{number}", port)
        self.resources[f"{dask}/daskclusters/{name}"] = {
            **manifest,
            "metadata": {**manifest["metadata"], "uid": name},
            "status": {"phase": "Running"},
        }

    def _scheduler(self, container: Mapping[str, Any]) -> int:
        file = self.folder / "scheduler.json"
        self._start(container, ["--port", "0", "--scheduler-file", str(file), "--no-dashboard"], {})
        wait_until(lambda: file.exists() and file.read_text().endswith("}"), 300, while_running=self.processes[-1])
        if self.scheduler_dies:
            self.processes[-1].kill()
        return int(json.loads(file.read_text())["address"].rpartition(":")[2])

    def _worker(self, container: Mapping[str, Any], name: str, port: int) -> None:
        given = {"DASK_WORKER_NAME": name, "DASK_SCHEDULER_ADDRESS": f"tcp://127.0.0.1:{port}"}
        self._start(container, ["--local-directory", str(self.folder), "--dashboard-address", ":0"], given)

    def _start(self, container: Mapping[str, Any], more: list[str], given: Mapping[str, str]) -> None:
        variables = {**{one["name"]: one["value"] for one in container["env"] or []}, **given}
        program, *words = [
            re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], word) for word in container["args"]
        ]
        line = [sys.executable, "-P", "-m", f"distributed.cli.{PROGRAMS[program]}", *words, *more]
        started = self.starter.submit(
            subprocess.Popen,
            line,
            env={**os.environ, **variables},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
        self.processes.append(started.result())

    def delete(self, path: str) -> None:
        self.deleted.append(path.rpartition("/")[2])
        del self.resources[path]
        self.end()

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.starter.shutdown()


def resource(
    kind: str, version: str, name: str, labels: Mapping[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": dict(labels or {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def pruned(document: Any) -> Any:
    """Without nulls, which an API server takes out of fields that may not be null before it looks at them."""
    if isinstance(document, dict):
        return {key: pruned(value) for key, value in document.items() if value is not None}
    return [pruned(one) for one in document] if isinstance(document, list) else document


def selected(found: Mapping[str, Any], query: Mapping[str, list[str]]) -> bool:
    """Whether a resource is one of those that a list's selectors mean."""
    words = [
        word for name in ("fieldSelector", "labelSelector") for word in query.get(name, [""])[0].split(",") if word
    ]
    for word in words:
        key, _, value = word.partition("=")
        there: Any = found["metadata"]["labels"].get(key) if "/" in key else found
        for part in [] if "/" in key else key.split("."):
            there = there.get(part, {})
        if there != value.lstrip("="):
            return False
    return True


def kind(name: str, namespaced: bool) -> dict[str, Any]:
    """A kind of resources, as a server lists those that it knows."""
    word = name.lower()
    return {"name": f"{word}s", "singularName": word, "kind": name, "namespaced": namespaced, "shortNames": []}


def handler(cluster: Cluster) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = (
            "HTTP/1.0"  # a connection, and so a thread, per request, as for a client that was idle for long
        )

        def log_message(self, *words: object) -> None:
            with (cluster.folder / "asked.log").open("a") as log:
                log.write(f"{self.command} {self.path} {words}\n")

        def _say(self, code: int, document: Mapping[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _answer(self, work: Callable[[str, Mapping[str, list[str]]], Mapping[str, Any] | None]) -> None:
            asked = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            self.body = json.loads(self.rfile.read(length) or b"{}")
            found = work(asked.path.rstrip("/"), parse_qs(asked.query))
            nothing = {"kind": "Status", "status": "Failure", "code": 404, "message": f"{asked.path} not found"}
            self._say(404 if found is None else 200, nothing if found is None else found)

        def do_GET(self) -> None:
            self._answer(self._get)

        def do_POST(self) -> None:
            self._answer(self._post)

        def do_DELETE(self) -> None:
            self._answer(self._delete)

        def _get(self, path: str, query: Mapping[str, list[str]]) -> Mapping[str, Any] | None:
            if path == "/version":
                return {"gitVersion": "v1.33.0", "major": "1", "minor": "33"}
            if path == "/api":
                return {"versions": ["v1"]}
            if path == "/apis":
                return {"groups": []}
            if path == "/api/v1":
                return {"resources": [kind(name, name != "Node") for name in ("Node", "Pod", "Service")]}
            if path in cluster.resources:
                return cluster.resources[path]
            if path.startswith(DASK) and not cluster.with_operator:
                return None
            items = [
                one
                for place, one in cluster.resources.items()
                if place.rpartition("/")[0] == path and selected(one, query)
            ]
            return {"items": items} if re.search(r"/[a-z]+s$", path) else None

        def _post(self, path: str, query: Mapping[str, list[str]]) -> Mapping[str, Any] | None:
            if not path.endswith("/daskclusters") or not cluster.with_operator:
                return None
            cluster.create(self.body)
            return cluster.resources[f"{path}/{self.body['metadata']['name']}"]

        def _delete(self, path: str, query: Mapping[str, list[str]]) -> Mapping[str, Any] | None:
            if path not in cluster.resources:
                return None
            cluster.delete(path)
            return {"kind": "Status", "status": "Success"}

    return Handler


@contextmanager
def serving(cluster: Cluster) -> Iterator[Path]:
    """The server; gives the file that KUBECONFIG names."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(cluster))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    file = cluster.folder / "kubeconfig"
    file.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "default"}}],
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
            }
        )
    )
    try:
        yield file
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        cluster.end()
