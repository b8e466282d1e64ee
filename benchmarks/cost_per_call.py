# SPDX-License-Identifier: Apache-2.0
"""What a congestion control algorithm costs per ACK and per loss, each module beside the kernel's own, in one run.

    ./warpbed exec python -m benchmarks.cost_per_call [--quick] [--cpu N] [--record FILE] [NAME ...]

As Kato 2012 Tables 5.1-5.2. A test module (benchmarks/cost/cc_cost.c) calls the algorithms' operations on a connection's
socket in the guest kernel, in a loop, and measures with the host's clock: the guest runs in real time here, since
computing takes no virtual time. A guest kernel is a process of the host and computes at the host's speed. Of 1000
batches the fastest counts, less the cost of the loop itself, so numbers of one run can be compared on a busy machine too.
Columns: ns per ACK of one packet in congestion avoidance (`pkts_acked` and `cong_avoid`, or `cong_control`) of a connection
that has lost nothing, the same after 16 losses, ns per loss (`ssthresh`), and each as a multiple of cubic's.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from base.errors import UsageError, WarpbedError
from base.files import replace_bytes
from base.nearest import nearest
from hosts.virtual import boot
from hosts.virtual.kernel import find
from hosts.virtual.launch import GuestKernel
from kernels.module_source import MODULES
from schema.names import IN_TREE_CCAS

HERE = Path(__file__).resolve().parent / "cost"
LINE = re.compile(r"^COST (\w+) (\d+) (\d+) (\d+)\s*$", re.MULTILINE)
REGISTERED = re.compile(r'\.name\s*=\s*"(\w+)"|_OPS\("(\w+)"')
TIMEOUT_S = 600
BATCHES = 1000


@dataclass(frozen=True)
class Cost:
    """ns per ACK of a new connection, per ACK after losses, and per loss."""

    name: str
    ack_ns: float
    later_ns: float
    loss_ns: float


def registered() -> list[str]:
    """The names that the project's modules register."""
    names: list[str] = []
    for source in sorted(MODULES.glob("tcp_*.c")):
        names += [a or b for a, b in REGISTERED.findall(source.read_text())]
    return names


def build(kernel: GuestKernel, work: Path) -> None:
    """The test module, and the project's modules, in `work`."""
    for name in ("cc_cost.c", "Kbuild"):
        shutil.copy(HERE / name, work / name)
    tree = kernel.linux.parent / "build"
    command = ["make", "-C", str(tree), "ARCH=um", f"M={work}", "W=1", "modules"]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
    completed = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if completed.returncode:
        raise WarpbedError(f"building the test module failed:\n{completed.stderr.strip()}")
    for module in kernel.modules.glob("tcp_*.ko"):
        shutil.copy(module, work)


def measure(kernel: GuestKernel, names: list[str], *, cpu: int, batches: int) -> list[Cost]:
    """Boot a guest in real time and measure.

    Raises WarpbedError with the console's words where it did not get to the end.
    """
    with tempfile.TemporaryDirectory(prefix="warpbed-cost-") as folder:
        work = Path(folder)
        build(kernel, work)
        guest = boot.python(HERE / "guest.py", str(batches), *names, "end")
        line = boot.arguments(kernel, 256, boot.SYSTEM_PYTHON, "loglevel=4", f"wb_out={work}", *guest)
        completed = subprocess.run(
            boot.caged(cpu, work, line, boot.places(kernel)), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=TIMEOUT_S,
            env=boot.ENVIRONMENT, cwd="/", check=False,
        )  # fmt: skip
    costs = [Cost(name, *(int(ps) / 1e3 for ps in numbers)) for name, *numbers in LINE.findall(completed.stdout)]
    if "COST done" not in completed.stdout:
        raise WarpbedError(f"the guest ended (code {completed.returncode}) before the end:\n{completed.stdout[-2000:]}")
    return costs


def table(costs: list[Cost]) -> str:
    columns = ("ack_ns", "later_ns", "loss_ns")
    cubic = next((cost for cost in costs if cost.name == "cubic"), None)
    head = "".join(f"{heading:>16}{'x cubic':>9}" for heading in ("ns per ACK", "… after losses", "ns per loss"))
    lines = [f"{'algorithm':14}{head}"]
    for cost in sorted(costs, key=lambda cost: cost.ack_ns):
        values = [(getattr(cost, name), getattr(cubic, name, float("nan"))) for name in columns]
        lines.append(f"{cost.name:14}" + "".join(f"{value:16.1f}{value / base:9.2f}" for value, base in values))
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Cost per call of congestion control algorithms.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="algorithms (default: all); reno and cubic are always there"
    )
    parser.add_argument("--quick", action="store_true", help="two batches instead of 1000: does it work?")
    parser.add_argument("--cpu", type=int, default=0, help="CPU to run on (default: %(default)s)")
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="write the numbers as JSON, too: name → ns of the three columns"
    )
    options = parser.parse_args(argv)
    known = [*IN_TREE_CCAS, *registered()]
    try:
        if unknown := [name for name in options.names if name not in known]:
            raise UsageError(f"there is no algorithm {unknown[0]!r}; {nearest(unknown[0], known)}")
        names = list(dict.fromkeys(["reno", "cubic", *(options.names or known)]))
        costs = measure(find("default"), names, cpu=options.cpu, batches=2 if options.quick else BATCHES)
        print(table(costs))
        if options.record is not None:
            rows = {cost.name: [cost.ack_ns, cost.later_ns, cost.loss_ns] for cost in costs}
            replace_bytes(options.record, (json.dumps(rows, indent=1) + "\n").encode())
    except WarpbedError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
