# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a kernel's name and its build."""

from __future__ import annotations


class KernelError(Exception):
    """Says what failed, the value seen, the values allowed and the next step."""


class UsageError(KernelError):
    """Nothing was started: a name, a path or a file of this checkout is wrong."""


class BuildError(KernelError):
    """A step of the build failed; the message holds the words of the program that did."""
