# SPDX-License-Identifier: Apache-2.0
"""Cut the power at every moment of a command, and look at what a disk may then hold.

    python -m tests.faults.power CASE FOLDER [--step N] [--again N] [--record]

The command runs once, with record.c preloaded. Of a file a disk holds for certain only what was synced (fsync), of a folder's names only
what was done before the folder was synced; the names of later calls may be there as well, in their order. So each moment has two
extreme states: all names and only synced contents (an empty file where nothing was synced, as ext4 leaves it), and only
synced names. Both are laid down, and the case's invariants are checked; at every N-th moment (--again) the command is
given again, which must complete the work. One line of JSON at the end; --record puts it into docs/reliability.json.

Machines at the other end of a campaign have no power cut: what is done to their files (the folder `ends`) stays.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from base.paths import ROOT
from tests import reliability
from tests.faults.cases import Case, Transfer
from tests.faults.forks import forked
from tests.faults.registry import CASES

SOURCE = Path(__file__).with_name("record.c")
ENDS = "ends"
Place = tuple[int, str]
"""A folder's number and a name in it."""


@dataclass
class Outcome:
    """operations: recorded calls; states: looked at; again: of those, from how many the command was given again."""

    case: str
    operations: int = 0
    synced: int = 0
    states: int = 0
    again: int = 0
    violations: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Step:
    """A call that changed names: what each place holds afterwards (a node's number, or None), in the folders that it touched."""

    what: str
    sets: tuple[tuple[Place, int | None], ...]
    elsewhere: bool


class Disk:
    """Folders and files by number: names (folder → name → number) and contents that were synced. 0 is the outermost folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders: dict[int, dict[str, int]] = {0: {}}
        self.contents: dict[int, bytes] = {}
        self.count = 1
        for file in sorted(root.rglob("*")):
            self.add(self.place(str(file)), is_folder=file.is_dir())
            if file.is_file():
                self.contents[self.at(str(file))] = file.read_bytes()

    def place(self, path: str) -> Place:
        """Where a name stands; raises KeyError where its folder is not known."""
        *way, name = Path(path).relative_to(self.root).parts
        folder = 0
        for part in way:
            folder = self.folders[folder][part]
        return folder, name

    def at(self, path: str) -> int:
        folder, name = self.place(path)
        return self.folders[folder][name]

    def add(self, place: Place, *, is_folder: bool) -> int:
        node, self.count = self.count, self.count + 1
        if is_folder:
            self.folders[node] = {}
        else:
            self.contents[node] = b""
        self.folders[place[0]][place[1]] = node
        return node

    def set(self, place: Place, node: int | None) -> None:
        if node is None:
            self.folders[place[0]].pop(place[1], None)
        else:
            self.folders[place[0]][place[1]] = node


@dataclass(frozen=True)
class Moment:
    """A recorded call: a step of names, the synced folder, or the content that a file has for certain from here on."""

    step: Step | None = None
    synced: int | None = None
    content: tuple[int, bytes] | None = None


def moments(disk: Disk, records: Sequence[tuple[int, str, str, str]], copies: Path) -> Iterator[Moment]:
    """What each call did; the disk follows it, as a machine without a power cut would show it."""
    for number, what, one, two in records:
        if what == "syncdir":
            yield Moment(synced=disk.at(one) if Path(one) != disk.root else 0)
        elif what == "sync":
            yield Moment(content=(disk.at(one), (copies / str(number)).read_bytes()))
        elif what == "truncate":
            yield Moment(content=(disk.at(one), b""))
        else:
            sets: list[tuple[Place, int | None]] = []
            place = disk.place(one)
            if what in ("create", "mkdir"):
                sets.append((place, disk.add(place, is_folder=what == "mkdir")))
            elif what == "unlink":
                sets.append((place, None))
            else:
                other = disk.place(two)
                back = disk.at(two) if what == "exchange" else None
                sets += [(other, disk.at(one)), (place, back)]
            for where, node in sets:
                disk.set(where, node)
            elsewhere = ENDS in Path(one).relative_to(disk.root).parts[:1]
            yield Moment(
                Step(f"{what} {Path(one).name} {Path(two).name if two else ''}".strip(), tuple(sets), elsewhere)
            )


def lay_down(before: Disk, done: Sequence[Moment], *, all_names: bool, target: Path) -> None:
    """What the disk holds if the power went after these calls, written into `target`."""
    names = {number: dict(entries) for number, entries in before.folders.items()}
    contents = dict(before.contents)
    for number, moment in enumerate(done):
        if moment.content is not None:
            contents[moment.content[0]] = moment.content[1]
        if moment.step is None:
            continue
        touched = {place[0] for place, _ in moment.step.sets}
        if all_names or moment.step.elsewhere or any(later.synced in touched for later in done[number:]):
            for (folder, name), node in moment.step.sets:
                names.setdefault(folder, {})
                if node is None:
                    names[folder].pop(name, None)
                else:
                    names[folder][name] = node
    shutil.rmtree(target, ignore_errors=True)
    _write(0, target, names, contents, set(before.folders) | _made(done, before))


def _made(done: Sequence[Moment], before: Disk) -> set[int]:
    """Numbers of folders among what the calls have made."""
    return {
        node
        for moment in done
        if moment.step is not None and moment.step.what.startswith("mkdir")
        for _, node in moment.step.sets
        if node is not None
    }


def _write(
    number: int, target: Path, names: dict[int, dict[str, int]], contents: dict[int, bytes], folders: set[int]
) -> None:
    target.mkdir(parents=True)
    for name, node in names.get(number, {}).items():
        if node in folders:
            _write(node, target / name, names, contents, folders)
        else:
            (target / name).write_bytes(contents.get(node, b""))


def parsed(log: bytes) -> list[tuple[int, str, str, str]]:
    """(number, call, path, other path) of each record."""
    found, at = [], 0
    while at < len(log):
        ends = [at]
        for _ in range(3):
            ends.append(log.index(b"\0", ends[-1]) + 1)
        words = [log[a : b - 1].decode() for a, b in itertools.pairwise(ends)]
        found.append((at, *words))
        at = ends[-1]
    return found  # type: ignore[return-value]


def record(name: str, folder: Path) -> tuple[Disk, list[Moment]]:
    """Run a case's command once; the disk before it, and its calls."""
    library = folder / "record.so"
    compiler = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(compiler, check=True, capture_output=True, text=True)
    box, log, copies = folder / "box", folder / "log", folder / "copies"
    box.mkdir()
    copies.mkdir()
    CASES[name](box / "data").prepare()
    before = Disk(box)
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "RECORD_FOLDER": str(box),
        "RECORD_LOG": str(log),
        "RECORD_COPIES": str(copies),
        "OMP_NUM_THREADS": "1",
        "ARROW_NUM_THREADS": "1",
    }
    line = [sys.executable, "-P", "-m", "tests.faults.power", name, str(folder), "--work"]
    done = subprocess.run(line, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"without a power cut: exit code {done.returncode}: {done.stdout}{done.stderr}")
    return before, list(moments(copy.deepcopy(before), parsed(log.read_bytes()), copies))


