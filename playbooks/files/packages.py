# SPDX-License-Identifier: Apache-2.0
"""Install Debian packages so that they, and no others, can be removed again.

    install RECORD PACKAGE…     write to RECORD what is about to be installed, dependencies included, and install it
    remove RECORD [--check]     remove what RECORD names, but for what other packages have come to need

RECORD is written before anything is installed, so that a call that is killed leaves nothing unrecorded. Prints one JSON
object: `changed`, and for `remove` the names that are `removed` and those that `stay`.
"""

import json
import os
import pathlib
import subprocess
import sys

APT = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300"]
KEEP_SETTINGS = ["-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"]
GONE = ("not-installed", "config-files")


def run(*command: str) -> str:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        sys.exit(f"{command[0]}: " + "; ".join(lines[-4:]))
    return done.stdout


def states(names: list[str]) -> dict[str, str]:
    """Of the packages that dpkg knows."""
    query = ["dpkg-query", "--show", "--showformat=${binary:Package} ${db:Status-Status}\n", *names]
    lines = subprocess.run(query, capture_output=True, text=True).stdout.splitlines() if names else []
    return {name.partition(":")[0]: state for name, _, state in (line.partition(" ") for line in lines)}


def simulated(word: str, *arguments: str) -> list[str]:
    """Packages that apt would install (Inst) or remove (Remv)."""
    lines = run("apt-get", "--simulate", "-o", "Debug::NoLocking=true", *arguments).splitlines()
    # "Inst NAME [OLD] (NEW …)" is one that is there in another version
    fields = [line.split() for line in lines if line.startswith(f"{word} ")]
    return [one[1] for one in fields if word != "Inst" or not one[2].startswith("[")]


def write(file: pathlib.Path, record: dict[str, bool]) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = file.with_name(f"{file.name}.new")
    with open(fresh, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
        out.write(json.dumps(record))
        out.flush()
        os.fsync(out.fileno())
    fresh.rename(file)


def read(file: pathlib.Path) -> dict[str, bool]:
    """Package → whether its settings were there before it."""
    record: dict[str, bool] = json.loads(file.read_text()) if file.exists() else {}
    return record


def install(file: pathlib.Path, names: list[str]) -> dict[str, object]:
    before = read(file)
    run(*APT, "update")
    wanted = ["install", "--no-install-recommends", *names]
    planned = simulated("Inst", *wanted)
    there = states([name.partition(":")[0] for name in planned])
    had_settings = {name: there.get(name.partition(":")[0]) == "config-files" for name in planned}
    write(file, had_settings | before)
    try:
        run(*APT, *KEEP_SETTINGS, *wanted)
    finally:  # what has failed to come is nobody's
        now = states([name.partition(":")[0] for name in planned])
        came = {name: had for name, had in had_settings.items() if now.get(name.partition(":")[0], GONE[0]) not in GONE}
        write(file, came | before)
    return {"changed": bool(planned)}


def remove(file: pathlib.Path, check: bool) -> dict[str, object]:
    record = read(file)
    now = states([name.partition(":")[0] for name in record])
    ours = {name for name in record if now.get(name.partition(":")[0], GONE[0]) not in GONE}
    # one by one: apt takes along what needs a package, and that may be somebody else's by now
    going = {name for name in sorted(ours) if set(simulated("Remv", "remove", name)) <= ours}
    if going and not set(simulated("Remv", "remove", *sorted(going))) <= ours:
        going = set()
    if not check:
        if kept := sorted(name for name in going if record[name]):
            run(*APT, "remove", *kept)
        if purged := sorted(name for name in going if not record[name]):
            run(*APT, "purge", *purged)
        file.unlink(missing_ok=True)
    return {"changed": bool(going), "removed": sorted(going), "stay": sorted(ours - going)}


def main(what: str, record: str, *arguments: str) -> None:
    file = pathlib.Path(record)
    print(json.dumps(install(file, list(arguments)) if what == "install" else remove(file, "--check" in arguments)))


if __name__ == "__main__":
    main(*sys.argv[1:])
