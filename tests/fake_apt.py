# SPDX-License-Identifier: Apache-2.0
"""apt-get and dpkg-query of a machine whose packages are lines of a file: programs for a test's PATH.

Packages have the dependencies of DEPENDS, and NAME.broken beside the list makes the installation of NAME fail.
"""

from __future__ import annotations

import sys
from pathlib import Path

DEPENDS = {
    "traceroute": ["libtrace"],
    "chrony": ["libedit"],
    "theirs": ["libedit"],
    "dkms": ["gcc"],
    "linux-headers-test": [],
}
PROGRAM = """\
#!{python}
import sys
sys.path.insert(0, {checkout!r})
from tests.fake_apt import {name}
sys.exit({name}({state!r}, sys.argv[1:]))
"""


def put(folder: Path, checkout: Path, state: Path, installed: str) -> None:
    """Put both programs into a folder; what they call installed is in `state`."""
    folder.mkdir(exist_ok=True)
    state.write_text("".join(f"{name} installed\n" for name in installed.split()))
    for program, name in (("apt-get", "apt_get"), ("dpkg-query", "dpkg_query")):
        (folder / program).write_text(
            PROGRAM.format(python=sys.executable, checkout=str(checkout), name=name, state=str(state))
        )
        (folder / program).chmod(0o755)


def packages(state: Path) -> dict[str, str]:
    """Package → what dpkg says of it."""
    return dict(line.split() for line in state.read_text().splitlines())


def _write(state: Path, known: dict[str, str]) -> None:
    state.write_text("".join(f"{name} {word}\n" for name, word in sorted(known.items())))


def apt_get(place: str, arguments: list[str]) -> int:
    state = Path(place)
    with state.with_name("apt.log").open("a") as log:
        log.write(" ".join(arguments) + "\n")
    known = packages(state)
    installed = {name for name, word in known.items() if word == "installed"}
    words = [word for word in arguments if not word.startswith("-") and "::" not in word]
    what, names = words[0], words[1:]
    if what == "install":
        wanted = [*(low for name in names for low in DEPENDS.get(name, [])), *names]
        for name in dict.fromkeys(wanted):
            if name in installed:
                continue
            if "--simulate" in arguments:
                print(f"Inst {name} (1.0 Debian:13/stable [amd64])")
            elif state.with_name(f"{name}.broken").exists():
                _write(state, known)
                print(f"E: {name} is broken", file=sys.stderr)
                return 100
            else:
                known[name] = "installed"
    elif what in ("remove", "purge"):
        going = set(names) & (installed | (set(known) if what == "purge" else set()))
        going |= {name for name in installed if set(DEPENDS.get(name, [])) & going}
        for name in sorted(going):
            if "--simulate" in arguments:
                print(f"Remv {name} [1.0]")
            elif what == "purge":
                known.pop(name)
            else:
                known[name] = "config-files"
    _write(state, known)
    return 0


def dpkg_query(place: str, arguments: list[str]) -> int:
    known, form = packages(Path(place)), next(word for word in arguments if word.startswith("--showformat="))
    names = [word for word in arguments if not word.startswith("-")]
    for name in names:
        if name in known:
            text = form.removeprefix("--showformat=").replace("\\n", "\n")
            for key in ("Package", "binary:Package"):
                text = text.replace(f"${{{key}}}", name)
            print(text.replace("${db:Status-Status}", known[name]), end="")
    return 0 if set(names) <= set(known) else 1
