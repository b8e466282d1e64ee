# SPDX-License-Identifier: Apache-2.0
"""`./warpbed bisect` finds the commit of a planted history after which a module no longer backs off."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import pytest

from hosts.virtual.launch import GuestKernel
from tests import lab
from tests.waiting import wait_until

pytestmark = [pytest.mark.guest, pytest.mark.timeout(1200)]
NAME = "kappa"
BACKS_OFF = "u32 ssthresh = max_t(u32, cwnd - div_u64(given_up, 100), 2);"
NEVER = "u32 ssthresh = max_t(u32, cwnd + div_u64(given_up, 100), 2);"
EXPERIMENT = f"""\
warpbed: 1
name: planted
title: A short queue
duration: 4s
topology: {{name: dumbbell, params: {{rate: 10mbit, delay: 9ms, buffer: 20p, access_delay: 1ms}}}}
flows: [{{name: f1, cca: {NAME}, from: s1, to: d1}}]
repeats: 2
metrics: [loss_rate]
claims:
  - {{source: this test, says: It loses little., metric: loss_rate, bounds: {{max: 0.1}}}}
"""


def test_the_commit_that_stopped_backing_off_is_found_beside_one_that_does_not_build(
    kernel: GuestKernel, tmp_path: Path
) -> None:
    """Five commits: as the template, a comment, one that does not compile, the planted bug, another comment. The middle one is asked
    first and skipped; then the second, which holds; what is left are the third and the fourth, and the fourth is judged."""
    tree = tmp_path / "tree"
    (tree / "module").mkdir(parents=True)
    source = (lab.ROOT / "kernels/template/module.c.in").read_text().replace("@NAME@", NAME)
    assert BACKS_OFF in source
    bug = source.replace(BACKS_OFF, NEVER)

    def git(*argv: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", "-C", str(tree), *who, *argv], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "--quiet", "--initial-branch=main")
    history = {
        "as the template": source,
        "a comment": source + "/* one */\n",
        "half done": source + "int nothing(void) { return missing; }\n",
        "never back off": bug + "/* one */\n",
        "another comment": bug + "/* two */\n",
    }
    names = []
    for subject, text in history.items():
        (tree / f"module/tcp_{NAME}.c").write_text(text)
        git("add", "-A")
        git("commit", "--quiet", "-m", subject)
        names.append(git("rev-parse", "HEAD"))
    file = lab.write(tmp_path, EXPERIMENT)
    place = f"{tree / 'module'}@"
    argv: list[str | Path] = [
        "bisect",
        file,
        "--claim",
        "loses little",
        "--good",
        f"{place}{names[0]}",
        "--bad",
        f"{place}main",
    ]
    argv += ["--jobs", "1", "--results", tmp_path / "results", "--format", "json"]
    done = subprocess.run(lab.command(*argv), cwd=lab.ROOT, capture_output=True, text=True, timeout=1100)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["subject"]: row for row in json.loads(done.stdout)}
    assert {subject: row["verdict"] for subject, row in rows.items()} == {
        "as the template": "holds", "a comment": "holds", "half done": "skipped",
        "never back off": "does not hold", "another comment": "does not hold",
    }  # fmt: skip
    assert "half done: skipped (does not build: " in done.stderr
    # the third was never judged, and the fourth is what it would have been compared with
    assert [subject for subject, row in rows.items() if row["suspect"]] == ["half done", "never back off"]
    assert git("status", "--porcelain") == ""
    wait_until(lambda: not list(Path(tempfile.gettempdir()).glob("warpbed-bisect-*")))
