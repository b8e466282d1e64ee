# SPDX-License-Identifier: Apache-2.0
"""Write an experiment's report.

    python -m analysis.report RESULTS_DIR/EXPERIMENT [--output FILE]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from analysis.errors import AnalysisError
from analysis.report.build import build


def write_report(folder: Path, output: Path | None = None, names: Sequence[str] | None = None) -> Path:
    """Write the report of results/<experiment> and return its path; it appears by rename, whole or not at all.

    names: the runs of the experiment file's sweep in their order; by default all that the folder holds
    """
    target = output or folder / "report.html"
    html = build(folder, names)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        aside.write_text(html, encoding="utf-8")
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)
    return target


def main() -> int:
    parser = argparse.ArgumentParser(prog="analysis.report", description="Write an experiment's report.html.")
    parser.add_argument("folder", type=Path, help="results/<experiment>")
    parser.add_argument("--output", type=Path, help="where to write it (default: report.html in the folder)")
    arguments = parser.parse_args()
    try:
        print(write_report(arguments.folder, arguments.output))
    except (AnalysisError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
