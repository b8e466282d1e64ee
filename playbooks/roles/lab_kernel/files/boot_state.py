# SPDX-License-Identifier: Apache-2.0
"""What a machine booted before another kernel came: kept, and what there is to take back.

    keep ROOT     write its release, its packages and the boot loader's variables to ROOT/boot-before.json, once
    ours ROOT     the packages of ROOT/packages that are installed and were not before
    restore ROOT  put the boot loader's variables back, and remove the folder of its settings where there was none

Prints one JSON object: `changed`, and for `ours` the names.
"""

import json
import os
import pathlib
import subprocess
import sys

GRUBENV = pathlib.Path("/boot/grub/grubenv")
SETTINGS = pathlib.Path("/etc/default/grub.d")


def installed() -> list[str]:
    completed = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package}\n"],
        check=True,
        capture_output=True,
        text=True,
    )
    return sorted({line.split()[1] for line in completed.stdout.splitlines() if line.startswith("installed ")})


def write(file: pathlib.Path, text: str, mode: int) -> None:
    fresh = file.with_name(f"{file.name}.new")
    with open(fresh, "w") as out:
        os.fchmod(out.fileno(), mode)
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    fresh.rename(file)


def keep(root: pathlib.Path) -> dict[str, object]:
    file = root / "boot-before.json"
    if file.exists():
        return {"changed": False}
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    variables = GRUBENV.read_text() if GRUBENV.exists() else None
    state = {
        "release": os.uname().release,
        "packages": installed(),
        "grubenv": variables,
        "settings": SETTINGS.exists(),
    }
    write(file, json.dumps(state), 0o600)
    return {"changed": True}


def ours(root: pathlib.Path) -> dict[str, object]:
    before = set(json.loads((root / "boot-before.json").read_text())["packages"])
    names = {
        subprocess.run(
            ["dpkg-deb", "--field", file, "Package"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for file in root.glob("packages/*.deb")
    }
    return {"changed": False, "packages": sorted((names & set(installed())) - before)}


def restore(root: pathlib.Path) -> dict[str, object]:
    state = json.loads((root / "boot-before.json").read_text())
    if not state["settings"] and SETTINGS.is_dir() and not any(SETTINGS.iterdir()):
        SETTINGS.rmdir()
    was = state["grubenv"]
    now = GRUBENV.read_text() if GRUBENV.exists() else None
    if was is None:
        GRUBENV.unlink(missing_ok=True)
    elif was != now:
        write(GRUBENV, was, GRUBENV.stat().st_mode & 0o777 if now is not None else 0o644)
    return {"changed": was != now}


print(json.dumps({"keep": keep, "ours": ours, "restore": restore}[sys.argv[1]](pathlib.Path(sys.argv[2]))))
