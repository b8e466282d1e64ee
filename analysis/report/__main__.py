# SPDX-License-Identifier: Apache-2.0
"""Write an experiment's report.

python -m analysis.report RESULTS_DIR/EXPERIMENT [--output FILE]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from analysis.errors import AnalysisError
from analysis.report import write_report
from base import screen

__all__ = ["main", "write_report"]


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
    screen.install()
    sys.exit(main())
