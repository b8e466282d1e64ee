# SPDX-License-Identifier: Apache-2.0
"""Errors between files and database, each with the command that repairs it."""

from __future__ import annotations

from base.errors import UsageError, WarpbedError


class StoreError(WarpbedError):
    """The database refused, went away or is full; what was not committed is not there."""


class StoreUsageError(UsageError):
    """A database that cannot be used as it is, or a folder that holds no results; nothing was changed."""
