# SPDX-License-Identifier: Apache-2.0
"""Raw files that cannot be used."""

from __future__ import annotations


class CollectError(Exception):
    """A raw file is missing, cut or not what its name says; the text holds the file, the place and the reason."""
