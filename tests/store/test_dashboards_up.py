# SPDX-License-Identifier: Apache-2.0
"""`./warpbed dashboards`: with a Docker daemon of the tests' own and the database image built here, as no other can be had."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from base.paths import ROOT, cache_dir
from benchmarks import store_lab
from benchmarks.make_results import Case
from tests import lab, plays, recap
from tests.sshhosts import SshHosts, needs_ssh_hosts
from tests.waiting import wait_until

pytestmark = pytest.mark.root
START_TIMEOUT_S = 120
BUSY = "timeout waiting for containerd"
"""What dockerd says, and ends, where its containerd has not answered within 15 s: so on a machine with much to do."""


@pytest.fixture(scope="module")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A daemon in namespaces that end with it, whatever happens to it; its containers use the host's network."""
    if os.geteuid() != 0:
        pytest.skip("starting a Docker daemon needs root")
    for program in ("dockerd", "docker", "mmdebstrap"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    with daemon(tmp_path_factory.mktemp("docker")) as address:
        yield address


@contextmanager
def daemon(folder: Path, *within: str) -> Iterator[str]:
    """A Docker daemon; within: the command that starts it elsewhere, such as in a network namespace.

    The names of its containerd's sockets may have no more than 107 characters, which pytest's folders alone can have.
    """
    address, short = f"unix://{folder}/socket", Path(tempfile.mkdtemp(prefix="warpbed-docker-"))
    command = [*within, "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc",
               "--kill-child=KILL", "dockerd",
               "--data-root", str(folder / "data"), "--exec-root", str(short), "--pidfile", str(folder / "pid"),
               "--host", address, "--bridge", "none", "--iptables=false", "--ip6tables=false"]  # fmt: skip
    process = None
    try:
        until_s, said = time.monotonic() + START_TIMEOUT_S, BUSY
        while BUSY in said and time.monotonic() < until_s:
            with open(folder / "log", "wb") as log:
                process = subprocess.Popen(command, stdout=log, stderr=log)
            if _answers(address, process, until_s - time.monotonic()):
                yield address
                return
            is_late = process.poll() is None
            process.kill()
            process.wait()
            said = " ".join((folder / "log").read_text(errors="replace").splitlines()[-3:])
            assert not is_late, f"dockerd does not answer: {said}"
        assert BUSY not in said, f"dockerd did not start within {START_TIMEOUT_S} s: {said}"
        pytest.skip(f"this machine cannot run a Docker daemon: {said}")
    finally:
        if process:
            process.kill()
            process.wait()
        shutil.rmtree(short, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def _answers(address: str, process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    ask = ["docker", "--host", address, "version"]
    try:
        wait_until(
            lambda: subprocess.run(ask, capture_output=True, check=False).returncode == 0,
            timeout_s, while_running=process, every_s=0.2,
        )  # fmt: skip
    except AssertionError:
        return False
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def warpbed(state: Path, docker: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PGPASSFILE", "WARPBED_DATABASE")}
    environment |= {"WARPBED_STATE": str(state), "DOCKER_HOST": docker, **more}
    return subprocess.run(
        [ROOT / "warpbed", *arguments], capture_output=True, text=True, check=False, env=environment, timeout=500
    )


def containers(docker: str) -> list[str]:
    return subprocess.run(
        ["docker", "--host", docker, "ps", "--all", "--quiet"], capture_output=True, text=True, check=True
    ).stdout.split()


def volumes(docker: str) -> set[str]:
    output = subprocess.run(
        ["docker", "--host", docker, "volume", "ls", "--quiet"], capture_output=True, text=True, check=True
    ).stdout.split()
    return {name for name in output if name.startswith("warpbed")}


def test_up_loads_results_privately_and_down_keeps_them_until_purged(docker: str, tmp_path: Path) -> None:
    results, state, port = (
        store_lab.results(tmp_path / "results", 5.0, (Case("reno", 50, 1), Case("cubic", 50, 1))),
        tmp_path / "state",
        free_port(),
    )
    (results / "report.html").write_text("<p>what came out</p>")
    start = ("dashboards", "up", "--database-only", "--local-image", "--database-port", str(port), "--results")
    done = warpbed(state, docker, *start, str(results))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"postgresql://127.0.0.1:{port}/warpbed" in done.stdout
    assert warpbed(state, docker, "store", "status").stdout.splitlines()[-1].startswith("2 runs")
    recap.assert_changes_nothing(warpbed(state, docker, *start, str(results), **recap.WORDS).stdout)

    files = [
        path
        for path in (state / "dashboards").rglob("*")
        if path.is_file() and not {"json", "provisioning", "reports"} & set(path.parts)
    ]
    (report,) = (state / "dashboards/reports").rglob("report.html")  # for Grafana, another user in its container
    assert report.parent.name == "quickstart" and report.read_text() == "<p>what came out</p>"
    assert report.stat().st_mode & 0o777 == 0o644
    assert {path.stat().st_mode & 0o777 for path in files if path.name != "compose.yml"} == {0o600}
    assert (state / "dashboards").stat().st_mode & 0o777 == 0o700
    secrets = [path.read_text().strip() for path in (state / "dashboards/passwords").iterdir()]
    assert len(set(secrets)) == 5
    assert min(map(len, secrets)) >= 32
    assert not any(secret in done.stdout + done.stderr for secret in secrets)

    listening = subprocess.run(
        ["ss", "-Hltn", f"sport = :{port}"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert [word for word in listening if word.endswith(f":{port}")] == [f"127.0.0.1:{port}"]

    down = warpbed(state, docker, "dashboards", "down")
    assert down.returncode == 0, down.stdout + down.stderr
    assert containers(docker) == []
    assert volumes(docker)
    recap.assert_changes_nothing(warpbed(state, docker, "dashboards", "down", **recap.WORDS).stdout)
    unreachable = warpbed(state, docker, "store", "status")
    assert unreachable.returncode == 2
    assert "dashboards up" in unreachable.stderr

    again = warpbed(state, docker, *start, str(results))
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.count("present: ") == 2
    assert sorted(secrets) == sorted(path.read_text().strip() for path in (state / "dashboards/passwords").iterdir())

    gone = warpbed(state, docker, "dashboards", "down", "--purge")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert (containers(docker), volumes(docker), (state / "dashboards").exists()) == ([], set(), False)


def test_purge_removes_data_whose_settings_are_gone_and_the_containers_have_limits(docker: str, tmp_path: Path) -> None:
    state, port = tmp_path / "state", free_port()
    start = (
        "dashboards",
        "up",
        "--database-only",
        "--local-image",
        "--database-port",
        str(port),
        "--results",
        str(tmp_path),
    )
    done = warpbed(state, docker, *start)
    assert done.returncode == 0, done.stdout + done.stderr
    (container,) = containers(docker)
    inspected = subprocess.run(
        ["docker", "--host", docker, "inspect", container], capture_output=True, text=True, check=True
    ).stdout
    (seen,) = json.loads(inspected)
    host = seen["HostConfig"]
    assert host["CapDrop"] == ["ALL"] and host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["Memory"] == 8 << 30 and host["PidsLimit"] == 512
    assert host["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 5}
    probe = ["docker", "--host", docker, "exec", container, *seen["Config"]["Healthcheck"]["Test"][1:]]
    assert subprocess.run(probe, check=False).returncode == 0
    capabilities = subprocess.run(
        ["docker", "--host", docker, "exec", container, "grep", "CapEff", "/proc/1/status"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert int(capabilities.split()[1], 16) == 0

    shutil.rmtree(state / "dashboards")
    gone = warpbed(state, docker, "dashboards", "down", "--purge")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert (containers(docker), volumes(docker)) == ([], set())
    recap.assert_changes_nothing(warpbed(state, docker, "dashboards", "down", "--purge", **recap.WORDS).stdout)


@needs_ssh_hosts
def test_on_a_host_of_the_inventory_with_a_tunnel_from_here(docker: str, tmp_path: Path) -> None:
    """A host that sees neither this checkout nor the cache: the image comes to it, results through the tunnel that the play tells."""
    port, folder = free_port(), tmp_path / "there"
    hosts = SshHosts(
        tmp_path, ["h"], hidden=[ROOT, cache_dir()], environment=f"DOCKER_HOST=unix://{tmp_path}/socket HOME={folder}"
    )
    tunnel = None
    try:
        with daemon(tmp_path, "nsenter", f"--net=/run/netns/{hosts.netns('h')}") as there:
            ssh = ["-i", str(hosts.key), "-o", f"UserKnownHostsFile={hosts.known_hosts}"]
            entry = {"ansible_host": hosts.control("h"), "ansible_user": "root",
                "ansible_python_interpreter": "/usr/bin/python3",
                     "ansible_ssh_common_args": shlex.join(ssh)}  # fmt: skip
            (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"h": entry}}}))

            def play(**variables: object) -> str:
                given = {"dashboards_on": "h", "dashboards_grafana": False, "dashboards_local_image": "always",
                         "dashboards_database_port": port, **variables}  # fmt: skip
                return plays.run("dashboards", "-i", tmp_path / "hosts.yml", variables=given, timeout_s=400)

            printed = play()
            kept = folder / ".local/state/warpbed/dashboards"
            assert f"-L {port}:127.0.0.1:{port} h, and to load results" in printed
            assert f"scp h:{kept}/pgpass" in printed
            assert len(containers(there)) == 1
            with pytest.raises(OSError, match="refused"):  # it listens there, and not here
                socket.create_connection(("127.0.0.1", port), 1)

            target = f"root@{hosts.control('h')}"
            tunnel = subprocess.Popen(
                ["ssh", *ssh, "-N", "-o", "ExitOnForwardFailure=yes", "-L", f"{port}:127.0.0.1:{port}", target]
            )
            passwords = tmp_path / "pgpass"
            subprocess.run(["scp", "-q", *ssh, f"{target}:{kept}/pgpass", passwords], check=True)
            environment = {
                **os.environ,
                "PGPASSFILE": str(passwords),
                "WARPBED_DATABASE": f"postgresql://127.0.0.1:{port}/warpbed",
            }
            results = store_lab.results(tmp_path / "results", 5.0, (Case("reno", 50, 1), Case("cubic", 50, 1)))
            for command, expected in (
                (["init", "--passwords", passwords], ""), (["load", results], "stored: "), (["status"], "2 runs"),
            ):  # fmt: skip
                output = lab.warpbed("store", *command, environment=environment)
                assert expected in output

            play(dashboards_state="down", dashboards_purge=True)
            assert (containers(there), volumes(there), kept.exists()) == ([], set(), False)
            assert not list(Path(tempfile.gettempdir()).glob("warpbed-image-*"))
    finally:
        if tunnel is not None:
            tunnel.kill()
            tunnel.wait()
        hosts.close()


def test_a_port_in_use_is_reported_before_anything_starts(docker: str, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = warpbed(
            tmp_path, docker, "dashboards", "up", "--database-only", "--local-image", "--database-port", str(port)
        )
    assert done.returncode == 2
    assert f"port {port} is in use; choose another with --database-port N" in done.stderr
    assert not (tmp_path / "dashboards").exists()


def test_no_docker_says_what_to_install(tmp_path: Path) -> None:
    done = warpbed(tmp_path, f"unix://{tmp_path}/nothing", "dashboards", "up")
    assert done.returncode == 2
    assert "apt-get install --no-install-recommends docker.io docker-compose" in done.stderr
    assert not (tmp_path / "dashboards").exists()


@pytest.mark.parametrize(
    "arguments", [("--port", "80"), ("--database-port", "70000"), ("--port", "5000", "--database-port", "5000")]
)
def test_a_port_that_cannot_be_is_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = warpbed(tmp_path, "", "dashboards", "up", *arguments)
    assert done.returncode == 2
    assert arguments[0] in done.stderr


def test_images_are_pinned_and_nothing_has_a_default_password() -> None:
    images = YAML(typ="safe").load(ROOT / "dashboards/images.yml")
    assert len(images) == 2
    for image in images.values():
        assert re.fullmatch(r"[a-z]+/[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}", image)
    services = YAML(typ="safe").load(ROOT / "dashboards/compose.yml")["services"]
    assert all(service["network_mode"] == "host" and "ports" not in service for service in services.values())
    grafana, database = services["grafana"]["environment"], services["timescaledb"]
    assert grafana["GF_AUTH_ANONYMOUS_ENABLED"] == grafana["GF_USERS_ALLOW_SIGN_UP"] == "false"
    assert grafana["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    assert "listen_addresses=127.0.0.1" in database["command"]
    for name, value in {**grafana, **database["environment"]}.items():
        if "PASSWORD" in name:
            assert value.startswith("${WARPBED_") and value.endswith(":?}"), name
    source = YAML(typ="safe").load(ROOT / "dashboards/provisioning/datasources/warpbed.yml")["datasources"][0]
    assert (source["user"], source["secureJsonData"]["password"], source["uid"]) == (
        "warpbed_reader",
        "$WARPBED_READER_PASSWORD",
        "warpbed",
    )
