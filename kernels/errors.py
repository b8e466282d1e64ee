# SPDX-License-Identifier: Apache-2.0
"""Errors of kernel builds."""

from __future__ import annotations

from base.errors import WarpbedError


class BuildError(WarpbedError):
    """A step of the build failed; the message holds the words of the program that did."""
