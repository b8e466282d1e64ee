# SPDX-License-Identifier: Apache-2.0
"""The folder on a machine where Warpbed keeps what it executes there, perhaps as root: safe from others, and others' files safe from it.

    look ROOT               whether it can be used; fails with the reason where it cannot
    make ROOT               make it and ROOT/transfers, which is marked as ours
    remove ROOT [--check]   remove what is ours: the agents, ROOT/transfers, and ROOT where it was made here and is empty

Prints one JSON object: `changed`; `ours`, whether ROOT/transfers is marked; `left`, what stays though it looks like ours.
"""

import json
import os
import pathlib
import shutil
import stat
import sys

MARK = ".warpbed"


def mark(root: pathlib.Path) -> pathlib.Path:
    return root / "transfers" / MARK


def is_ours(root: pathlib.Path) -> bool:
    return not (root / "transfers").is_symlink() and mark(root).is_file()


def fault(place: pathlib.Path) -> str:
    """Why others could put files of theirs in the place of what is there; empty where they cannot."""
    found = os.lstat(place)
    if found.st_uid not in (0, os.geteuid()):
        return f"{place} belongs to user {found.st_uid}; chown it to root"
    if stat.S_ISLNK(found.st_mode):
        return ""
    if not stat.S_ISDIR(found.st_mode):
        return f"{place} is no folder"
    if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
        return f"{place} can be written by others (mode {found.st_mode & 0o7777:04o}); chmod go-w it"
    return ""


def look(root: pathlib.Path) -> None:
    """Exits with the reason where the folder cannot be used."""
    if not root.is_absolute() or ".." in root.parts:
        sys.exit(f"{root} is not an absolute path")
    remedy = "or name another folder: what is executed with this machine's rights lies there"
    for way in (root, pathlib.Path(os.path.realpath(root))):
        for place in [*reversed(way.parents), way]:
            if os.path.lexists(place) and (why := fault(place)):
                sys.exit(f"{why}, {remedy}")
    if os.path.lexists(root):
        found = os.lstat(root)
        if not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022 or found.st_uid != os.geteuid():
            sys.exit(
                f"{root} has to be a folder that belongs to user {os.geteuid()} and that nobody else may write "
                f"(it is user {found.st_uid}'s, mode {found.st_mode & 0o7777:04o}): chown and chmod it, {remedy}"
            )
    if os.path.lexists(root / "transfers") and not is_ours(root):
        sys.exit(
            f"{root}/transfers is there and is not Warpbed's, which would remove it at teardown (it has no file {MARK}): "
            "name another folder, or remove it if an older Warpbed has left it"
        )


def make(root: pathlib.Path) -> dict[str, object]:
    look(root)
    if is_ours(root):
        return {"changed": False, "ours": True}
    is_new = not root.exists()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    # appears whole: a folder without its mark would be taken for somebody else's
    fresh = root / f".transfers.{os.getpid()}"
    fresh.mkdir(mode=0o700)
    (fresh / MARK).write_text(json.dumps({"made": is_new}))
    fresh.rename(root / "transfers")
    return {"changed": True, "ours": True}


def aside(root: pathlib.Path) -> list[pathlib.Path]:
    """What a call that was killed has left while it made or removed ROOT/transfers."""
    if not root.is_dir() or fault(root):
        return []
    return [place for place in root.glob(".transfers.[0-9]*") if place.is_dir() and not place.is_symlink()]


def clear(place: pathlib.Path) -> bool:
    """Remove a folder aside, its mark last; whether it says that ROOT was made here."""
    for inside in place.iterdir():
        if inside.is_dir() and not inside.is_symlink():
            shutil.rmtree(inside)
        elif inside.name != MARK:
            inside.unlink()
    is_whole = (place / MARK).is_file()
    was_made = is_whole and json.loads((place / MARK).read_text())["made"]
    shutil.rmtree(place)
    return bool(was_made)


def remove(root: pathlib.Path, check: bool) -> dict[str, object]:
    there, ours = root / "transfers", is_ours(root)
    left = [str(there)] if os.path.lexists(there) and not ours else []
    if not ours and not aside(root):
        return {"changed": False, "ours": False, "left": left}
    if not check:
        for agent in root.glob("agent-*.pyz"):
            agent.unlink()
        if ours:  # goes whole, as it appeared; a call that is killed leaves it to the next one
            there.rename(root / f".transfers.{os.getpid()}")
        was_made = [clear(place) for place in aside(root)]
        if any(was_made) and not any(root.iterdir()):
            root.rmdir()
    return {"changed": True, "ours": True, "left": left}


def main(what: str, path: str, *arguments: str) -> None:
    root = pathlib.Path(path)
    if what == "look":
        look(root)
        answer: dict[str, object] = {"changed": False, "ours": is_ours(root)}
    else:
        answer = make(root) if what == "make" else remove(root, "--check" in arguments)
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
