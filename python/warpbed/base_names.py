# SPDX-License-Identifier: Apache-2.0
"""What the package offers of `base`: its errors and the version."""

from base.errors import UsageError, WarpbedError
from base.version import VERSION

__all__ = ["VERSION", "UsageError", "WarpbedError"]
