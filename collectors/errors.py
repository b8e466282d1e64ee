# SPDX-License-Identifier: Apache-2.0
"""Errors of raw files that cannot be used."""

from __future__ import annotations

from dataclasses import dataclass

from base.errors import WarpbedError


class CollectError(WarpbedError):
    """A raw file is missing, cut or not what its name says; the text holds the file, the place and the reason."""


class NativeError(CollectError):
    """The compiled packet collector is not there and cannot be built; the text says what to do."""


@dataclass(frozen=True)
class Damage:
    """Where a raw file stopped making sense. What stands before was used; the run is marked."""

    file: str
    offset: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: byte {self.offset}: {self.reason}"