def cut(name: str, folder: Path, *, step: int = 1, again_every: int = 10) -> Outcome:
    """The states after every `step`-th call."""
    before, calls = record(name, folder)
    case = CASES[name](before.root / "data")
    outcome = Outcome(
        name, len(calls), sum(moment.synced is not None or moment.content is not None for moment in calls)
    )
    for number in range(0, len(calls) + 1, step):
        for all_names in (True, False):
            lay_down(before, calls[:number], all_names=all_names, target=before.root)
            outcome.states += 1
            wrong = [*case.check(whole=False, settled=False), *_lost(case)]
            if (number // step) % again_every == 0:
                outcome.again += 1
                code, words = forked(case.work)
                if code:
                    wrong.append(f"the next command did not complete it: exit code {code}: {words[-600:]}")
                wrong += case.check(whole=True, settled=True)
            last = calls[number - 1].step if number else None
            where = (
                f"{'all names' if all_names else 'synced names'} after call {number} ({last.what if last else 'sync'})"
            )
            outcome.violations += [f"{where}: {text}" for text in wrong]
    return outcome


def _lost(case: Case) -> list[str]:
    """Of a transfer: what is gone at the ends has to be here."""
    return case.gone() if isinstance(case, Transfer) else []


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--again", type=int, default=10, metavar="N")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--work", action="store_true", help="the command itself, in the process that is recorded")
    options = parser.parse_args()
    if options.work:
        return CASES[options.case](options.folder / "box/data").work()
    outcome = cut(options.case, options.folder.resolve(), step=options.step, again_every=options.again)
    print(json.dumps(asdict(outcome)))
    if options.record:
        entry = {
            "calls": outcome.operations,
            "synced": outcome.synced,
            "states": outcome.states,
            "again": outcome.again,
        }
        reliability.add("power", outcome.case, {**entry, "violations": len(outcome.violations)})
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
