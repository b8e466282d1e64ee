# SPDX-License-Identifier: Apache-2.0
"""One self-contained HTML file about an experiment: `python -m analysis.report RESULTS_DIR/EXPERIMENT`."""
