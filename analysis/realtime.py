# SPDX-License-Identifier: Apache-2.0
"""Rules of the verdict for runs in real time: whether the host kept up. docs/fidelity.md has the bounds and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

RTT_TOLERANCE_NS = 1_000_000
"""An idle path may take this much longer in real time than links and delays say: hosts need time for a packet."""
RATE_TOLERANCE = 0.01
CPU_BUSY = 0.9
"""Share of one CPU's second above which packets wait for the CPU instead of the link."""
TIMER_LATE_P99_US = 1_000.0
TIMER_LATE_MAX_US = 10_000.0
CLOCK_OFFSET_NS = 1_000_000
"""Between machines of one run; times of one machine are never compared with those of another more finely."""


def clock_of(facts: Mapping[str, Any]) -> str:
    """Which one a host that is not virtual went by: "real", or "counted" where each instruction of its CPU took a fixed time."""
    return str(facts.get("host", {}).get("clock", "real"))


def judge(facts: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(rule, severity, message) for each machine of a run in real time; nothing for one in virtual time.

    facts: guest.json, whose `realtime` holds what agent.monitor saw, by machine where there are several
    """
    realtime = facts.get("realtime")
    if not realtime:
        return
    machines = realtime if "timers" not in realtime else {"": realtime}
    for name, row in machines.items():
        for rule, severity, message in _machine(row):
            yield rule, severity, f"{name}: {message}" if name else message
    if facts.get("host", {}).get("accelerator") == "tcg" and clock_of(facts) == "real":
        yield (
            "emulated-cpu",
            "warning",
            "the machine's CPU was emulated (TCG): times below a millisecond are not the path's",
        )
    for name, clock in facts.get("clocks", {}).items():
        worst = abs(clock["drift_ns"]) + clock["uncertainty_ns"]
        if worst > CLOCK_OFFSET_NS:
            yield "clock", "warning", f"{name}: its clock was off by up to {worst / 1e6:.2f} ms during the run"


def _machine(row: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    if row["cpu_busy_max"] > CPU_BUSY:
        yield "cpu-headroom", "error", f"a CPU was {row['cpu_busy_max']:.0%} busy for a second; at most {CPU_BUSY:.0%}"
    if row["softnet_dropped"]:
        yield (
            "softirq-drops",
            "error",
            f"{row['softnet_dropped']} packets were dropped before the network stack saw them",
        )
    if row["timer_late_p99_us"] > TIMER_LATE_P99_US:
        lateness = f"{row['timer_late_p99_us'] / 1e3:.2f} ms for 1 % of {row['timers']} timers"
        yield "timer-late", "error", f"timers were late by {lateness}; at most {TIMER_LATE_P99_US / 1e3:g} ms"
    elif row["timer_late_max_us"] > TIMER_LATE_MAX_US:
        yield "timer-late", "warning", f"one timer was {row['timer_late_max_us'] / 1e3:.1f} ms late"
