# SPDX-License-Identifier: Apache-2.0
"""Print what a machine's kernel is and which algorithms it has, each with the srcversion of its module ("" if built in).

Standard input: JSON, name of a module → its srcversion in the build that is to run; `strangers` are those that differ.
"""

import json
import os
import pathlib
import subprocess
import sys

AVAILABLE = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
built = json.load(sys.stdin)
modules, other, strangers = {}, [], []
for name in AVAILABLE.read_text().split():
    loaded = pathlib.Path(f"/sys/module/tcp_{name}/srcversion")
    modules[name] = loaded.read_text().strip() if loaded.exists() else ""
    if modules[name]:
        told = subprocess.run(["/sbin/modinfo", "-F", "srcversion", f"tcp_{name}"], capture_output=True, text=True)
        if told.returncode == 0 and told.stdout.strip() != modules[name]:
            other.append(f"tcp_{name}")
        if built.get(f"tcp_{name}", modules[name]) != modules[name]:
            strangers.append(f"tcp_{name}")
uname = os.uname()
seen = {"release": uname.release, "version": uname.version, "modules": modules, "other": other, "strangers": strangers}
print(json.dumps(seen))
