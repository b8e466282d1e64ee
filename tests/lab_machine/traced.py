# SPDX-License-Identifier: Apache-2.0
"""What the hooks of congestion control algorithms take as ftrace's function_graph tells it, as Kato 2012 measured in section 5.2.3.

    python -m tests.lab_machine.traced [--entries N] [--record]

Boots the tests' lab machine (Debian's kernel on an emulated CPU whose clock counts instructions, so that only ratios count), builds the
module by DKMS, and traces transfers over its loopback with one packet lost in a hundred: the hooks, and all functions that they call,
whose tracing is in a hook's time, too. Calls into which an interrupt came are left out. --record writes calls, means and standard
deviations to experiments/kato2012/traced.json.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from base.files import replace_text
from base.paths import ROOT
from tests import plays
from tests.lab_machine.machine import LabMachine, running

RECORD = ROOT / "experiments" / "kato2012" / "traced.json"
OURS = {"cong_avoid": "ttfwc_cong_avoid", "ssthresh": "ttfwc_ssthresh"}
"""The module's other hooks are inline functions of a header, which the kernel keeps out of tracing."""
HOOKS = {
    "reno": {"cong_avoid": "tcp_reno_cong_avoid", "ssthresh": "tcp_reno_ssthresh"},
    "cubic": {"cong_avoid": "cubictcp_cong_avoid", "ssthresh": "cubictcp_recalc_ssthresh",
              "pkts_acked": "cubictcp_acked", "set_state": "cubictcp_state"},
    "tfwc": OURS, "ttfwc": OURS, "ttfwc2": OURS,
}  # fmt: skip
COUNTED = ("-icount", "shift=0,sleep=on")
"""The machine's clock counts instructions, one a nanosecond: an emulation's own time says nothing of a CPU's."""
THERE = Path(__file__).with_name("traced_there.py")
OUTER = re.compile(r"^\D*([\d.]+) us +\|  (?:(\w+)(?: \[\w+\])?\(\);|\} /\* (\w+)(?: \[\w+\])? \*/)\s*$")
"""A line of function_graph about a function that was not called by another traced one: one without children, or the end of one."""


INTERRUPT = "irq_enter"


def durations_us(trace: str) -> dict[str, list[float]]:
    """Function → how long its calls took, of those into which no interrupt came."""
    found: dict[str, list[float]] = defaultdict(list)
    is_interrupted = False
    for line in trace.splitlines():
        is_interrupted |= INTERRUPT in line
        if match := OUTER.match(line):
            if not is_interrupted:
                found[match[2] or match[3]].append(float(match[1]))
            is_interrupted = False
    return found


def measured(machine: LabMachine, name: str, hooks: dict[str, str], entries: int) -> dict[str, Any]:
    """Hook → calls, mean and standard deviation, us. Raises SystemExit where a hook was not called."""
    argv = ["python3", "-I", "-c", THERE.read_text(), name, str(entries), *hooks.values()]
    us = durations_us(machine.remote.run(*argv, timeout_s=1800).decode())
    if idle := [function for function in hooks.values() if not us[function]]:
        raise SystemExit(f"{name}: no whole call of {', '.join(idle)} was seen; ask for more --entries")
    return {
        hook: [len(us[function]), round(statistics.fmean(us[function]), 3), round(statistics.pstdev(us[function]), 3)]
        for hook, function in hooks.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of congestion control's hooks as ftrace tells it.")
    parser.add_argument("--entries", type=int, default=20000, help="of each trace")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, running(Path(place), more=COUNTED) as machine:
        wanted = {"lab_kernel_mode": "dkms", "lab_kernel_algorithms": ["tfwc", "ttfwc", "ttfwc2"]}
        plays.run("lab_kernel", "-i", machine.inventory(Path(place), **wanted), timeout_s=None)
        rows: dict[str, Any] = {}
        for name, hooks in HOOKS.items():
            rows[name] = measured(machine, name, hooks, options.entries)
            print(name, rows[name], flush=True)
        kernel = machine.run("uname", "-r").strip()
    if options.record:
        replace_text(RECORD, json.dumps({"kernel": kernel, "hooks": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
