# SPDX-License-Identifier: Apache-2.0
"""First process of a guest that starts plain `mn` with a topology of this project and pings through it."""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agent import init
from base.linux import power_off
from plan.console import SOURCE

if __name__ == "__main__":
    try:
        init.mount_all()
        topology = os.environ.get("WARPBED_TOPOLOGY", "dumbbell")
        words = ",".join(filter(None, [topology, os.environ.get("WARPBED_PARAMETERS")]))
        command = ["/usr/bin/mn", "--custom", f"topologies/{topology}.py", "--topo", words, "--switch", "lxbr"]
        done = subprocess.run(
            [*command, "--controller", "none", "--test", os.environ.get("WARPBED_TEST", "pingall")],
            cwd=SOURCE,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": SOURCE, "HOME": "/root", "TERM": "dumb"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        print(done.stdout, flush=True)
    finally:
        power_off()
