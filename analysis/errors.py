# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in analysis; every message says what was seen and what to do next."""

from base.errors import WarpbedError


class AnalysisError(WarpbedError):
    """Base of everything that this package raises on purpose."""


class RecordsError(AnalysisError):
    """A Parquet file does not keep to the records' contract (docs/architecture.md)."""


class ResultsError(AnalysisError):
    """A results folder cannot be read."""


class ContextError(AnalysisError):
    """The context given to `metrics.compute` is incomplete or makes no sense."""


class UnknownMetricError(AnalysisError):
    """A metric was named that does not exist."""


class ExpectationError(AnalysisError):
    """An expectation is not well formed."""


class ClaimError(AnalysisError):
    """A claim cannot be held against these runs at all."""


class MissingCellError(AnalysisError):
    """A combination of parameters lacks a cell that a claim names."""
