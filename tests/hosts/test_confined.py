# SPDX-License-Identifier: Apache-2.0
"""The receiving service of campaigns, as what it is started: what it may do on a machine that is not ours."""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

from agent import confined
from analysis.wide_area import service_reasons

pytestmark = [pytest.mark.real_host, pytest.mark.root]
TRIES = b"""
import json, os, sys
sys.stdin.read()
tried = {}
for name, action in {
    "see the caller's environment": lambda: os.environ["CALLERS_SECRET"],
    "become root": lambda: os.setuid(0),
    "write in /tmp": lambda: os.open("/tmp/warpbed-confined", os.O_WRONLY | os.O_CREAT),
    "write beside": lambda: os.open(sys.argv[1] + "/beside", os.O_WRONLY | os.O_CREAT),
    "start a process": os.fork,
    "hold 300 MB": lambda: bytearray(300 << 20),
    "open 40 files": lambda: [os.open("/dev/null", os.O_RDONLY) for _ in range(40)],
}.items():
    try:
        action()
        tried[name] = "done"
    except (OSError, MemoryError, KeyError) as error:
        tried[name] = type(error).__name__
print(json.dumps(tried))
"""


def run(program: bytes, folder: Path, cpu_s: float = 20) -> tuple[int, str, dict[str, object]]:
    with open(folder / "out", "wb") as out:
        service = confined.start(program, [str(folder)], sys.executable, cpu_s, out)
        facts = confined.facts(service.pid)
        assert service.stdin is not None
        service.stdin.close()
        code = service.wait(60)
    return code, (folder / "out").read_text(), facts


def test_it_can_write_nothing_start_nothing_and_take_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLERS_SECRET", "x")
    with tempfile.TemporaryDirectory() as place:  # to which everybody has a way
        os.chmod(place, 0o777)
        code, output, facts = run(TRIES, Path(place))
        assert code == 0, output
        assert os.listdir(place) == ["out"]
    assert json.loads(output) == {
        "see the caller's environment": "KeyError",
        "become root": "PermissionError",
        "write in /tmp": "OSError",
        "write beside": "OSError",
        "start a process": "BlockingIOError",
        "hold 300 MB": "MemoryError",
        "open 40 files": "OSError",
    }
    assert (
        facts["uid"] in confined.USERS and facts["capabilities"] == 0 and facts["read_only"] and facts["no_new_privs"]
    )


def test_a_host_that_forbids_mounts_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(flags: int) -> None:
        raise PermissionError(errno.EPERM, "unshare")

    monkeypatch.setattr(confined, "unshare", forbidden)
    code, _, facts = run(b"import sys\nsys.stdin.read()\n", tmp_path)
    assert code == 0 and facts["read_only"] is False and facts["capabilities"] == 0
    [reason] = service_reasons({"receiver": facts})
    assert reason.startswith("the receiver's service ran without a read-only world of its own; ")


def test_its_words_and_its_time_have_an_end(tmp_path: Path) -> None:
    code, output, _ = run(b"import sys\nsys.stdin.read()\nwhile True:\n    print('x' * 1000, flush=True)\n", tmp_path)
    assert code != 0 and len(output) == confined.OUTPUT_BYTES
    code, _, _ = run(b"import sys\nsys.stdin.read()\nwhile True:\n    pass\n", tmp_path, cpu_s=1)
    assert code < 0, "ended by the kernel"


def test_two_services_at_once_have_two_users(tmp_path: Path) -> None:
    waits = b"import sys\nsys.stdin.read()\n"
    with open(tmp_path / "out", "wb") as out:
        services = [confined.start(waits, [], sys.executable, 20, out) for _ in range(2)]
        users = {confined.facts(service.pid)["uid"] for service in services}
        for service in services:
            service.communicate(b"", timeout=60)
    assert len(users) == 2
