# SPDX-License-Identifier: Apache-2.0
"""First process of the cost benchmark's guest: measure one algorithm after the other, print a line for each, power off.

Arguments: the number of batches, the names, and END; a module `/mnt/tcp_<name>.ko` is loaded where there is one.
The kernel's command line names the folder that becomes /mnt (``wb_out=``).
"""

import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the first process finds the checkout by itself

from base.linux import mount, power_off

END = "end"
RESULTS = Path("/sys/module/cc_cost/parameters")


def run(*command: str) -> None:
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    if completed.returncode:
        raise RuntimeError(f"{' '.join(command)}: {completed.stderr.strip() or completed.returncode}")


def measure(name: str, batches: str) -> list[str]:
    run("insmod", "/mnt/cc_cost.ko", f"algorithm={name}", f"batches={batches}")
    picoseconds = [(RESULTS / what).read_text().strip() for what in ("ack_ps", "later_ps", "loss_ps")]
    run("rmmod", "cc_cost")
    return picoseconds


def main() -> None:
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    mount("none", "/proc", "proc")
    mount("none", "/sys", "sysfs")
    folder = re.search(r"wb_out=(\S+)", Path("/proc/cmdline").read_text())
    assert folder, "wb_out= is missing"
    mount("none", "/mnt", "hostfs", 0, folder[1])
    run("ip", "link", "set", "lo", "up")
    batches, *names = sys.argv[1 : sys.argv.index(END)]  # the kernel adds arguments of its own
    for module in sorted(Path("/mnt").glob("tcp_*.ko")):
        run("insmod", str(module))
    for name in names:
        print("COST", name, *measure(name, batches), flush=True)
    print("COST done", flush=True)


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # noqa: BLE001 (process 1 must reach the power switch)
        print(traceback.format_exc(), flush=True)
    finally:
        power_off()
