# SPDX-License-Identifier: Apache-2.0
"""Runs on a Kubernetes cluster with Dask's operator, whose API is stood in for (tests/kubernetes_lab.py): what is asked of it fits the
operator's definition, the run is that of the local engine, and the cluster goes with the command."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from base.paths import ROOT
from hosts.virtual.launch import GuestKernel
from tests import kept_results, kubernetes_lab, lab

pytestmark = pytest.mark.network  # the extra `kubernetes`, once
IMAGE = "registry.example/warpbed:1"


def entered(*words: str | Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The entry script as a user starts it: the development environment has no package of Kubernetes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WARPBED_DEV", "PYTHON"))}
    return subprocess.run(
        [ROOT / "warpbed", *words], env={**kept, **(environment or {})}, capture_output=True, text=True, check=False
    )


@pytest.fixture
def cluster(tmp_path: Path) -> kubernetes_lab.Cluster:
    where = "import pathlib, dask_kubernetes; print(pathlib.Path(dask_kubernetes.__file__).parent)"
    found = entered("exec", "python", "-c", where, environment={"WARPBED_EXTRAS": "kubernetes"})
    assert found.returncode == 0, found.stderr
    (tmp_path / "kube").mkdir()
    definition = Path(found.stdout.strip()) / "operator/deployment/helm/dask-kubernetes-operator/crds/daskcluster.yaml"
    return kubernetes_lab.Cluster(tmp_path / "kube", definition)


def execute(config: Path, tmp_path: Path, *, answers: str = "300s", **more: Any) -> subprocess.CompletedProcess[str]:
    """answers: how long a scheduler may take to answer; more: further keys of Dask's configuration of Kubernetes"""
    (tmp_path / "dask").mkdir()
    (tmp_path / "dask/kubernetes.yaml").write_text(json.dumps({"kubernetes": {
        "name": "warpbed-test", "image": IMAGE, "scheduler-service-type": "NodePort", "env": {"FROM": "configuration"},
        "worker-command": ["dask-worker", "--nthreads", "1"], **more,
    }, "distributed": {"comm": {"timeouts": {"connect": answers}}}}))  # fmt: skip
    return entered(
        "execute", lab.write(tmp_path, lab.SMALL), "--engine", "dask", "--cluster", "kubernetes", "--workers", "2",
        "--results", tmp_path / "runs",
        environment={"KUBECONFIG": str(config), "DASK_CONFIG": str(tmp_path / "dask")},
    )  # fmt: skip


def test_runs_are_made_by_the_workers_that_the_operator_starts(
    kernel: GuestKernel, cluster: kubernetes_lab.Cluster, tmp_path: Path
) -> None:
    (tmp_path / "alone").mkdir()
    alone = kept_results.results(tmp_path / "alone", lab.SMALL)
    with kubernetes_lab.serving(cluster) as config:
        done = execute(config, tmp_path)
        assert done.returncode == 0, done.stderr
    (manifest,) = cluster.created
    assert manifest["kind"] == "DaskCluster" and manifest["metadata"]["name"] == "warpbed-test"
    assert manifest["spec"]["worker"]["replicas"] == 2
    for part in ("worker", "scheduler"):
        (container,) = manifest["spec"][part]["spec"]["containers"]
        assert container["image"] == IMAGE
        variables = {one["name"]: one["value"] for one in container["env"]}
        assert variables == {"FROM": "configuration", "DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "2"}
    assert cluster.deleted == ["warpbed-test"], "the cluster ends with the command"
    (run,), (same,) = lab.runs(tmp_path / "runs/small"), lab.runs(alone)
    assert (run["run"], lab.digests(run["path"])) == (same["run"], lab.digests(same["path"]))


def test_a_cluster_without_the_operator_is_one_clear_error(
    kernel: GuestKernel, cluster: kubernetes_lab.Cluster, tmp_path: Path
) -> None:
    cluster.with_operator = False
    with kubernetes_lab.serving(cluster) as config:
        done = execute(config, tmp_path)
    assert done.returncode == 2 and "--cluster kubernetes: " in done.stderr and "needs Dask's operator" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_scheduler_that_dies_before_it_answers_is_not_waited_for_without_end(
    kernel: GuestKernel, cluster: kubernetes_lab.Cluster, tmp_path: Path
) -> None:
    cluster.scheduler_dies = True
    with kubernetes_lab.serving(cluster) as config:
        done = execute(config, tmp_path, answers="5s", **{"resource-timeout": 5})
    assert done.returncode == 2 and "--cluster kubernetes: TimeoutError: " in done.stderr
    # on a machine that is slow enough the resources take longer than that
    assert "its scheduler did not answer within 20 s" in done.stderr or "after 5 s" in done.stderr
    assert "Traceback" not in done.stderr
    assert cluster.deleted == ["warpbed-test"], "what was begun goes with the command"
