# SPDX-License-Identifier: Apache-2.0
"""The same bytes again: each golden run under each condition, compared packet by packet.

    ./warpbed exec python -m benchmarks.replay [--only NAME] [--times N] [--series X.Y] [--cpu N] [--write]
    ./warpbed exec python -m benchmarks.replay --until N [--series X.Y] [--cpu N] [--counts FILE]
    ./warpbed exec python -m benchmarks.replay --page

Prints per run and condition how many replays differed from the first; ends with 1 where one did, or where the first differs from
the repository's digest for this kernel and user land. --write records the digests of the first replays instead. The conditions are
those of benchmarks/conditions.py.

--until replays one run after the other, each time one of those with the condition that was tried least often, compares it with the
repository's digest, and counts it in FILE (benchmarks/replays.json), until N are counted for this kernel. It can be ended at any time
and goes on where it was; one process per CPU may run at once. What differs is kept below /var/tmp. --page writes the table of
docs/virtual-time.md.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from base.files import replace_text
from benchmarks import golden, replay_counts
from benchmarks.conditions import CONDITIONS, those_of
from hosts.virtual.kernel import find
from hosts.virtual.launch import GuestKernel

HOW = {condition.name: condition for condition in CONDITIONS}


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Execute the golden runs under all conditions and compare their packets."
    )
    parser.add_argument("--only", default="", help="runs whose name contains this")
    parser.add_argument("--times", type=int, default=1, help="replays of each run under each condition")
    parser.add_argument("--series", default="default", help="of the guest's kernel")
    parser.add_argument("--cpu", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="record the digests, each run once")
    parser.add_argument("--until", type=int, help="count replays until there are so many of this kernel")
    parser.add_argument("--counts", type=Path, default=replay_counts.FILE, help="where they are counted")
    parser.add_argument("--page", action="store_true", help="write the table of docs/virtual-time.md")
    options = parser.parse_args()
    if options.page:
        write_page()
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what lies in the folder of the replay under way is removed
    kernel = find(options.series)
    if options.until is not None:
        return counted(kernel, options.until, options.counts, options.cpu)
    return matrix(kernel, options)


def matrix(kernel: GuestKernel, options: argparse.Namespace) -> int:
    """Each run under each condition, beside its first replay; 1 where one differs."""
    names = [name for name in golden.FILES if options.only in name]
    conditions = CONDITIONS[:1] if options.write else tuple(those_of(kernel).values())
    known, firsts, replays, differing = golden.known(kernel), dict[str, str](), 0, 0
    print(f"{golden.identity(kernel)}\n{'run':12}" + "".join(f"{condition.name:>21}" for condition in conditions))
    with tempfile.TemporaryDirectory(prefix="warpbed-replay-", dir="/var/tmp") as folder:
        for name in names:
            print(f"{name:12}", end="", flush=True)
            for condition in conditions:
                others = 0
                for _ in range(1 if options.write else options.times):
                    raw = Path(folder) / str(replays)
                    digest = golden.run(name, kernel, raw, options.cpu, condition.execute)
                    others += digest != firsts.setdefault(name, digest)
                    replays += 1
                differing += others
                print(f"{others or 'same':>21}", end="", flush=True)
            expected = (known or {}).get(name)
            is_other = not options.write and expected not in (None, firsts[name])
            print("  NOT AS RECORDED" if is_other else "  not recorded" if expected is None else "")
            differing += is_other
    if options.write:
        golden.record(kernel, {**(known or {}), **firsts})
    print(f"{replays} replays, {differing} differ")
    return 1 if differing else 0


def counted(kernel: GuestKernel, until: int, file: Path, cpu: int) -> int:
    """Replay and count; 1 where a replay ever differed or failed."""
    identity, known = golden.identity(kernel), golden.known(kernel)
    if known is None:
        raise SystemExit(f"no digests for {identity}; --write records them")
    while True:
        runs = replay_counts.valid(replay_counts.read(file), identity, known)
        same, differing, failed = (replay_counts.total(runs, kind) for kind in replay_counts.KINDS)
        if same + differing >= until:
            print(f"{identity}: {same + differing} replays, {differing} differ, {failed} more failed")
            return 1 if differing or failed else 0
        name, condition = random.choice(replay_counts.rarest(runs, those_of(kernel)))  # noqa: S311 — nothing secret
        folder = Path(tempfile.mkdtemp(prefix=f"warpbed-replay-{name}-", dir="/var/tmp"))
        try:
            kind = outcome(kernel, name, condition, folder / "raw", cpu, known[name])
        except BaseException:  # ended in the middle
            shutil.rmtree(folder, ignore_errors=True)
            raise
        replay_counts.add(file, identity, name, condition, known[name], kind)
        if kind == replay_counts.SAME:
            shutil.rmtree(folder)
        else:
            print(f"{name}, {condition}: {kind}, kept in {folder}", flush=True)


def outcome(kernel: GuestKernel, name: str, condition: str, raw: Path, cpu: int, packets: str) -> str:
    """Which kind of count a replay is."""
    try:
        digest = golden.run(name, kernel, raw, cpu, HOW[condition].execute)
    except RuntimeError as error:
        print(f"{name}, {condition}: {error}", flush=True)
        return replay_counts.FAILED
    return replay_counts.SAME if digest == packets else replay_counts.DIFFERING


def write_page() -> None:
    lines = replay_counts.table(replay_counts.read(), golden.all_known(), HOW)
    replace_text(replay_counts.PAGE, replay_counts.page(replay_counts.PAGE.read_text(), lines))


if __name__ == "__main__":
    raise SystemExit(main())
