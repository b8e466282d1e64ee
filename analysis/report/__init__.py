# SPDX-License-Identifier: Apache-2.0
"""One self-contained HTML file about an experiment: `python -m analysis.report RESULTS_DIR/EXPERIMENT`."""

from analysis.report.build import build, write_report
from analysis.report.page import Written

__all__ = ["Written", "build", "write_report"]
