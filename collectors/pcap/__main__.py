# SPDX-License-Identifier: Apache-2.0
"""`python -m collectors.pcap FILE.pcap... --out DIR`: one capture, or several, to records."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from base import screen
from base.text import json_text
from collectors.pcap import CaptureError, analyze


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m collectors.pcap", description=__doc__)
    parser.add_argument("captures", nargs="+", type=Path, help="pcap or pcapng, also gzip or zstd; - is standard input")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the Parquet files")
    parser.add_argument("--interval", type=float, default=0.1, metavar="S", help="width of an interval (default 0.1 s)")
    parser.add_argument("--threads", type=int, default=None, metavar="N", help="default: 2, where there are 2 CPUs")
    parser.add_argument("--live", action="store_true", help="follow a capture that is still being written to a pipe")
    parser.add_argument("--format", choices=["table", "json", "csv"], default="table", help="how to print the counts")
    options = parser.parse_args(arguments)
    if not options.interval > 0:
        parser.error(f"--interval is {options.interval}, must be above 0")
    if options.threads is not None and options.threads < 1:
        parser.error(f"--threads is {options.threads}, must be at least 1")
    try:
        summary = analyze(
            options.captures, options.out, interval_s=options.interval, threads=options.threads, live=options.live
        )
    except CaptureError as error:
        print(f"collect: {error}", file=sys.stderr)
        return 2
    counts = {name: getattr(summary, name) for name in ("packets", "flows", "seconds", "packets_per_s", "bad_packets")}
    if options.format == "json":
        print(json_text({**counts, "out": str(options.out)}))
    elif options.format == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows([counts, counts.values()])
    else:
        rate = summary.packets_per_s / 1e6
        line = (
            f"{summary.packets} packets, {summary.flows} flows, {summary.seconds:.3f} s, {rate:.2f} million packets/s"
        )
        print(f"{line} -> {options.out}")
    if summary.bad_packets and summary.first_bad is not None:
        print(
            f"collect: {summary.bad_packets} packets not understood, the first at {summary.first_bad.message}",
            file=sys.stderr,
        )
    for failure in summary.errors:
        print(f"collect: {failure.path}: {failure.message}; the packets before it were used", file=sys.stderr)
    return 1 if summary.errors else 0


if __name__ == "__main__":
    screen.install()
    sys.exit(main())
