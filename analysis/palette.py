# SPDX-License-Identifier: Apache-2.0
"""Colours of lines in figures, reports and dashboards."""

from __future__ import annotations

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#6d4bb0", "#4d4d4d")
"""Okabe and Ito's, which people with any colour vision tell apart; dashes and marks do it in print."""
