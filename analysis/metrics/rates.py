# SPDX-License-Identifier: Apache-2.0
"""Rates from the interval records: mean over a window, and series of equal bins."""

from __future__ import annotations

from analysis.arrays import np
from analysis.metrics.run import Window
from analysis.records import Columns, Floats

# Rounding of interval edges (0.1 s steps in binary) must not open a bin that holds nothing.
EDGE_SLACK = 1e-6


def bytes_in(columns: Columns, field: str, window: Window) -> float:
    """Bytes of `field` inside the window; an interval across an edge counts by the share of it that lies inside."""
    start_s = columns["t_s"]
    end_s = start_s + columns["width_s"]
    inside_s = np.minimum(end_s, window.end_s) - np.maximum(start_s, window.start_s)
    width_s = np.where(columns["width_s"] > 0, columns["width_s"], np.inf)
    return float(np.nansum(columns[field] * np.clip(inside_s / width_s, 0.0, 1.0)))


def mean_mbps(columns: Columns | None, field: str, window: Window) -> float | None:
    """Mean rate over the window, None where the flow has no rows, the record not this quantity or the window no length."""
    if columns is None or columns["t_s"].size == 0 or window.length_s <= 0 or np.isnan(columns[field]).all():
        return None
    return bytes_in(columns, field, window) * 8 / window.length_s / 1e6


def binned_mbps(columns: Columns, field: str, window: Window, width_s: float) -> Floats:
    """Mean rate in consecutive whole bins of `width_s` from the window's start; a last part of a bin is left out."""
    count = int(window.length_s / width_s + EDGE_SLACK)
    if count == 0 or columns["t_s"].size == 0:
        return np.zeros(0)
    order = np.argsort(columns["t_s"], kind="stable")
    start_s, widths_s = columns["t_s"][order], columns["width_s"][order]
    # Cumulative bytes, linear inside an interval and flat in gaps: differences between bin edges are exact shares.
    points_s = np.column_stack([start_s, start_s + widths_s]).ravel()
    total = np.cumsum(np.nan_to_num(columns[field][order]))
    totals = np.column_stack([np.concatenate([[0.0], total[:-1]]), total]).ravel()
    edges_s = window.start_s + width_s * np.arange(count + 1)
    at_edges = np.interp(edges_s, np.maximum.accumulate(points_s), totals)
    return np.asarray(np.diff(at_edges) * 8 / width_s / 1e6)
