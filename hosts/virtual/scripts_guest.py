# SPDX-License-Identifier: Apache-2.0
"""First process of a guest that runs packetdrill on scripts, each in a network namespace of its own.

WARPBED_OUT holds orders.json: {"binary", "module", "algorithm", "limit_s", "arguments", "scripts": [{"folder", "file"}]}, all paths below
WARPBED_OUT. Answers are in answers.json, one per script: {"code", "output", "virtual_s"}; code None where the limit was reached.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent import init
from base.linux import CLONE_NEWNET, insert_module, unshare
from plan.console import MODULES, OUT, say

OUTPUT_BYTES = 20_000
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")


def answer(orders: dict, script: dict) -> dict:  # type: ignore[type-arg]
    """Run one script; the namespace goes with the process."""
    command = [f"{OUT}/{orders['binary']}", *orders["arguments"], script["file"]]

    def alone() -> None:
        unshare(CLONE_NEWNET)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

    started = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=f"{OUT}/{script['folder']}", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=orders["limit_s"], preexec_fn=alone,
        )  # fmt: skip
        code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        code, output = None, error.stdout or b""
    seconds = round(time.monotonic() - started, 6)
    return {"code": code, "output": output[-OUTPUT_BYTES:].decode(errors="replace"), "virtual_s": seconds}


def main() -> None:
    init.mount_all()
    os.chdir("/tmp")
    init.plain_environment()
    orders = json.loads(Path(OUT, "orders.json").read_text())
    if orders["module"]:
        insert_module(Path(MODULES, f"{orders['module']}.ko"))
    if orders["algorithm"]:
        # a namespace begins with the default of the first one, and takes no other that is not allowed to everybody
        ALLOWED.write_text(f"{ALLOWED.read_text().strip()} {orders['algorithm']}")
        DEFAULT.write_text(orders["algorithm"])
    answers = []
    for script in orders["scripts"]:
        answers.append(answer(orders, script))
        Path(OUT, "answers.json").write_text(json.dumps(answers))
    say("done")


if __name__ == "__main__":
    init.first_process(main)
