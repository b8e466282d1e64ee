# SPDX-License-Identifier: Apache-2.0
"""One traffic process.

As a program, for hosts where the agent does not run: `python3 -m agent.traffic.worker`; the first line of
standard input is JSON, {"traffic": a TrafficPlan's fields, "addresses": {node: address}}, what follows is the control
line of agent.traffic.control. Standard output gets `ready`, and at the end the result as one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from agent.errors import RunError
from agent.traffic import programs
from agent.traffic.control import Control
from base.discovery import merged
from base.linux import exact_timers
from plan.model import TrafficPlan

Program = Callable[[TrafficPlan, dict[str, str], Control], dict[str, Any]]

PROGRAMS: dict[tuple[str, str], Program] = merged(programs, "PROGRAMS")


def work(plan: TrafficPlan, addresses: dict[str, str], control: Control) -> dict[str, Any]:
    """Do what a plan says in the current network namespace; the result has "error" where that failed."""
    exact_timers()
    try:
        result = PROGRAMS[plan.kind, plan.side](plan, addresses, control)
    except RunError as error:
        result = {"error": error.detail}
    except OSError as error:
        result = {"error": f"{error.strerror or error}"}
    return {"name": plan.name, "kind": plan.kind, "side": plan.side, "node": plan.node, "error": None, **result}


def main() -> int:
    text = b""
    while not text.endswith(b"\n"):  # byte by byte: what follows belongs to the control line
        byte = os.read(0, 1)
        if not byte:
            return 2
        text += byte
    job = json.loads(text)
    result = work(TrafficPlan(**job["traffic"]), job["addresses"], Control(0, 1))
    print(json.dumps(result), flush=True)
    return 1 if result["error"] else 0


if __name__ == "__main__":
    sys.exit(main())
