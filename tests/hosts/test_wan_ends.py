# SPDX-License-Identifier: Apache-2.0
"""The ends of a campaign's transfers: who may be one, what they show to others, and what they keep."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent import confined
from tests import lab
from tests.plays import end
from tests.sshhosts import SshHosts, needs_ssh_hosts
from tests.wan_lab import CAMPAIGN, Prepared, assert_nothing_left, events, start

pytestmark = [pytest.mark.real_host, needs_ssh_hosts, pytest.mark.root]


def test_a_receiver_without_consent_is_refused_before_anything_is_sent(hosts: SshHosts, tmp_path: Path) -> None:
    output = end(start(hosts, tmp_path, wan_consent=""), code=2)
    assert "b is not a consenting receiver" in output
    assert events(tmp_path) == []


def test_a_wrong_host_key_is_not_accepted(hosts: SshHosts, tmp_path: Path) -> None:
    known = hosts.known_hosts.read_text()
    other = known.splitlines()[0].split()[1:]
    lines = [
        f"{hosts.control('b')} {' '.join(other)}" if hosts.control("b") in line else line for line in known.splitlines()
    ]
    hosts.known_hosts.write_text("\n".join(lines) + "\n")
    try:
        process = start(hosts, tmp_path)
        output, _ = process.communicate(timeout=200)
    finally:
        hosts.known_hosts.write_text(known)
    assert process.returncode in (2, 4), output  # 4 is Ansible's own, where the host has no agent yet
    assert "HOST IDENTIFICATION HAS CHANGED" in output or "Host key verification failed" in output
    assert not any("-b-" in event["transfer"] for event in events(tmp_path, "done"))


@dataclass(frozen=True)
class Watched:
    """A campaign that was played, and the command lines that its hosts had meanwhile."""

    prepared: Prepared
    lines: set[str]


@pytest.fixture(scope="module")
def watched(hosts: SshHosts, tmp_path_factory: pytest.TempPathFactory) -> Watched:
    folder = tmp_path_factory.mktemp("watched")
    process = start(hosts, folder)
    lines: set[str] = set()
    while process.poll() is None:
        for name in hosts.names:
            lines.update(hosts.processes(name))
        time.sleep(0.05)
    return Watched(Prepared(hosts, folder, end(process)), lines)


def test_no_key_of_an_attempt_is_on_disk_or_in_a_command_line(watched: Watched) -> None:
    assert any("filetransfer.py" in line for line in watched.lines)
    assert any(re.search(r"/proc/self/fd/\d+ receive", line) for line in watched.lines)
    assert not [line for line in watched.lines if re.search(r"[0-9a-f]{64}", line)]
    texts = [
        path.read_text(errors="replace")
        for path in (watched.prepared.folder / "results").rglob("*")
        if path.is_file() and path.suffix in (".json", ".jsonl", ".log")
    ]
    assert texts and not [text for text in texts if re.search(r'"key": "[0-9a-f]{64}"', text)]


def test_the_receiving_service_has_a_user_of_its_own_no_capability_and_limits(watched: Watched) -> None:
    facts = [
        json.loads((run["path"] / "raw/guest.json").read_text())
        for run in lab.runs(watched.prepared.folder / "results/short")
    ]
    assert facts
    for fact in facts:
        service = fact["confined"]["receiver"]
        assert service["uid"] in confined.USERS and service["capabilities"] == 0
        assert service["no_new_privs"] and service["read_only"]
        assert {name: int(service[name]) for name in ("memory_bytes", "files", "file_bytes")} == {
            "memory_bytes": confined.MEMORY_BYTES,
            "files": confined.FILES,
            "file_bytes": confined.OUTPUT_BYTES,
        }


def listening(hosts: SshHosts, name: str) -> set[str]:
    """What the host listens on beside its SSH service."""
    lines = hosts.inside(name, "ss", "-Hltn").splitlines()
    return {line.split()[3] for line in lines} - {f"{hosts.control(name)}:22"}


def test_captures_of_both_ends_keep_to_their_budget_and_the_service_to_its_transfer(
    watched: Watched, tmp_path: Path
) -> None:
    hosts = watched.prepared.hosts
    text = (
        CAMPAIGN.replace("budget: 1MB", "budget: 10KB")
        .replace("receivers: {b: {}, c: {}}", "receivers: {b: {}}")
        .replace("1MB]", "3MB]")
    )
    process = watched.prepared.conduct(tmp_path, text)
    seen: set[str] = set()
    while process.poll() is None:
        seen |= listening(hosts, "b") | listening(hosts, "a")
        time.sleep(0.2)
    end(process)
    assert seen == {f"{hosts.address('b')}:5201"} and listening(hosts, "b") == set()
    for run in lab.runs(tmp_path / "results/short"):
        captures = sorted((run["path"] / "raw").glob("*.pcap"))
        assert len(captures) == 2 and all(1_000 < file.stat().st_size <= 10_000 for file in captures)
        cut = any(reason["rule"] == "capture-cut" for reason in run["verdict"]["reasons"])
        assert cut == (run["params"]["size"] == "3MB"), "10 KB hold the headers of 89 packets, the small file's only"
    assert len(events(tmp_path, "done")) == 2
    assert_nothing_left(hosts, tmp_path)
