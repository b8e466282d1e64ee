# SPDX-License-Identifier: Apache-2.0
"""First process of a guest that says what its root has: the folders in it, and the version of a program."""

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agent import init
from base.linux import power_off
from plan.console import say

if __name__ == "__main__":
    init.mount_all()
    try:
        iperf3 = subprocess.run(["/usr/bin/iperf3", "--version"], capture_output=True, text=True, check=True).stdout
        say(
            "sees "
            + json.dumps(
                {"folders": sorted(os.listdir("/")), "iperf3": iperf3.split()[1], "python": sys.version.split()[0]}
            )
        )
    finally:
        power_off()
