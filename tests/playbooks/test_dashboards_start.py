# SPDX-License-Identifier: Apache-2.0
"""How `./warpbed dashboards up` begins: it asks for all that it needs before it builds any of it. Docker is a script here."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

from tests.playbooks.test_playbooks import fake, play
from tests.plays import BIN

DOCKER = """
echo "$*" >>"$0.log"
case "$1" in
version) echo 26.1 ;;
compose) ;;
ps) ;;
pull) echo "no route to the registry of $3" >&2; exit 1 ;;
*) exit 1 ;;
esac
"""


def free_ports() -> dict[str, int]:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return {"dashboards_grafana_port": first.getsockname()[1], "dashboards_database_port": second.getsockname()[1]}


def up(programs: Path, path: str, **variables: object) -> subprocess.CompletedProcess[str]:
    return play(
        "dashboards.yml",
        "--extra-vars",
        json.dumps({**free_ports(), **variables}),
        PATH=path,
        WARPBED_STATE=str(programs / "state"),
        DOCKER_HOST="",
    )


def test_both_images_are_asked_for_before_one_is_built_and_one_message_says_the_way_on(tmp_path: Path) -> None:
    programs = fake(tmp_path / "programs", "docker", DOCKER)
    done = up(programs, f"{programs}:{BIN}:{os.environ['PATH']}")
    assert done.returncode == 2
    asked = [line.split()[0] for line in (programs / "docker.log").read_text().splitlines()]
    assert asked.count("pull") == 2 and "import" not in asked and "run" not in asked
    output = done.stdout + done.stderr
    assert "Debian 13 with TimescaleDB" not in output, "nothing is built, and nothing that is skipped has a heading"
    message = done.stderr.splitlines()[-1]
    assert "Grafana's image cannot be had: no route to the registry of grafana/" in message
    assert "The database's image cannot be had: no route to the registry of timescale/" in message
    assert "dashboards up --database-only" in message and "dashboards provision --to FOLDER" in message
    assert not (programs / "state").exists()


def test_a_start_with_nothing_to_fetch_or_build_prints_no_heading_of_it(tmp_path: Path) -> None:
    """Both images are there, and the containers are told to start, which is where this Docker ends it."""
    there = DOCKER.replace("*) exit 1 ;;", "image) ;;\n*) exit 1 ;;").replace(
        "compose) ;;", 'compose) case "$*" in *up*) echo "no such container" >&2; exit 1 ;; esac ;;'
    )
    programs = fake(tmp_path / "programs", "docker", there)
    done = up(programs, f"{programs}:{BIN}:{os.environ['PATH']}")
    assert done.returncode == 2 and "no such container" in done.stderr
    assert [line for line in done.stdout.splitlines() if line.endswith("…")] == []
    assert done.stdout.splitlines() == [
        "Make the folders",
        "Make the passwords",
        "Write the settings that hold passwords",
        "Write where the database is",
        "Copy the dashboards",
    ]


def test_without_grafana_only_a_database_that_may_not_be_built_stops_the_start(tmp_path: Path) -> None:
    programs = fake(tmp_path / "programs", "docker", DOCKER)
    path = f"{programs}:{BIN}:{os.environ['PATH']}"
    done = up(programs, path, dashboards_grafana=False, dashboards_local_image="never")
    assert done.returncode == 2
    assert "The database's image cannot be had: no route" in done.stderr.splitlines()[-1]
    assert "Grafana" not in done.stderr
    assert [line for line in (programs / "docker.log").read_text().splitlines() if line.startswith("pull")] == [
        line for line in (programs / "docker.log").read_text().splitlines() if "pull" in line and "timescale" in line
    ]


def test_docker_and_compose_are_installed_where_they_are_missing_as_run_does_with_its_packages(tmp_path: Path) -> None:
    """A user who may not install is told the line that does it; a Docker that is there already is not asked for."""
    programs = fake(tmp_path / "programs", "id", "echo 1000")
    (programs / "sh").symlink_to("/usr/bin/sh")
    fake(programs, "dpkg-query", "exit 1")
    done = up(programs, f"{programs}:{BIN}")
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    assert "As root: apt-get install --no-install-recommends docker" in line
    assert {"docker-compose", "docker.io"} <= set(line.split()) and "mininet" not in line

    fake(programs, "docker", DOCKER.replace("compose) ;;", "compose) exit 1 ;;"))
    done = up(programs, f"{programs}:{BIN}")
    assert done.stderr.splitlines()[-1].endswith("apt-get install --no-install-recommends docker-compose")
