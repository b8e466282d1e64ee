# SPDX-License-Identifier: Apache-2.0
"""Send numbered frames over links of any kind in a guest, and what their arrivals are held against."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hosts.virtual import boot
from hosts.virtual.launch import GuestKernel
from network.direction import Direction
from network.link_words import direction
from network.model import Link, Network, Node
from network.tc import own_modules
from plan.console import MODULES, PREFIX
from plan.model import LINK_MODULES, HostSettings, Module, Plan
from tests import lab

RECORD = np.dtype([("number", "<i4"), ("sent", "<i8"), ("arrived", "<i8"), ("length", "<i4"), ("good", "?")])


@dataclass(frozen=True)
class Traffic:
    """count frames of sizes in turn, gap_ns apart, over a link in these words; overhead_ns: the host's longest time for one."""

    words: Mapping[str, str]
    count: int
    gap_ns: int
    sizes: Sequence[int] = (100,)
    overhead_ns: int = 0


def send(
    kernel: GuestKernel,
    folder: Path,
    jobs: Mapping[str, Traffic],
    seed: int = 1,
    how: str = "chain",
    later_s: float = 0,
) -> dict[str, Any]:
    """All jobs at once, each over a link of its own; arrivals by name in the order of their arrival.

    how: links have a chain of events or one event per packet (plan.model.Plan.links)
    later_s: virtual time that the boot takes longer
    No limit of its own: a busy machine takes its time, and a test that hangs is ended by pytest's.
    """
    directions = {name: replace(direction(job.words), overhead_ns=job.overhead_ns) for name, job in jobs.items()}
    nodes = {name: f"d{i}" for i, name in enumerate(jobs)}
    links = tuple(Link("s", nodes[name], directions[name], Direction()) for name in jobs)
    network = Network((Node("s", "router"), *(Node(node) for node in nodes.values())), links)
    modules = tuple(
        Module(f"{MODULES}/{name}.ko") for name in sorted({*LINK_MODULES, *own_modules(directions.values())})
    )
    hosts = {node.name: HostSettings() for node in network.nodes}
    plan = Plan(network, (), 1.0, 1.0, 1, hosts, modules=modules, links=how)
    folder.mkdir(exist_ok=True)
    (folder / "plan.json").write_text(plan.to_json())
    traffic = {
        f"s>{nodes[name]}": {"count": job.count, "gap_ns": job.gap_ns, "sizes": list(job.sizes)}
        for name, job in jobs.items()
    }
    (folder / "traffic.json").write_text(json.dumps(traffic))
    line = boot.arguments(
        kernel, 1500, boot.SYSTEM_PYTHON, "loglevel=4", "ipv6.disable_ipv6=1", f"GUEST_LATER_S={later_s}",
        *boot.shares(kernel, folder), *boot.python(lab.ROOT / "tests/guest_links.py"), start_ns=1, seed=seed,
    )  # fmt: skip
    done = subprocess.run(
        boot.caged(min(os.sched_getaffinity(0)), folder, line, boot.places(kernel)), capture_output=True, text=True,
        check=False, stdin=subprocess.DEVNULL, env=boot.ENVIRONMENT,
    )  # fmt: skip
    assert f"{PREFIX}done" in done.stdout, done.stdout + done.stderr
    return {name: np.fromfile(folder / f"s>{nodes[name]}.bin", RECORD) for name in jobs}


def lost(arrivals: Any, count: int) -> Any:
    """Per frame, whether it was lost."""
    missing = np.ones(count, bool)
    missing[arrivals["number"]] = False
    return missing


def runs_of(flags: Any) -> Any:
    """Lengths of the stretches in which flags are set."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return edges[1::2] - edges[::2]


def assert_share(count: int, of: int, share: float, clumping: float = 1.0) -> None:
    """A number of events agrees with its probability, two-sided at 0.1 %."""
    assert abs(count - of * share) <= 3.29 * math.sqrt(clumping * of * share * (1 - share)) + 1, (count / of, share)


def assert_geometric(lengths: Any, end: float) -> None:
    """Lengths of stretches that end with a probability per frame; χ² at 0.1 %, cells of at least 8 expected."""
    cells, n = [], len(lengths)
    length, left = 1, 1.0
    while n * left * (1 - end) > 16:
        cells.append((int((lengths == length).sum()), n * left * end))
        left *= 1 - end
        length += 1
    cells.append((int((lengths >= length).sum()), n * left))
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    degrees = len(cells) - 1
    assert degrees >= 2
    # Wilson and Hilferty 1931
    critical = degrees * (1 - 2 / (9 * degrees) + 3.09 * math.sqrt(2 / (9 * degrees))) ** 3
    assert statistic < critical, cells


def assert_distribution(values: Any, cdf: Any) -> None:
    """Kolmogorov-Smirnov at 0.1 %."""
    ordered = np.sort(values)
    expected, n = cdf(ordered), len(ordered)
    distance = max((np.arange(1, n + 1) / n - expected).max(), (expected - np.arange(n) / n).max())
    assert distance < 1.95 / math.sqrt(n), distance
