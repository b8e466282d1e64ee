# SPDX-License-Identifier: Apache-2.0
"""The same bytes again: each golden run under each condition, compared packet by packet.

    ./warpbed exec python -m benchmarks.replay [--only NAME] [--times N] [--series X.Y] [--cpu N] [--write]

Prints per run and condition how many replays differed from the first; ends with 1 where one did, or where the first differs from
the repository's digest for this kernel and user land. --write records the digests of the first replays instead. The conditions are
those of benchmarks/conditions.py.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks import golden
from benchmarks.conditions import CONDITIONS
from hosts.virtual.kernel import find


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Execute the golden runs under all conditions and compare their packets."
    )
    parser.add_argument("--only", default="", help="runs whose name contains this")
    parser.add_argument("--times", type=int, default=1, help="replays of each run under each condition")
    parser.add_argument("--series", default="default", help="of the guest's kernel")
    parser.add_argument("--cpu", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="record the digests, each run once")
    options = parser.parse_args()
    kernel = find(options.series)
    names = [name for name in golden.FILES if options.only in name]
    conditions = CONDITIONS[:1] if options.write else CONDITIONS
    known, firsts, replays, differing = golden.known(kernel), dict[str, str](), 0, 0
    print(f"{golden.identity(kernel)}\n{'run':12}" + "".join(f"{condition.name:>21}" for condition in conditions))
    with tempfile.TemporaryDirectory(prefix="warpbed-replay-", dir="/var/tmp") as folder:
        for name in names:
            print(f"{name:12}", end="", flush=True)
            for condition in conditions:
                others = 0
                for _ in range(1 if options.write else options.times):
                    raw = Path(folder) / str(replays)
                    found = golden.run(name, kernel, raw, options.cpu, condition.execute)
                    others += found != firsts.setdefault(name, found)
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


if __name__ == "__main__":
    raise SystemExit(main())
