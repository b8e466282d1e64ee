# SPDX-License-Identifier: Apache-2.0
"""Print what a machine's kernel is and which algorithms it has, each with the srcversion of its module ("" if built in).

Standard input: JSON, name of a module → its srcversion in the build that is to run. `strangers` are modules that differ from it,
`other` those that differ from the installed file.
"""

import json
import os
import pathlib
import subprocess
import sys

AVAILABLE = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


def modinfo(field: str, module: str) -> str:
    """A field of the installed module, which may be named by an alias; empty where there is none."""
    answer = subprocess.run(["/sbin/modinfo", "-F", field, module], capture_output=True, text=True)
    return answer.stdout.strip() if answer.returncode == 0 else ""


built = json.load(sys.stdin)
modules, other, strangers = {}, set(), set()
for name in AVAILABLE.read_text().split():
    module = f"tcp_{name}"
    if not pathlib.Path("/sys/module", module).exists():  # a module can have several algorithms
        module = modinfo("name", module) or module
    loaded = pathlib.Path("/sys/module", module, "srcversion")
    modules[name] = loaded.read_text().strip() if loaded.exists() else ""
    if modules[name]:
        if modinfo("srcversion", module) not in ("", modules[name]):
            other.add(module)
        if built.get(module, modules[name]) != modules[name]:
            strangers.add(module)
uname = os.uname()
seen = {
    "release": uname.release,
    "version": uname.version,
    "modules": modules,
    "other": sorted(other),
    "strangers": sorted(strangers),
}
print(json.dumps(seen))
